"""Errors in Neutron's form: `{"NeutronError": {"type", "message", "detail"}}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import falcon
import orjson

from common.context import current_request_id
from common.errors import (
    Forbidden,
    Invalid,
    MicronovaError,
    NetworkNotFound,
    NotFound,
    TooLarge,
    Unauthorized,
    Unavailable,
)
from common.log import logger

LOG = logger(__name__)


class SubnetNotFound(NotFound):
    """No such subnet."""

    code = "micronova.subnet_not_found"
    sentence = "Subnet could not be found."


class PortNotFound(NotFound):
    """No such port of this project."""

    code = "micronova.port_not_found"
    sentence = "Port could not be found."


class QuotaNotFound(NotFound):
    """A project without limits of its own."""

    code = "micronova.network_quota_not_found"
    sentence = "Quota could not be found."


class BadRequest(Invalid):
    """A number of a page is none."""

    code = "micronova.bad_request"


class InvalidInput(Invalid):
    """A value is not of its attribute's type."""

    code = "micronova.invalid_input"


#: class → (status, Neutron's type); the most specific class that fits counts
FAULTS: Mapping[type[MicronovaError], tuple[int, str]] = {
    BadRequest: (400, "BadRequest"),
    InvalidInput: (400, "InvalidInput"),
    Invalid: (400, "HTTPBadRequest"),
    Unauthorized: (401, "HTTPUnauthorized"),
    Forbidden: (403, "PolicyNotAuthorized"),
    NetworkNotFound: (404, "NetworkNotFound"),
    SubnetNotFound: (404, "SubnetNotFound"),
    PortNotFound: (404, "PortNotFound"),
    QuotaNotFound: (404, "TenantQuotaNotFound"),
    NotFound: (404, "HTTPNotFound"),
    TooLarge: (413, "HTTPRequestEntityTooLarge"),
    Unavailable: (503, "ServiceUnavailable"),
}

_HTTP: Mapping[int, tuple[str, str]] = {
    400: ("HTTPBadRequest", "The server could not comply with the request."),
    404: ("HTTPNotFound", "The resource could not be found."),
    405: ("HTTPMethodNotAllowed", "The method is not allowed for this resource."),
}


def install(app: falcon.App) -> None:  # type: ignore[type-arg]
    """Let `app` answer every error in this form."""
    app.add_error_handler(Exception, _unexpected)
    app.add_error_handler(falcon.HTTPError, _http)
    app.add_error_handler(MicronovaError, _known)


def _known(
    req: falcon.Request, resp: falcon.Response, error: MicronovaError, params: object
) -> None:
    for kind in type(error).__mro__:
        if kind in FAULTS:
            status, name = FAULTS[kind]
            _answer(resp, status, name, error.message)
            return
    _unexpected(req, resp, error, params)


def _http(
    req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError, params: object
) -> None:
    resp.set_headers(error.headers or {})
    name, sentence = _HTTP.get(error.status_code, ("HTTPError", ""))
    _answer(resp, error.status_code, name, error.description or sentence)


def _unexpected(
    req: falcon.Request, resp: falcon.Response, error: Exception, params: object
) -> None:
    LOG.error("%s %s failed", req.method, req.path, exc_info=error)
    sentence = f"Request Failed: internal server error; its ID is {current_request_id()}."
    _answer(resp, 500, "HTTPInternalServerError", sentence)


def _answer(resp: falcon.Response, status: int, name: str, message: str) -> None:
    resp.status = falcon.code_to_http_status(status)
    resp.content_type = "application/json"
    resp.data = orjson.dumps({"NeutronError": {"type": name, "message": message, "detail": ""}})


def read_only(rule: str) -> NoReturn:
    """Refuse a change, as Neutron does where its policy forbids one: raises Forbidden."""
    raise Forbidden(f"rule:{rule} is disallowed by policy: networks are read-only here.")
