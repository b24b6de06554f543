"""Errors in Senlin's form: `{"code": 404, "title": …, "error": {"code", "message", "type"}}`."""

from __future__ import annotations

import http

import falcon

from common.errors import Invalid, MicronovaError, QuotaExceeded
from db.reads.keyset import MarkerNotFound
from web import wsgi
from web.errors import Fault, Faults


class NotAtVersion(Invalid):
    """The microversion that is asked for has not got the operation."""

    sentence = "The operation is of a later microversion than the request asks for."


def _form(req: falcon.Request, resp: falcon.Response, fault: Fault) -> None:
    known = isinstance(fault.error, MicronovaError | falcon.HTTPError)
    title = http.HTTPStatus(fault.status).phrase
    body = {
        "code": fault.status,
        "title": title,
        "explanation": fault.message,
        "error": {
            "code": fault.status,
            "message": fault.message,
            "type": type(fault.error).__name__ if known else "InternalError",
        },
    }
    wsgi.send_json(resp, body, falcon.code_to_http_status(fault.status))


FAULTS = Faults(
    _form,
    "The server could not comply with the request since it failed; the request's ID is {}.",
    # As in Senlin, whose lists know no 404.
    statuses={QuotaExceeded: 403, MarkerNotFound: 400},
)
