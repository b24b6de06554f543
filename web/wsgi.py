"""What the WSGI services share: request IDs, the request context, JSON answers."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable
from typing import Any

import falcon
import orjson
from oslo_context import context as oslo_context

from common import clock, ids
from common.context import RequestContext
from common.log import logger
from web import auth

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

LOG = logger(__name__)

ONLY_LOOK = frozenset({"GET", "HEAD", "OPTIONS"})

_SLASHES = re.compile("//+")
_REQUEST_ID = re.compile(r"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class RequestId:
    """Outermost WSGI layer: gives each request its ID and tells it in every answer, 401s too;
    notes when the request came.

    A well-formed ``X-OpenStack-Request-ID`` of the caller is taken over as the global request ID
    (as oslo.middleware does).
    """

    def __init__(self, app: Wsgi, extra_header: str | None = None) -> None:
        self._app = app
        self._names = ["x-openstack-request-id", *([extra_header] if extra_header else [])]

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request_id = ids.new_request_id()
        environ["openstack.request_id"] = request_id
        environ["micronova.received_at"] = clock.utcnow()
        theirs = environ.get("HTTP_X_OPENSTACK_REQUEST_ID", "")
        if _REQUEST_ID.fullmatch(theirs):
            environ["openstack.global_request_id"] = theirs
        ours = [(name, request_id) for name in self._names]

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            return start_response(status, [*headers, *ours], exc_info)

        return self._app(environ, start)


class ContextMiddleware:
    """Falcon middleware: ``req.context.ctxt`` is who asks, from what auth_token put there."""

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Build the context and make it the thread's current one, for the log lines."""
        req.context.outer = oslo_context.get_current()
        req.context.ctxt = RequestContext(**auth.context_from_environ(req.env))

    def process_resource(
        self,
        req: falcon.Request,
        resp: falcon.Response,
        resource: object,
        params: dict[str, Any],
    ) -> None:
        """Have the log lines name the server that the path names."""
        req.context.ctxt.server_uuid = params.get("server_id")

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, resource: object, succeeded: bool
    ) -> None:
        """Log what was asked to change, and give the thread its own context back.

        The request may have come from within the thread, which has a context already.
        """
        if req.method not in ONLY_LOOK:
            LOG.info("%s %s: %s", req.method, req.path, str(resp.status)[:3])
        outer = getattr(req.context, "outer", None)
        if outer is not None:
            outer.update_store()


class JoinSlashes:
    """WSGI layer: several slashes in a row are one, as in the APIs that Paste maps."""

    def __init__(self, app: Wsgi) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        environ["PATH_INFO"] = joined(environ.get("PATH_INFO", ""))
        return self._app(environ, start_response)


def joined(path: str) -> str:
    """The path with one slash for several in a row."""
    return _SLASHES.sub("/", path)


def context(req: falcon.Request) -> RequestContext:
    """Who asks."""
    found: RequestContext = req.context.ctxt
    return found


def received_at(req: falcon.Request) -> datetime.datetime:
    """When the request came, before its token was checked."""
    at: datetime.datetime = req.env["micronova.received_at"]
    return at


def send_json(resp: falcon.Response, value: Any, status: str = falcon.HTTP_200) -> None:
    """Answer with a JSON value."""
    resp.status = status
    resp.content_type = "application/json"
    resp.data = orjson.dumps(value)
