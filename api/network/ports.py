"""Ports that users make: create, update and delete."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from api.network import attributes, bodies, query, values
from api.network.bodies import Input
from api.network.resources import TARGET, Collection, Item, Store, of_all_projects, show
from api.plain import Call, operation
from common.errors import Invalid
from conductor.client import ConductorClient
from conductor.messages import NewPort, PortChange
from db.reads.networks import Port
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
    # What has one value alone: clients that send it are served.
    "admin_state_up": Input(values.only(True, why="a port can't be switched off here")),
    "device_id": Input(values.only("", None, why=_SERVERS_ALONE)),
    "device_owner": Input(values.only("", None, why=_SERVERS_ALONE)),
    "security_groups": Input(values.only([], why="there are no security groups here")),
    "allowed_address_pairs": Input(values.only([], why="nothing is filtered here")),
    "port_security_enabled": Input(values.only(False, why="nothing is filtered here")),
    "binding:vnic_type": Input(values.only("normal", why="there is no other type here")),
    "binding:profile": Input(values.only({}, None, why="there is nothing to choose here")),
    "binding:host_id": Input(values.only("", None, why=_SERVERS_ALONE)),
}
_KNOWN = frozenset({*_INPUTS, *(each.name for each in attributes.PORT)})


class Ports:
    """What both resources need."""

    def __init__(self, store: Store, policy: Enforcer, conductor: ConductorClient) -> None:
        self.store, self.policy, self.conductor = store, policy, conductor

    def any_address(self, call: Call, asked: Mapping[str, Any]) -> bool:
        """Return whether the address may be outside of the pools."""
        rule = "create_port:fixed_ips:ip_address"
        return bool(asked.get("fixed_ips")) and self.policy.allows(call.ctxt, rule, TARGET)

    def check(self, call: Call, verb: str, asked: Mapping[str, Any], project_id: str) -> None:
        """Raise Forbidden unless the policy allows it to whoever asks; tell the conductor whether
        that is for ports of any project."""
        target = {**TARGET, "project_id": project_id, "tenant_id": project_id}
        self.policy.check(call.ctxt, f"{verb}_port", target)
        if asked.get("mac_address") is not None:
            self.policy.check(call.ctxt, f"{verb}_port:mac_address", target)
        call.ctxt.is_admin = of_all_projects(self.policy, call.ctxt)

    def shown_one(self, call: Call, port_id: str) -> dict[str, Any]:
        """Return a port as it is shown. Raises PortNotFound."""
        return {"port": show(self.store.find(call.ctxt, port_id), self.store.visible(call.ctxt))}

    def shown(self, call: Call, port_ids: Sequence[str]) -> list[dict[str, Any]]:
        """Return those of these ports that are still there, as they are shown."""
        found = self.store.read(call.ctxt, query.Query(where={"id": list(port_ids)}))
        by_id = {each.id: each for each in found}
        visible = self.store.visible(call.ctxt)
        return [show(by_id[one], visible) for one in port_ids if one in by_id]


class PortCollection(Collection):
    """``/ports``."""

    def __init__(self, ports: Ports) -> None:
        super().__init__(ports.store)
        self._ports = ports

    @operation(status=201)
    def on_post(self, call: Call) -> Any:
        """Make a port, or all of a list, or none."""
        asked, many = bodies.of_create(call.body(), "port", _INPUTS, _KNOWN)
        made = self._ports.conductor.create_ports(
            call.ctxt, [self._new(call, one) for one in asked]
        )
        if not many:
            return self._ports.shown_one(call, made[0])
        return {"ports": self._ports.shown(call, made)}

    def _new(self, call: Call, asked: Mapping[str, Any]) -> NewPort:
        ports, project_id = self._ports, self._project(call, asked)
        ports.check(call, "create", asked, project_id)
        return NewPort(
            project_id,
            asked["network_id"],
            asked.get("name", ""),
            asked.get("description", ""),
            asked.get("mac_address"),
            asked.get("fixed_ips"),
            ports.any_address(call, asked),
            asked.get("tags", ()),
        )

    def _project(self, call: Call, asked: Mapping[str, Any]) -> str:
        named = {asked[name] for name in ("project_id", "tenant_id") if name in asked}
        if len(named) > 1:
            raise Invalid("'project_id' and 'tenant_id' do not match")
        own = call.ctxt.project_id or ""
        project_id = next(iter(named), own)
        if not project_id:
            raise Invalid("A port needs a project: neither the request nor its token names one.")
        if project_id != own and not self._ports.policy.allows(call.ctxt, "admin_only", {}):
            raise Invalid(
                "Specifying 'project_id' or 'tenant_id' other than the authenticated project in "
                "request requires admin privileges"
            )
        return str(project_id)


class PortItem(Item):
    """``/ports/{id}``."""

    def __init__(self, ports: Ports) -> None:
        super().__init__(ports.store)
        self._ports = ports

    @operation()
    def on_put(self, call: Call, record_id: str) -> Any:
        """Change a port."""
        port, ports = self._port(call, record_id), self._ports
        asked = bodies.of_update(call.body(), "port", _INPUTS, _KNOWN)
        ports.check(call, "update", asked, port.project_id)
        wanted = PortChange(
            asked.get("name"),
            asked.get("description"),
            asked.get("mac_address"),
            asked.get("fixed_ips"),
            ports.any_address(call, asked),
        )
        if dataclasses.replace(wanted, any_address=False) != PortChange():
            ports.conductor.update_port(call.ctxt, port.id, wanted)
        return ports.shown_one(call, port.id)

    @operation(status=204)
    def on_delete(self, call: Call, record_id: str) -> Reply:
        """Delete a port; one that a server has is detached first."""
        port = self._port(call, record_id)
        self._ports.check(call, "delete", {}, port.project_id)
        self._ports.conductor.delete_port(call.ctxt, port.id)
        return Reply()

    def _port(self, call: Call, record_id: str) -> Port:
        found = self._ports.store.find(call.ctxt, record_id)
        assert isinstance(found, Port)
        return found
