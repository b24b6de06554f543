"""WSGI layers and middleware: request IDs, the request context, slashes."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable
from typing import Any

import falcon
import orjson
from oslo_context import context as oslo_context

from common import clock, ids, traceparent
from common.context import RequestContext
from common.errors import NotFound
from common.log import logger
from web import auth

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

LOG = logger(__name__)

ONLY_LOOK = frozenset({"GET", "HEAD", "OPTIONS"})

_SLASHES = re.compile("//+")


class RequestId:
    """Outermost WSGI layer: assigns the request ID, which every answer has; notes the time.

    A well-formed ``X-OpenStack-Request-ID`` of the caller becomes the global request ID, as in
    oslo.middleware.
    """

    def __init__(self, app: Wsgi, extra_header: str | None = None) -> None:
        self._app = app
        self._names = ["x-openstack-request-id", *([extra_header] if extra_header else [])]

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request_id = ids.new_request_id()
        environ["openstack.request_id"] = request_id
        environ["micronova.received_at"] = clock.utcnow()
        theirs = environ.get("HTTP_X_OPENSTACK_REQUEST_ID", "")
        if ids.is_request_id(theirs):
            environ["openstack.global_request_id"] = theirs
        ours = [(name, request_id) for name in self._names]

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            return start_response(status, [*headers, *ours], exc_info)

        return self._app(environ, start)


class ContextMiddleware:
    """Falcon middleware: sets ``req.context.ctxt`` from what the token check left."""

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Build the context and make it the thread's current one, for logs."""
        req.context.outer = oslo_context.get_current()
        req.context.ctxt = RequestContext(
            traceparent=traceparent.accepted(req.env.get("HTTP_TRACEPARENT")),
            **auth.context_from_environ(req.env),
        )

    def process_resource(
        self,
        req: falcon.Request,
        resp: falcon.Response,
        resource: object,
        params: dict[str, Any],
    ) -> None:
        """Add the server that the path names to the context, for logs.

        Raises NotFound for a path with an empty name: the routes of the real services have none,
        whatever the method.
        """
        if "" in params.values():
            raise NotFound
        named = params.get("server_id", "")
        req.context.ctxt.server_uuid = named if ids.is_uuid(named) else None

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, resource: object, succeeded: bool
    ) -> None:
        """Log requests for changes, and restore the thread's context.

        A request from within the process runs in a thread that has a context already.
        """
        if req.method not in ONLY_LOOK:
            LOG.info("%s %s: %s", req.method, req.path, str(resp.status)[:3])
        outer = getattr(req.context, "outer", None)
        if outer is not None:
            outer.update_store()


class JoinSlashes:
    """WSGI layer: joins repeated slashes, as Paste does."""

    def __init__(self, app: Wsgi) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        environ["PATH_INFO"] = joined(environ.get("PATH_INFO", ""))
        return self._app(environ, start_response)


def joined(path: str) -> str:
    """Return the path without repeated slashes."""
    return _SLASHES.sub("/", path)


def context(req: falcon.Request) -> RequestContext:
    """Return the request context of a request."""
    found: RequestContext = req.context.ctxt
    return found


def received_at(req: falcon.Request) -> datetime.datetime:
    """Return when the request arrived, before the token check."""
    at: datetime.datetime = req.env["micronova.received_at"]
    return at


def send_json(resp: falcon.Response, value: Any, status: str = falcon.HTTP_200) -> None:
    """Answer with a JSON value."""
    resp.status = status
    resp.content_type = "application/json"
    resp.data = orjson.dumps(value)
