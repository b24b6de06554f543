"""Networks of projects, and of administrators: create, update and delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.network import absent, attributes, bodies, values
from api.network.bodies import Input
from api.network.owners import owner
from api.network.policies import ADMINS_OWN, PROVIDER
from api.network.resources import Collection, Item, Store, of_project, target_of
from api.network.revisions import constrain
from api.plain import Call, operation
from conductor.rpc import ConductorRpc
from conductor.rpc.networks.networks import NewNetwork
from web.guard import Reply
from web.policy import Enforcer

_NAME = values.text(255)
#: the least that IPv4 needs, and the most that Proxmox VE takes
_MTU = values.integer(68, 65520)
_TAG = values.integer(0, 2**31 - 1)
_INPUTS: Mapping[str, Input] = {
    "name": Input(_NAME),
    "description": Input(_NAME),
    "tenant_id": Input(_NAME, updates=False),
    "project_id": Input(_NAME, updates=False),
    "mtu": Input(lambda value: None if value in (0, None) else _MTU(value)),
    "shared": Input(values.boolean),
    "router:external": Input(values.boolean),
    "provider:network_type": Input(values.maybe(_NAME), updates=False),
    "provider:physical_network": Input(values.maybe(_NAME), updates=False),
    "provider:segmentation_id": Input(values.maybe(_TAG), updates=False),
    "availability_zone_hints": Input(values.texts, updates=False),
    "admin_state_up": Input(values.boolean),
    "is_default": Input(values.boolean),
    "port_security_enabled": Input(values.boolean),
    "qos_policy_id": Input(values.only(None, why=absent.NO_QOS.rstrip("."))),
}
_KNOWN = frozenset({*_INPUTS, *(each.name for each in attributes.NETWORK)})
#: attribute → the conductor's word, of those that can be changed
_CHANGES: Mapping[str, str] = {
    **{name: name for name in ("name", "description", "mtu", "shared", "is_default")},
    "admin_state_up": "admin_state_up",
    "router:external": "external",
    "port_security_enabled": "port_security",
}


class NetworkCollection(Collection):
    """``/networks``."""

    def __init__(self, store: Store, policy: Enforcer, conductor: ConductorRpc) -> None:
        super().__init__(store)
        self._policy, self._conductor = policy, conductor

    @operation(asks=("create_{noun}",), status=201)
    def on_post(self, call: Call) -> Any:
        """Make a network, or all of a list, or none."""
        asked, many = bodies.of_create(call.body(), "network", _INPUTS, _KNOWN)
        wanted = [self._new(call, one) for one in asked]
        made = self._conductor.create_networks(call.ctxt, wanted)
        return self._store.made(call.ctxt, made, many=many)

    def _new(self, call: Call, asked: Mapping[str, Any]) -> NewNetwork:
        project_id = owner(call, self._policy, "network", asked)
        target = of_project(project_id, project_id)
        self._policy.check(call.ctxt, "create_network", target)
        for name in (*ADMINS_OWN, *(f"provider:{one}" for one in PROVIDER)):
            if asked.get(name):
                self._policy.check(call.ctxt, f"create_network:{name}", target)
        return NewNetwork(
            project_id,
            asked.get("name", ""),
            asked.get("description", ""),
            asked.get("mtu"),
            shared=asked.get("shared", False),
            external=asked.get("router:external", False),
            network_type=asked.get("provider:network_type"),
            bridge=asked.get("provider:physical_network"),
            vlan=asked.get("provider:segmentation_id"),
            availability_zone_hints=asked.get("availability_zone_hints", ()),
            is_default=asked.get("is_default", False),
            admin_state_up=asked.get("admin_state_up", True),
            port_security=asked.get("port_security_enabled"),
        )


class NetworkItem(Item):
    """``/networks/{id}``."""

    def __init__(self, store: Store, policy: Enforcer, conductor: ConductorRpc) -> None:
        super().__init__(store)
        self._policy, self._conductor = policy, conductor

    @operation(asks=("update_{noun}",))
    def on_put(self, call: Call, record_id: str) -> Any:
        """Change a network."""
        network = self._store.find(call.ctxt, record_id)
        constrain(call)
        asked = bodies.of_update(call.body(), "network", _INPUTS, _KNOWN)
        target = target_of(network)
        self._policy.check(call.ctxt, "update_network", target)
        for name in ADMINS_OWN:
            if name in asked:
                self._policy.check(call.ctxt, f"update_network:{name}", target)
        changes = {word: asked[name] for name, word in _CHANGES.items() if name in asked}
        if changes.get("mtu", 0) is None:
            del changes["mtu"]
        if changes:
            self._conductor.update_network(call.ctxt, network.id, changes)
        return self._store.shown_one(call.ctxt, network.id)

    @operation(asks=("delete_{noun}",), status=204)
    def on_delete(self, call: Call, record_id: str) -> Reply:
        """Delete a network, with its subnets, on which there is no port."""
        network = self._store.find(call.ctxt, record_id)
        self._policy.check(call.ctxt, "delete_network", target_of(network))
        constrain(call)
        self._conductor.delete_network(call.ctxt, network.id)
        return Reply()
