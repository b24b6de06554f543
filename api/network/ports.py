"""Ports that users make: create, update and delete."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from api.network import absent, attributes, bodies, values
from api.network.attributes import Record
from api.network.bodies import Input
from api.network.owners import owner
from api.network.resources import (
    Collection,
    Item,
    Store,
    Target,
    of_all_projects,
    of_project,
    target_of,
)
from api.network.revisions import constrain
from api.plain import Call, operation
from conductor.rpc import ConductorRpc
from conductor.rpc.networks.ports import NewPort, PortChange
from db.reads.networks.networks import Port
from web.guard import Reply
from web.policy import Enforcer

_NAME = values.text(255)
_SERVERS_ALONE = "a server gets a port by naming it, when it is created or attaches an interface"
_INPUTS: Mapping[str, Input] = {
    "network_id": Input(values.an_id, updates=False, required=True),
    "tenant_id": Input(_NAME, updates=False),
    "project_id": Input(_NAME, updates=False),
    "name": Input(_NAME),
    "description": Input(_NAME),
    "mac_address": Input(values.mac),
    "fixed_ips": Input(values.fixed_ips),
    "tags": Input(values.tags, updates=False),
    "admin_state_up": Input(values.boolean),
    # What has one value alone: clients that send it are served.
    "device_id": Input(values.only("", None, why=_SERVERS_ALONE)),
    "device_owner": Input(values.only("", None, why=_SERVERS_ALONE)),
    "security_groups": Input(values.ids),
    "allowed_address_pairs": Input(values.address_pairs),
    "port_security_enabled": Input(values.boolean),
    "qos_policy_id": Input(values.only(None, why=absent.NO_QOS.rstrip("."))),
    "binding:vnic_type": Input(values.only("normal", why="there is no other type here")),
    "binding:profile": Input(values.only({}, None, why="there is nothing to choose here")),
    "binding:host_id": Input(lambda value: _NAME("" if value is None else value)),
}
_KNOWN = frozenset({*_INPUTS, *(each.name for each in attributes.PORT)})


class Ports:
    """What both resources need."""

    def __init__(
        self, store: Store, networks: Store, policy: Enforcer, conductor: ConductorRpc
    ) -> None:
        self.store, self.networks = store, networks
        self.policy, self.conductor = policy, conductor

    def any_address(self, call: Call, asked: Mapping[str, Any], target: Target) -> bool:
        """Return whether the address may be outside of the pools."""
        rule = "create_port:fixed_ips:ip_address"
        return bool(asked.get("fixed_ips")) and self.policy.allows(call.ctxt, rule, target)

    def check(self, call: Call, verb: str, asked: Mapping[str, Any], target: Target) -> None:
        """Raise Forbidden unless the policy allows it to the user; record in the context, for the
        conductor, whether the user may act on ports of all projects."""
        self.policy.check(call.ctxt, f"{verb}_port", target)
        if asked.get("mac_address") is not None:
            self.policy.check(call.ctxt, f"{verb}_port:mac_address", target)
        if asked.get("allowed_address_pairs"):
            self.policy.check(call.ctxt, f"{verb}_port:allowed_address_pairs", target)
        if asked.get("binding:host_id"):
            self.policy.check(call.ctxt, f"{verb}_port:binding:host_id", target)
        if self.store.is_filtered() and "port_security_enabled" in asked:
            self.policy.check(call.ctxt, f"{verb}_port:port_security_enabled", target)
        call.ctxt.is_admin = of_all_projects(self.policy, call.ctxt)


class PortCollection(Collection):
    """``/ports``."""

    def __init__(self, ports: Ports) -> None:
        super().__init__(ports.store)
        self._ports = ports

    @operation(asks=("create_{noun}", "create_port:fixed_ips:ip_address"), status=201)
    def on_post(self, call: Call) -> Any:
        """Make a port, or all of a list, or none."""
        asked, many = bodies.of_create(call.body(), "port", _INPUTS, _KNOWN)
        networks = self._ports.networks.find_all(call.ctxt, [one["network_id"] for one in asked])
        wanted = [self._new(call, one, networks[one["network_id"]]) for one in asked]
        made = self._ports.conductor.create_ports(call.ctxt, wanted)
        return self._store.made(call.ctxt, made, many=many)

    def _new(self, call: Call, asked: Mapping[str, Any], network: Record) -> NewPort:
        ports = self._ports
        project_id = owner(call, ports.policy, "port", asked)
        target = of_project(project_id, network.project_id)
        ports.check(call, "create", asked, target)
        return NewPort(
            project_id,
            asked["network_id"],
            asked.get("name", ""),
            asked.get("description", ""),
            asked.get("mac_address"),
            asked.get("fixed_ips"),
            ports.any_address(call, asked, target),
            asked.get("tags", ()),
            asked.get("security_groups"),
            asked.get("port_security_enabled"),
            asked.get("allowed_address_pairs", ()),
            asked.get("admin_state_up", True),
            asked.get("binding:host_id", ""),
        )


class PortItem(Item):
    """``/ports/{id}``."""

    def __init__(self, ports: Ports) -> None:
        super().__init__(ports.store)
        self._ports = ports

    @operation(asks=("update_{noun}", "create_port:fixed_ips:ip_address"))
    def on_put(self, call: Call, record_id: str) -> Any:
        """Change a port."""
        port, ports = self._port(call, record_id), self._ports
        constrain(call)
        asked = bodies.of_update(call.body(), "port", _INPUTS, _KNOWN)
        target = target_of(port)
        ports.check(call, "update", asked, target)
        wanted = PortChange(
            asked.get("name"),
            asked.get("description"),
            asked.get("mac_address"),
            asked.get("fixed_ips"),
            ports.any_address(call, asked, target),
            asked.get("security_groups"),
            asked.get("port_security_enabled"),
            asked.get("allowed_address_pairs"),
            asked.get("admin_state_up"),
            asked.get("binding:host_id"),
        )
        if dataclasses.replace(wanted, any_address=False) != PortChange():
            ports.conductor.update_port(call.ctxt, port.id, wanted)
        return self._store.shown_one(call.ctxt, port.id)

    @operation(asks=("delete_{noun}",), status=204)
    def on_delete(self, call: Call, record_id: str) -> Reply:
        """Delete a port, after detaching it from its server."""
        port = self._port(call, record_id)
        constrain(call)
        self._ports.check(call, "delete", {}, target_of(port))
        self._ports.conductor.delete_port(call.ctxt, port.id)
        return Reply()

    def _port(self, call: Call, record_id: str) -> Port:
        found = self._ports.store.find(call.ctxt, record_id)
        assert isinstance(found, Port)
        return found
