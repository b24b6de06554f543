"""Builds the placement service: one WSGI application."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import falcon
from oslo_config import cfg
from oslo_middleware import cors

from common.errors import ConfigurationError
from placement import answers
from placement.config import DATABASE_GROUP
from placement.db.engine import Database
from placement.follower import Follower
from placement.ledger import Ledger
from placement.operation import Services
from placement.policies import Policy
from placement.routes import ROUTES
from web import auth
from web.proxies import Proxies
from web.wsgi import ContextMiddleware, RequestId

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

Protect = Callable[..., Any]
SERVICE_TYPE = "placement"


def make_app(
    conf: cfg.ConfigOpts, protect: Protect | None = None, services: Services | None = None
) -> WSGIApplication:
    """Return the service that `conf` configures, behind the token check.

    The database is not touched before the first request; `placement.db.migrate.upgrade` must
    have made it. `protect(app, anonymous=…)` replaces the token check of web.auth; `services`
    are made of `conf` unless given. Raises ConfigurationError without a database connection.
    """
    app = falcon.App()
    # An answer without a body has no type.
    app.resp_options.default_media_type = None  # type: ignore[assignment]
    app.add_middleware(answers.MicroversionMiddleware())
    app.add_middleware(ContextMiddleware())
    services = services or make_services(conf)
    for path, resource in ROUTES.items():
        app.add_route(path, resource(services))
    answers.add_error_handlers(app)
    if protect is None:
        checked = auth.protect(app, conf, anonymous=_is_root, service_type=SERVICE_TYPE)
    else:
        checked = protect(app, anonymous=_is_root)
    if conf.cors.allowed_origin:
        checked = cors.CORS(checked, conf)
    outermost: WSGIApplication = RequestId(Proxies(checked, conf))
    return outermost


def make_services(conf: cfg.ConfigOpts) -> Services:
    """Return what the resources work with. Raises ConfigurationError."""
    options = conf[DATABASE_GROUP]
    if not options.connection:
        raise ConfigurationError(f"[{DATABASE_GROUP}] connection is not set.")
    attempts = conf.placement.allocation_conflict_retry_count
    database = Database(options.connection, connections=options.connections, attempts=attempts)
    return Services(
        conf=conf,
        database=database,
        follower=Follower(database),
        ledger=Ledger(database, attempts=attempts),
        policy=Policy(conf),
    )


def _is_root(path: str) -> bool:
    return path in ("", "/")
