"""Builds the clustering API as a WSGI application."""

from __future__ import annotations

import sqlalchemy as sa
from oslo_config import cfg

from api import config as api_config
from api.clustering import policies, routes
from api.clustering.errors import FAULTS
from api.clustering.resources.versions import anonymous
from api.compute import policies as compute_policies
from api.versioned import Cloud
from common.resources import quotas
from conductor.rpc import ConductorRpc
from web.assembly import Application, Protect, assemble
from web.policy import Enforcer
from web.wsgi import Wsgi


def make_app(
    conf: cfg.ConfigOpts,
    engine: sa.Engine,
    conductor: ConductorRpc,
    protect: Protect | None = None,
) -> Wsgi:
    """Return the clustering API; `engine` reads the cloud database, `protect` is as in
    `assemble`."""
    api_config.register(conf)
    quotas.register(conf)
    # The spec of a profile is a create of a server, by the compute API's rules.
    policy = Enforcer(conf, [*policies.RULES, *compute_policies.RULES])
    cloud = Cloud(conf, policy, engine, conductor)
    api = Application(
        service_type="clustering",
        resources=routes.resources(cloud),
        faults=FAULTS,
        anonymous=anonymous,
        strips_slash=False,
    )
    return assemble(api, conf, protect)
