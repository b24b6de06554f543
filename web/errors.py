"""Errors over HTTP: one table from classes to statuses; each API gives the form of the body."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import falcon

from common import errors
from common.errors import Invalid, MicronovaError
from common.log import logger
from web.rate_limits import TooManyRequests

LOG = logger(__name__)


class MethodNotAllowed(Invalid):
    """The path exists, but not with this method."""

    code = "micronova.method_not_allowed"
    sentence = "The method specified is not allowed for this resource."


class NotAcceptable(Invalid):
    """No microversion, or no media type, that the client accepts is served."""

    code = "micronova.not_acceptable"


class UnsupportedMedia(Invalid):
    """The body is of another type than the API takes."""

    code = "micronova.unsupported_media"


class RangeNotSatisfiable(Invalid):
    """The bytes that are asked for are not there."""

    code = "micronova.range_not_satisfiable"


STATUS: Mapping[type[MicronovaError], int] = {
    errors.Invalid: 400,
    errors.NotSupported: 400,
    errors.Unauthorized: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    MethodNotAllowed: 405,
    NotAcceptable: 406,
    errors.Conflict: 409,
    errors.Gone: 410,
    errors.PreconditionFailed: 412,
    errors.TooLarge: 413,
    UnsupportedMedia: 415,
    RangeNotSatisfiable: 416,
    TooManyRequests: 429,
    errors.NoValidHost: 500,
    errors.ConfigurationError: 500,
    errors.OperationFailed: 500,
    errors.Unimplemented: 501,
    errors.Unavailable: 503,
}
"""Error class → HTTP status; a class that isn't here has its base's, without one 500."""

SENTENCES: Mapping[int, str] = {
    404: "The resource could not be found.",
    405: "The method is not allowed for this resource.",
}
"""Messages for what Falcon refuses by itself: unknown paths and methods."""


def status_of(error: MicronovaError) -> int:
    """Return the HTTP status of an error."""
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)


@dataclass(frozen=True)
class Fault:
    """An error to be answered."""

    status: int
    message: str
    error: Exception


Form = Callable[[falcon.Request, falcon.Response, Fault], None]


@dataclass(frozen=True)
class Faults:
    """How one API answers errors."""

    form: Form
    """Writes the answer: status, headers and body."""
    unexpected: str
    """The message of every 500, without internals; `{}` is the request ID."""
    sentences: Mapping[int, str] = field(default_factory=lambda: SENTENCES)
    """Messages for what Falcon refuses."""
    statuses: Mapping[type[MicronovaError], int] = field(default_factory=dict)
    """Classes that this API answers with another status than STATUS says."""

    def install(self, app: falcon.App[Any, Any]) -> None:
        """Make `app` answer every error in this form."""
        app.add_error_handler(Exception, self._on_unexpected)
        app.add_error_handler(falcon.HTTPError, self._on_http_error)
        app.add_error_handler(MicronovaError, self._on_error)

    def _on_error(
        self, req: falcon.Request, resp: falcon.Response, error: MicronovaError, _params: object
    ) -> None:
        """Answer an error of the common tree, and keep it for middleware that records refusals."""
        req.context.error = error
        if isinstance(error, TooManyRequests):
            resp.set_header("Retry-After", str(error.details["seconds"]))
        status = self.statuses.get(type(error)) or status_of(error)
        if status == 500:
            self._on_unexpected(req, resp, error, _params)
        else:
            self.form(req, resp, Fault(status, error.message, error))

    def _on_http_error(
        self, req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError, _params: object
    ) -> None:
        """Answer what Falcon refuses by itself."""
        resp.set_headers(error.headers or {})
        message = self.sentences.get(error.status_code)
        if message is None:
            message = error.description or error.title or ""
        self.form(req, resp, Fault(error.status_code, message, error))

    def _on_unexpected(
        self, req: falcon.Request, resp: falcon.Response, error: Exception, _params: object
    ) -> None:
        """Answer 500, and log the error under the request ID."""
        request_id = req.env.get("openstack.request_id", "-")
        LOG.error("%s: %s %s failed", request_id, req.method, req.path, exc_info=error)
        self.form(req, resp, Fault(500, self.unexpected.format(request_id), error))
