"""Builds the compute API as a WSGI application."""

from __future__ import annotations

import sqlalchemy as sa
from oslo_config import cfg

from api import config, volume_policies
from api.compute import policies, routes
from api.compute.errors import FAULTS
from api.compute.paths import Paths
from api.compute.refusals import Refusals
from api.compute.resources.versions import ANONYMOUS, Versions
from api.image import policies as image_policies
from api.network import policies as network_policies
from api.versioned import Cloud
from common.clients.projects import Projects
from common.resources import consoles, quotas
from conductor.rpc import ConductorRpc
from web.assembly import Application, Protect, assemble
from web.policy import Enforcer
from web.wsgi import Wsgi


def register(conf: cfg.ConfigOpts) -> None:
    """Declare all options that the compute API reads."""
    config.register(conf)
    quotas.register(conf)
    consoles.register(conf)


#: the APIs whose things clients of old ask the compute API for
_PROXIED = (image_policies, network_policies, volume_policies)


def anonymous(path: str) -> bool:
    """Return whether a path (PATH_INFO) needs no token: the version documents."""
    return path in ANONYMOUS


def make_app(
    conf: cfg.ConfigOpts,
    conductor: ConductorRpc,
    engine: sa.Engine,
    protect: Protect | None = None,
    projects: Projects | None = None,
) -> Wsgi:
    """Return the compute API: `/`, `/v2.1/…` and `/v2/…`.

    `engine` should be read-only (`db.engine.reader`). `projects` looks up whether projects exist;
    None: nobody checks. `protect` is as in `web.assembly.assemble`.
    """
    proxied = [one for each in _PROXIED for one in each.RULES if one.name in each.PROXIED]
    policy = Enforcer(conf, [*policies.RULES, *proxied])
    cloud = Cloud(conf, policy, engine, conductor, projects)
    versions = Versions(conf)
    api = Application(
        service_type="compute",
        resources={
            **{path or "/": versions for path in ANONYMOUS},
            **routes.resources(cloud),
        },
        faults=FAULTS,
        anonymous=anonymous,
        middleware=[Refusals(conductor)],
        layers=[Paths],
        # Nova answers the same with and without the slash only for version documents.
        strips_slash=False,
        request_id_header="x-compute-request-id",
    )
    return assemble(api, conf, protect)
