"""Builds the compute API as a WSGI application."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import falcon
import sqlalchemy as sa
from oslo_config import cfg

from api import config
from api.compute import errors, policies, routes
from api.compute.call import Cloud
from api.compute.paths import Paths
from api.compute.refusals import Refusals
from api.compute.resources.versions import ANONYMOUS, Versions
from common import quotas
from common.errors import MicronovaError
from common.projects import Projects
from conductor.client import ConductorClient
from web import auth, wsgi
from web.policy import Enforcer
from web.proxies import Proxies
from web.wsgi import Wsgi

SERVICE_TYPE = "compute"
REQUEST_ID_HEADER = "x-compute-request-id"

Protect = Callable[..., Any]


def register(conf: cfg.ConfigOpts) -> None:
    """Declare all options that the compute API reads."""
    config.register(conf)
    quotas.register(conf)


def anonymous(path: str) -> bool:
    """Whether a path (PATH_INFO) is open to everybody: the version documents."""
    return path in ANONYMOUS


def make_app(
    conf: cfg.ConfigOpts,
    conductor: ConductorClient,
    engine: sa.Engine,
    protect: Protect | None = None,
    projects: Projects | None = None,
) -> Wsgi:
    """The compute API: `/`, `/v2.1/…` and `/v2/…`, to be mounted under any prefix (SCRIPT_NAME).

    `engine` should be read-only (`db.engine.reader`). `protect(app, anonymous=…)` puts a token
    check in front; None: `web.auth.protect` as `conf` says. `projects` tells which there are.
    """
    cloud = Cloud(conf, Enforcer(conf, policies.RULES), engine, conductor, projects)
    app: falcon.App[Any, Any] = falcon.App(
        middleware=[wsgi.ContextMiddleware(), Refusals(conductor)]
    )
    # Nova answers the same with and without the slash only for version documents.
    app.req_options.strip_url_path_trailing_slash = False
    app.add_error_handler(Exception, errors.on_unexpected)
    app.add_error_handler(falcon.HTTPError, errors.on_http_error)
    app.add_error_handler(MicronovaError, errors.on_error)
    versions = Versions(conf)
    for path in ANONYMOUS:
        app.add_route(path or "/", versions)
    routes.add_routes(app, cloud)
    if protect is None:
        guarded = auth.protect(app, conf, anonymous=anonymous, service_type=SERVICE_TYPE)
    else:
        guarded = protect(app, anonymous=anonymous)
    return wsgi.RequestId(Proxies(Paths(guarded), conf), REQUEST_ID_HEADER)
