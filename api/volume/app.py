"""Builds the Block Storage API as a WSGI application."""

from __future__ import annotations

import sqlalchemy as sa
from oslo_config import cfg

from api import config as api_config
from api.versioned import Cloud
from api.volume import routes
from api.volume.errors import FAULTS
from api.volume.paths import Paths
from api.volume.resources.versions import anonymous
from api.volume_policies import RULES
from common.resources import quotas
from common.resources import volumes as options
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
    """Return the Block Storage API; `engine` reads the cloud database, `protect` is as in
    `assemble`."""
    api_config.register(conf)
    quotas.register(conf)
    options.register(conf)
    cloud = Cloud(conf, Enforcer(conf, RULES), engine, conductor)
    api = Application(
        service_type="block-storage",
        resources=routes.resources(cloud),
        faults=FAULTS,
        anonymous=anonymous,
        layers=[Paths],
        # Cinder answers the same with and without the slash only for version documents.
        strips_slash=False,
    )
    return assemble(api, conf, protect)
