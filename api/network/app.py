"""Builds the Network API as a WSGI application."""

from __future__ import annotations

import sqlalchemy as sa
from oslo_config import cfg

from api import plain
from api.network import discovery, ports, quotas, resources, tags, topology
from api.network.errors import FAULTS
from api.network.paths import WithoutSuffix
from api.network.policies import RULES
from common import networks as choice
from common import quotas as limits
from conductor.client import ConductorClient
from web.assembly import Application, Protect, assemble
from web.policy import Enforcer
from web.wsgi import JoinSlashes, Wsgi

#: path → name of a collection that is always empty here
_EMPTY = {
    "security-groups": "security_groups",
    "security-group-rules": "security_group_rules",
    "floatingips": "floatingips",
    "routers": "routers",
    "service-providers": "service_providers",
}


def make_app(
    conf: cfg.ConfigOpts,
    engine: sa.Engine,
    protect: Protect | None = None,
    conductor: ConductorClient | None = None,
) -> Wsgi:
    """Return the Network API; `engine` reads the cloud database, `protect` is as in `assemble`.

    Without a `conductor` it is read-only.
    """
    limits.register(conf)
    choice.register(conf)
    policy = Enforcer(conf, RULES)
    api = Application(
        service_type="network",
        resources=plain.resources(policy, routes(conf, engine, policy, conductor).items()),
        faults=FAULTS,
        anonymous=discovery.anonymous,
        layers=[WithoutSuffix, JoinSlashes],
    )
    return assemble(api, conf, protect)


def routes(
    conf: cfg.ConfigOpts,
    engine: sa.Engine,
    policy: Enforcer,
    conductor: ConductorClient | None = None,
) -> dict[str, object]:
    """Path → what serves it."""
    found: dict[str, object] = {
        "/": discovery.Versions(),
        "/v2.0": discovery.Index(),
        "/v2.0/extensions": discovery.Extensions(),
        "/v2.0/extensions/{alias}": discovery.Extension(),
        "/v2.0/auto-allocated-topology/{project_id}": topology.Topology(conf, engine, policy),
        "/v2.0/quotas": quotas.Quotas(),
        "/v2.0/quotas/{project_id}": quotas.Quota(conf, policy),
        "/v2.0/quotas/{project_id}/{what}": quotas.QuotaView(conf, engine),
    }
    for kind in resources.KINDS:
        store = resources.Store(kind, engine, policy)
        if conductor is not None:
            tagged = tags.TagStore(store, policy, conductor)
            found[f"/v2.0/{kind.plural}/{{record_id}}/tags"] = tags.Tags(tagged)
            found[f"/v2.0/{kind.plural}/{{record_id}}/tags/{{tag}}"] = tags.Tag(tagged)
        if kind is resources.PORT and conductor is not None:
            made = ports.Ports(store, policy, conductor)
            found["/v2.0/ports"] = ports.PortCollection(made)
            found["/v2.0/ports/{record_id}"] = ports.PortItem(made)
            continue
        found[f"/v2.0/{kind.plural}"] = resources.Collection(store)
        found[f"/v2.0/{kind.plural}/{{record_id}}"] = resources.Item(store)
    found |= {f"/v2.0/{path}": resources.Nothing(name) for path, name in _EMPTY.items()}
    return found
