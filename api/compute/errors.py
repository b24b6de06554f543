"""How an error looks over HTTP: one table of classes, and Nova's body around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import falcon

from api.compute.microversions import NotAcceptable
from common import errors
from common.errors import MicronovaError
from common.log import logger
from common.rpc import UNKNOWN
from web import wsgi

LOG = logger(__name__)

#: error class → status; a class that isn't here is its base's
STATUS: Mapping[type[MicronovaError], int] = {
    errors.Invalid: 400,
    errors.NotSupported: 400,
    errors.Unauthorized: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    NotAcceptable: 406,
    errors.Conflict: 409,
    errors.TooLarge: 413,
    errors.NoValidHost: 500,
    errors.Unavailable: 503,
    errors.ConfigurationError: 500,
    errors.OperationFailed: 500,
}

#: status → the key of Nova's body
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

#: what is said where a status has no message of its own (routing)
SENTENCES: Mapping[int, str] = {
    404: "The resource could not be found.",
    405: "The method is not allowed for this resource.",
}

UNEXPECTED = (
    "Unexpected API Error. The request ID in the headers of this answer leads to the cause in "
    "the service's log."
)


#: what is said where nobody answered in time: it is done already, or never will be
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


#: classes whose details make a sentence that clients know from Nova
SENTENCE: Mapping[type[MicronovaError], Callable[[MicronovaError], str]] = {
    errors.ServerStateConflict: _state_conflict,
}


def status_of(error: MicronovaError) -> int:
    """The HTTP status of an error; 500 for what nobody foresaw."""
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)


def message_of(error: MicronovaError) -> str:
    """What the answer says; nothing of the inside where the fault is ours."""
    if status_of(error) == 500:
        return UNEXPECTED
    sentence = SENTENCE.get(type(error))
    return sentence(error) if sentence else error.message


def send(resp: falcon.Response, status: int, message: str) -> None:
    """Answer with Nova's body of a fault."""
    body = {FAULT_NAMES.get(status, "computeFault"): {"code": status, "message": message}}
    wsgi.send_json(resp, body, falcon.code_to_http_status(status))


def on_error(
    req: falcon.Request, resp: falcon.Response, error: MicronovaError, _params: object
) -> None:
    """Answer an error of the common tree; its details are for who tells of the refusal."""
    req.context.error = error
    status = status_of(error)
    if status == 500:
        _log(req, error)
    message = message_of(error)
    if error.details.get("outcome") == UNKNOWN and req.method not in wsgi.ONLY_LOOK:
        message = f"{message} {WHERE_IT_SHOWS.format(_request_id(req))}"
    send(resp, status, message)


def on_http_error(
    req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError, _params: object
) -> None:
    """Answer what Falcon itself refuses: unknown routes and methods."""
    status = error.status_code
    for name, value in (error.headers or {}).items():  # type: ignore[union-attr]
        resp.set_header(name, value)
    send(resp, status, SENTENCES.get(status) or error.description or error.title or "")


def on_unexpected(
    req: falcon.Request, resp: falcon.Response, error: Exception, _params: object
) -> None:
    """Answer 500 for anything else, and log it under the request ID."""
    _log(req, error)
    send(resp, 500, UNEXPECTED)


def _log(req: falcon.Request, error: Exception) -> None:
    LOG.error("%s: %s %s failed", _request_id(req), req.method, req.path, exc_info=error)


def _request_id(req: falcon.Request) -> str:
    return str(req.env.get("openstack.request_id", "-"))
