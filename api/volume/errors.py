"""Errors in Cinder's form: `{"badRequest": {"code": 400, "message": "…"}}`."""

from __future__ import annotations

from collections.abc import Mapping

import falcon

from common.errors import QuotaExceeded
from db.reads.keyset import MarkerNotFound
from web import wsgi
from web.errors import Fault, Faults

#: status → the key of the body (cinder/api/openstack/wsgi.py)
FAULT_NAMES: Mapping[int, str] = {
    400: "badRequest",
    401: "unauthorized",
    403: "forbidden",
    404: "itemNotFound",
    405: "badMethod",
    409: "conflictingRequest",
    413: "overLimit",
    415: "badMediaType",
    429: "overLimit",
    501: "notImplemented",
    503: "serviceUnavailable",
}


def _form(req: falcon.Request, resp: falcon.Response, fault: Fault) -> None:
    name = FAULT_NAMES.get(fault.status, "computeFault")
    body: dict[str, object] = {"code": fault.status, "message": fault.message}
    if fault.status in (413, 429):
        body["retryAfter"] = resp.get_header("Retry-After") or "0"
        resp.set_header("Retry-After", str(body["retryAfter"]))
    wsgi.send_json(resp, {name: body}, falcon.code_to_http_status(fault.status))


FAULTS = Faults(
    _form,
    "The server could not comply with the request since it failed; the request's ID is {}.",
    statuses={QuotaExceeded: 413, MarkerNotFound: 404},
)
