"""Errors in Nova's form: `{"badRequest": {"code": 400, "message": "…"}}`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import falcon

from common import errors
from common.errors import MicronovaError
from common.rpc import UNKNOWN
from web import wsgi
from web.errors import Fault, Faults

#: status → the key of Nova's body
FAULT_NAMES: Mapping[int, str] = {
    400: "badRequest",
    401: "unauthorized",
    403: "forbidden",
    404: "itemNotFound",
    405: "badMethod",
    409: "conflictingRequest",
    410: "computeFault",
    413: "overLimit",
    415: "badMediaType",
    429: "overLimit",
    501: "notImplemented",
    503: "serviceUnavailable",
}

UNEXPECTED = (
    "Unexpected API Error. The request ID in the headers of this answer leads to the cause in "
    "the service's log."
)

#: added to errors whose outcome is unknown: it was done already, or never will be
WHERE_IT_SHOWS = (
    "The request is not carried out later. Whether it was carried out before shows under its "
    "request ID: GET /explanations/{}."
)


def _state_conflict(error: MicronovaError) -> str:
    details = error.details
    if not {"action", "server_uuid", "attribute", "state"} <= details.keys():
        return error.message
    return (
        f"Cannot '{details['action']}' instance {details['server_uuid']} while it is in "
        f"{details['attribute']} {details['state']}"
    )


#: classes whose details make the message that clients know from Nova
SENTENCE: Mapping[type[Exception], Callable[[MicronovaError], str]] = {
    errors.ServerStateConflict: _state_conflict,
}


def _message(req: falcon.Request, fault: Fault) -> str:
    error = fault.error
    if not isinstance(error, MicronovaError):
        return fault.message
    sentence = SENTENCE.get(type(error))
    message = sentence(error) if sentence else fault.message
    if error.details.get("outcome") == UNKNOWN and req.method not in wsgi.ONLY_LOOK:
        return f"{message} {WHERE_IT_SHOWS.format(req.env['openstack.request_id'])}"
    return message


def _form(req: falcon.Request, resp: falcon.Response, fault: Fault) -> None:
    name = FAULT_NAMES.get(fault.status, "computeFault")
    body = {name: {"code": fault.status, "message": _message(req, fault)}}
    wsgi.send_json(resp, body, falcon.code_to_http_status(fault.status))


FAULTS = Faults(_form, UNEXPECTED)
