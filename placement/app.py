"""Builds the placement service: one WSGI application."""

from __future__ import annotations

from oslo_config import cfg
from oslo_middleware import cors

from common.errors import ConfigurationError
from placement import routes
from placement.config import DATABASE_GROUP
from placement.db.engine import Database
from placement.faults import FAULTS
from placement.follower import Follower
from placement.ledger import Ledger
from placement.middleware import MicroversionMiddleware
from placement.operation import Services
from placement.policies import REFUSAL
from web.assembly import Application, Protect, assemble
from web.policy import Enforcer
from web.wsgi import Wsgi


def make_app(
    conf: cfg.ConfigOpts, protect: Protect | None = None, services: Services | None = None
) -> Wsgi:
    """Return the service that `conf` configures, behind the token check.

    The database is not touched before the first request; `placement.db.migrate.upgrade` must
    have made it. `protect` is as in `web.assembly.assemble`; `services` are made of `conf` unless
    given. Raises ConfigurationError without a database connection.
    """
    api = Application(
        service_type="placement",
        resources=routes.resources(services or make_services(conf)),
        faults=FAULTS,
        anonymous=_is_root,
        middleware=[MicroversionMiddleware()],
        layers=[lambda app: cors.CORS(app, conf)] if conf.cors.allowed_origin else [],
        strips_slash=False,
        default_type=None,
    )
    return assemble(api, conf, protect)


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
        policy=Enforcer(conf, routes.list_rules(), base=(), refusal=REFUSAL),
    )


def _is_root(path: str) -> bool:
    return path in ("", "/")
