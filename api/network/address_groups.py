"""Address groups: list, show, create, update, delete, and their addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.network import attributes, bodies, values
from api.network.bodies import Input
from api.network.owners import owner
from api.network.resources import Collection, Item, Store, of_all_projects, of_project
from api.network.revisions import constrain
from api.plain import Call, operation
from common.errors import Invalid
from conductor.rpc import ConductorRpc
from conductor.rpc.networks.address_groups import NewAddressGroup
from web.guard import Reply
from web.policy import Enforcer

_TEXT = values.text(255)


def _addresses(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ValueError(f"'{str(value)[:255]}' is not a list")
    found = [values.cidr(_with_length(one)) for one in value]
    for number, one in enumerate(found):
        if one in found[:number]:
            raise ValueError(f"Duplicate items in the list: '{one}'")
    return tuple(found)


def _with_length(value: Any) -> Any:
    """Return a prefix: an address alone is one of its whole length, as in Neutron."""
    if isinstance(value, str) and "/" not in value:
        return f"{value}/{128 if ':' in value else 32}"
    return value


_INPUTS: Mapping[str, Input] = {
    "name": Input(_TEXT),
    "description": Input(_TEXT),
    "addresses": Input(_addresses, updates=False),
    "tenant_id": Input(_TEXT, updates=False),
    "project_id": Input(_TEXT, updates=False),
}
_KNOWN = frozenset({*_INPUTS, *(each.name for each in attributes.ADDRESS_GROUP)})


class Groups:
    """What the resources need."""

    def __init__(self, store: Store, policy: Enforcer, conductor: ConductorRpc) -> None:
        self.store, self.policy, self.conductor = store, policy, conductor

    def check(self, call: Call, verb: str, project_id: str) -> None:
        """Raise Forbidden unless the policy allows it to the user; record in the context, for the
        conductor, whether the user may act on groups of all projects."""
        self.policy.check(call.ctxt, f"{verb}_address_group", of_project(project_id))
        call.ctxt.is_admin = of_all_projects(self.policy, call.ctxt)


class AddressGroupCollection(Collection):
    """``/address-groups``."""

    def __init__(self, groups: Groups) -> None:
        super().__init__(groups.store)
        self._groups = groups

    @operation(asks=("create_{noun}",), status=201)
    def on_post(self, call: Call) -> Any:
        """Make an address group, or all of a list, or none."""
        groups = self._groups
        asked, many = bodies.of_create(call.body(), "address_group", _INPUTS, _KNOWN)
        new = [self._new(call, one) for one in asked]
        made = groups.conductor.create_address_groups(call.ctxt, new)
        return groups.store.made(call.ctxt, made, many=many)

    def _new(self, call: Call, asked: Mapping[str, Any]) -> NewAddressGroup:
        project_id = owner(call, self._groups.policy, "address group", asked)
        self._groups.check(call, "create", project_id)
        name, description = asked.get("name", ""), asked.get("description", "")
        return NewAddressGroup(project_id, name, description, asked.get("addresses", ()))


class AddressGroupItem(Item):
    """``/address-groups/{id}``."""

    def __init__(self, groups: Groups) -> None:
        super().__init__(groups.store)
        self._groups = groups

    @operation(asks=("update_{noun}",))
    def on_put(self, call: Call, record_id: str) -> Any:
        """Change name and description of an address group."""
        groups = self._groups
        group = groups.store.find(call.ctxt, record_id)
        constrain(call)
        asked = bodies.of_update(call.body(), "address_group", _INPUTS, _KNOWN)
        groups.check(call, "update", group.project_id)
        if asked:
            groups.conductor.update_address_group(call.ctxt, group.id, asked)
        return groups.store.shown_one(call.ctxt, group.id)

    @operation(asks=("delete_{noun}",), status=204)
    def on_delete(self, call: Call, record_id: str) -> Reply:
        """Delete an address group that no rule names."""
        group = self._groups.store.find(call.ctxt, record_id)
        constrain(call)
        self._groups.check(call, "delete", group.project_id)
        self._groups.conductor.delete_address_group(call.ctxt, group.id)
        return Reply()


class Addresses:
    """``/address-groups/{id}/add_addresses`` and ``…/remove_addresses``."""

    def __init__(self, groups: Groups, parameter: str) -> None:
        """``parameter``: of the conductor's call, ``add`` or ``remove``."""
        self._groups, self._parameter = groups, parameter

    @operation(asks=("update_address_group",))
    def on_put(self, call: Call, record_id: str) -> Any:
        """Add addresses to an address group, or remove some."""
        groups = self._groups
        group = groups.store.find(call.ctxt, record_id)
        groups.check(call, "update", group.project_id)
        change = {"add": (), "remove": (), self._parameter: _body(call.body())}
        groups.conductor.change_addresses(call.ctxt, group.id, **change)
        return groups.store.shown_one(call.ctxt, group.id)


def _body(body: Any) -> tuple[str, ...]:
    """Return the addresses of a body: ``{"addresses": […]}``, in a wrapper or not."""
    asked = body.get("address_group", body) if isinstance(body, dict) else None
    if not isinstance(asked, dict) or asked.keys() != {"addresses"}:
        raise Invalid("Missing addresses, or body contains invalid data")
    try:
        found = _addresses(asked["addresses"])
    except ValueError as error:
        raise Invalid(f"Invalid input for addresses. Reason: {error}.") from error
    if not found:
        raise Invalid("Invalid input for addresses. Reason: there is none.")
    return found
