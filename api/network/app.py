"""Builds the Network API as a WSGI application."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import sqlalchemy as sa
from oslo_config import cfg

from api import plain
from api.network import (
    absent,
    address_groups,
    availability,
    default_rules,
    discovery,
    ports,
    quotas,
    resources,
    tags,
    topology,
)
from api.network.errors import FAULTS
from api.network.networks import NetworkCollection, NetworkItem
from api.network.paths import WithoutSuffix
from api.network.policies import RULES
from api.network.security_group_rules import RuleCollection, RuleItem
from api.network.security_groups import GroupCollection, GroupItem, Groups
from api.network.shares import ShareCollection, ShareItem, Shares
from api.network.subnets import SubnetCollection, SubnetItem
from common.resources import networks as choice
from common.resources import quotas as quota_options
from common.resources.filtering import Filtering
from conductor.rpc import ConductorRpc
from db.reading import reading
from db.reads.hosts import clusters
from web import protected
from web.assembly import Application, Protect, assemble
from web.policy import Enforcer
from web.protected import Protected, Served, served_by
from web.wsgi import JoinSlashes, Wsgi


def make_app(
    conf: cfg.ConfigOpts,
    engine: sa.Engine,
    protect: Protect | None = None,
    conductor: ConductorRpc | None = None,
) -> Wsgi:
    """Return the Network API; `engine` reads the cloud database, `protect` is as in `assemble`.

    Without a `conductor` it is read-only.
    """
    quota_options.register(conf)
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


def served() -> list[Served]:
    """Return all operations by path, whose parameters have the names of Neutron's reference."""
    nothing: Any = None
    paths = routes(cfg.ConfigOpts(), nothing, nothing, cast(ConductorRpc, ())).items()
    return list(served_by((path.replace("{record_id}", "{id}"), one) for path, one in paths))


def operations() -> dict[str, list[Protected]]:
    """Return what each rule protects, as the sample policy lists it."""
    return protected.operations(RULES, served())


def routes(
    conf: cfg.ConfigOpts,
    engine: sa.Engine,
    policy: Enforcer,
    conductor: ConductorRpc | None = None,
) -> dict[str, object]:
    """Path → what serves it."""
    limits = quotas.Limits(conf, engine)
    found: dict[str, object] = {
        "/": discovery.Versions(),
        "/v2.0": discovery.Index(),
        "/v2.0/extensions": discovery.Extensions(),
        "/v2.0/extensions/{alias}": discovery.Extension(),
        "/v2.0/network-ip-availabilities": availability.Availabilities(engine),
        "/v2.0/network-ip-availabilities/{network_id}": availability.Availability(engine),
        "/v2.0/quotas": quotas.Quotas(limits),
        "/v2.0/quotas/project": quotas.OwnProject("project"),
        "/v2.0/quotas/tenant": quotas.OwnProject("tenant"),
        "/v2.0/quotas/{project_id}": quotas.Quota(limits, conductor),
        "/v2.0/quotas/{project_id}/default": quotas.QuotaDefaults(limits),
        "/v2.0/quotas/{project_id}/details": quotas.QuotaDetails(limits),
    }
    filtering = Filtering(conf, _unfiltered)
    stores = {
        kind.plural: resources.Store(kind, engine, policy, filtering) for kind in resources.KINDS
    }
    for store in stores.values():
        path = f"/v2.0/{store.kind.path}"
        found[path] = resources.Collection(store)
        found[f"{path}/{{record_id}}"] = resources.Item(store)
    prefixes = resources.Store(resources.ADDRESS_GROUP, engine, policy)
    found["/v2.0/address-groups"] = resources.Collection(prefixes)
    found["/v2.0/address-groups/{record_id}"] = resources.Item(prefixes)
    of_new = resources.Store(resources.DEFAULT_RULE, engine, policy)
    found["/v2.0/default-security-group-rules"] = resources.Collection(of_new)
    found["/v2.0/default-security-group-rules/{record_id}"] = resources.Item(of_new)
    if conductor is not None:
        made = default_rules.DefaultRuleCollection(of_new, policy, conductor)
        found["/v2.0/default-security-group-rules"] = made
        one = default_rules.DefaultRuleItem(of_new, policy, conductor)
        found["/v2.0/default-security-group-rules/{record_id}"] = one
        found |= _address_groups(prefixes, policy, conductor)
        shared = {
            "network": stores["networks"],
            "security_group": stores["security_groups"],
            "address_group": prefixes,
        }
        rbac = resources.Store(resources.SHARE, engine, policy)
        found |= _writing(stores, Shares(rbac, shared, policy, conductor), policy, conductor)
    return found | absent.routes()


def _unfiltered(engine: sa.Engine) -> Mapping[str, str]:
    with reading(engine) as connection:
        return clusters.unfiltered(connection)


def _address_groups(
    store: resources.Store, policy: Enforcer, conductor: ConductorRpc
) -> dict[str, object]:
    groups = address_groups.Groups(store, policy, conductor)
    one = "/v2.0/address-groups/{record_id}"
    return {
        "/v2.0/address-groups": address_groups.AddressGroupCollection(groups),
        one: address_groups.AddressGroupItem(groups),
        f"{one}/add_addresses": address_groups.Addresses(groups, "add"),
        f"{one}/remove_addresses": address_groups.Addresses(groups, "remove"),
    }


def _writing(
    stores: Mapping[str, resources.Store],
    shared: Shares,
    policy: Enforcer,
    conductor: ConductorRpc,
) -> dict[str, object]:
    """Path → what serves it, of what can be changed."""
    networks, subnets = stores["networks"], stores["subnets"]
    made = ports.Ports(stores["ports"], networks, policy, conductor)
    groups = Groups(stores["security_groups"], policy, conductor)
    rules = Groups(stores["security_group_rules"], policy, conductor)
    found: dict[str, object] = {
        "/v2.0/rbac-policies": ShareCollection(shared),
        "/v2.0/rbac-policies/{record_id}": ShareItem(shared),
        "/v2.0/auto-allocated-topology/{project_id}": topology.Topology(conductor),
        "/v2.0/networks": NetworkCollection(networks, policy, conductor),
        "/v2.0/networks/{record_id}": NetworkItem(networks, policy, conductor),
        "/v2.0/subnets": SubnetCollection(subnets, networks, policy, conductor),
        "/v2.0/subnets/{record_id}": SubnetItem(subnets, policy, conductor),
        "/v2.0/ports": ports.PortCollection(made),
        "/v2.0/ports/{record_id}": ports.PortItem(made),
        "/v2.0/security-groups": GroupCollection(groups),
        "/v2.0/security-groups/{record_id}": GroupItem(groups),
        "/v2.0/security-group-rules": RuleCollection(rules),
        "/v2.0/security-group-rules/{record_id}": RuleItem(rules),
    }
    for store in stores.values():
        if store.kind is not resources.SECURITY_GROUP_RULE:
            tagged = tags.TagStore(store, policy, conductor)
            path = f"/v2.0/{store.kind.path}/{{record_id}}/tags"
            found[path] = tags.Tags(tagged)
            found[f"{path}/{{tag}}"] = tags.Tag(tagged)
    return found
