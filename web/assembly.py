"""Assembly of a WSGI application: one function puts together what stands before an API."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import falcon
from oslo_config import cfg

from web import audit, auth, rate_limits
from web.errors import Faults
from web.measuring import Measured
from web.proxies import Proxies
from web.wsgi import ContextMiddleware, RequestId, Wsgi

Protect = Callable[..., Any]
Layer = Callable[[Wsgi], Wsgi]


@dataclass(frozen=True)
class Application:
    """What one API is assembled from."""

    service_type: str
    """Its type in the catalog."""
    resources: Mapping[str, object]
    """Path → Falcon resource."""
    faults: Faults
    anonymous: Callable[[str], bool]
    """Whether a path (PATH_INFO) needs no token."""
    middleware: Sequence[Any] = ()
    """Falcon middleware that runs once the request context is there."""
    layers: Sequence[Layer] = ()
    """WSGI layers in front of the token check, from the inside out."""
    strips_slash: bool = True
    """Whether a slash at the end of a path makes no difference."""
    default_type: str | None = falcon.DEFAULT_MEDIA_TYPE
    """The content type of an answer without a body."""
    request_id_header: str | None = None
    """A further header that names the request ID."""


def assemble(api: Application, conf: cfg.ConfigOpts, protect: Protect | None = None) -> Wsgi:
    """Build the WSGI application, to be mounted anywhere (SCRIPT_NAME is respected).

    From the outside in: measuring, request ID, proxies, the log of events, the API's layers,
    token check, request context, rate limits, routes. `protect(app, anonymous=…)` replaces the
    token check of `web.auth`.
    """
    limits = rate_limits.of(conf, api.service_type)
    limited = [] if limits is None else [limits]
    app: falcon.App[Any, Any] = falcon.App(
        middleware=[ContextMiddleware(), *limited, *api.middleware]
    )
    app.req_options.strip_url_path_trailing_slash = api.strips_slash
    app.resp_options.default_media_type = api.default_type  # type: ignore[assignment]
    api.faults.install(app)
    for path, resource in api.resources.items():
        app.add_route(path, resource)
    check = protect or functools.partial(auth.protect, conf=conf, service_type=api.service_type)
    guarded: Wsgi = check(app, anonymous=api.anonymous)
    for layer in api.layers:
        guarded = layer(guarded)
    guarded = audit.around(guarded, conf, api.service_type)
    identified = RequestId(Proxies(guarded, conf), api.request_id_header)
    return Measured(identified, api.service_type)
