"""Subnets: create, update and delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.network import attributes, bodies, values
from api.network.attributes import Record
from api.network.bodies import Input
from api.network.owners import owner
from api.network.resources import Collection, Item, Store, of_project, target_of
from api.network.revisions import constrain
from api.plain import Call, operation
from common.errors import Invalid
from conductor.rpc import ConductorRpc
from conductor.rpc.networks.networks import NewSubnet
from web.guard import Reply
from web.policy import Enforcer

_NAME = values.text(255)
_MODE = values.maybe(values.one_of("slaac", "dhcpv6-stateful", "dhcpv6-stateless"))
_NO_POOLS = "there are no subnet pools here"
_INPUTS: Mapping[str, Input] = {
    "network_id": Input(values.an_id, updates=False, required=True),
    "ip_version": Input(values.integer(4, 6), updates=False, required=True),
    "cidr": Input(values.maybe(values.cidr), updates=False),
    "tenant_id": Input(_NAME, updates=False),
    "project_id": Input(_NAME, updates=False),
    "name": Input(_NAME),
    "description": Input(_NAME),
    "gateway_ip": Input(values.maybe(values.ip_address)),
    "allocation_pools": Input(values.ip_pools),
    "dns_nameservers": Input(values.nameservers),
    "host_routes": Input(values.host_routes),
    "enable_dhcp": Input(values.boolean),
    "ipv6_ra_mode": Input(_MODE, updates=False),
    "ipv6_address_mode": Input(_MODE, updates=False),
    # What has one value alone: clients that send it are served.
    "subnetpool_id": Input(values.only(None, why=_NO_POOLS), updates=False),
    "use_default_subnetpool": Input(values.only(False, why=_NO_POOLS), updates=False),
    "service_types": Input(values.only([], why="all servers can use every subnet here")),
}
_KNOWN = frozenset({*_INPUTS, *(each.name for each in attributes.SUBNET)})
_OF_ADDRESSES = (
    *("cidr", "ip_version", "gateway_ip", "allocation_pools", "dns_nameservers", "host_routes"),
    *("enable_dhcp", "ipv6_ra_mode", "ipv6_address_mode"),
)


class SubnetCollection(Collection):
    """``/subnets``."""

    def __init__(
        self, store: Store, networks: Store, policy: Enforcer, conductor: ConductorRpc
    ) -> None:
        super().__init__(store)
        self._networks, self._policy, self._conductor = networks, policy, conductor

    @operation(asks=("create_{noun}",), status=201)
    def on_post(self, call: Call) -> Any:
        """Make a subnet, or all of a list, or none."""
        asked, many = bodies.of_create(call.body(), "subnet", _INPUTS, _KNOWN)
        networks = self._networks.find_all(call.ctxt, [one["network_id"] for one in asked])
        wanted = [self._new(call, one, networks[one["network_id"]]) for one in asked]
        made = self._conductor.create_subnets(call.ctxt, wanted)
        return self._store.made(call.ctxt, made, many=many)

    def _new(self, call: Call, asked: Mapping[str, Any], network: Record) -> NewSubnet:
        project_id = owner(call, self._policy, "subnet", asked)
        target = of_project(project_id, network.project_id)
        self._policy.check(call.ctxt, "create_subnet", target)
        if asked.get("cidr") is None:
            raise Invalid(
                "Bad subnets request: a subnetpool must be specified in the absence of a cidr.",
                type="BadRequest",
            )
        return NewSubnet(
            project_id,
            network.id,
            asked.get("name", ""),
            asked.get("description", ""),
            {name: asked[name] for name in _OF_ADDRESSES if name in asked},
        )


class SubnetItem(Item):
    """``/subnets/{id}``."""

    def __init__(self, store: Store, policy: Enforcer, conductor: ConductorRpc) -> None:
        super().__init__(store)
        self._policy, self._conductor = policy, conductor

    @operation(asks=("update_{noun}",))
    def on_put(self, call: Call, record_id: str) -> Any:
        """Change a subnet."""
        subnet = self._store.find(call.ctxt, record_id)
        constrain(call)
        asked = bodies.of_update(call.body(), "subnet", _INPUTS, _KNOWN)
        self._policy.check(call.ctxt, "update_subnet", target_of(subnet))
        changes = {name: asked[name] for name in asked if name != "service_types"}
        if changes:
            self._conductor.update_subnet(call.ctxt, subnet.id, changes)
        return self._store.shown_one(call.ctxt, subnet.id)

    @operation(asks=("delete_{noun}",), status=204)
    def on_delete(self, call: Call, record_id: str) -> Reply:
        """Delete a subnet; refused while a port has an address of the subnet."""
        subnet = self._store.find(call.ctxt, record_id)
        self._policy.check(call.ctxt, "delete_subnet", target_of(subnet))
        constrain(call)
        self._conductor.delete_subnet(call.ctxt, subnet.id)
        return Reply()
