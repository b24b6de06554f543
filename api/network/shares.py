"""RBAC policies: with whom networks and groups are shared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.network import attributes, bodies, values
from api.network.attributes import Record
from api.network.bodies import Input
from api.network.errors import InvalidInput
from api.network.owners import owner
from api.network.resources import Collection, Item, Store, Target, of_project, target_of
from api.plain import Call, operation
from common.errors import Invalid
from conductor.rpc import ConductorRpc
from conductor.rpc.networks.networks import NewShare
from web.guard import Reply
from web.policy import Enforcer

_NAME = values.text(255)


def _target(value: Any) -> str:
    found = _NAME(value)
    if not found.strip():
        raise ValueError("'' is not a valid string")
    return found


_INPUTS: Mapping[str, Input] = {
    "object_type": Input(_NAME, updates=False, required=True),
    "object_id": Input(values.an_id, updates=False, required=True),
    "target_tenant": Input(_target, required=True),
    "action": Input(_NAME, updates=False, required=True),
    "tenant_id": Input(_NAME, updates=False),
    "project_id": Input(_NAME, updates=False),
}
_KNOWN = frozenset({*_INPUTS, *(each.name for each in attributes.SHARE)})


class Shares:
    """What both resources need."""

    def __init__(
        self,
        store: Store,
        objects: Mapping[str, Store],
        policy: Enforcer,
        conductor: ConductorRpc,
    ) -> None:
        """``objects``: type of what can be shared → its records."""
        self.store, self.objects = store, objects
        self.policy, self.conductor = policy, conductor

    def check(self, call: Call, verb: str, target: Target, whom: str | None = None) -> None:
        """Raise Forbidden unless the policy allows it to the user; ``whom``: the target tenant."""
        self.policy.check(call.ctxt, f"{verb}_rbac_policy", target)
        if whom is not None:
            named = {**target, "target_tenant": whom}
            self.policy.check(call.ctxt, f"{verb}_rbac_policy:target_tenant", named)


class ShareCollection(Collection):
    """``/rbac-policies``."""

    def __init__(self, shares: Shares) -> None:
        super().__init__(shares.store)
        self._shares = shares

    @operation(asks=("create_{noun}",), status=201)
    def on_post(self, call: Call) -> Any:
        """Share a network or a group with a project, or with all."""
        asked, many = bodies.of_create(call.body(), "rbac_policy", _INPUTS, _KNOWN)
        for one in asked:
            self._require_type(one)
        kinds = sorted({one["object_type"] for one in asked})
        if len(kinds) > 1:
            raise Invalid("All policies of one request must be of objects of one type.")
        wanted_ids = [one["object_id"] for one in asked]
        found = self._shares.objects[kinds[0]].find_all(call.ctxt, wanted_ids)
        wanted = [self._new(call, one, found[one["object_id"]]) for one in asked]
        made = self._shares.conductor.create_network_shares(call.ctxt, wanted)
        return self._store.made(call.ctxt, made, many=many)

    def _require_type(self, asked: Mapping[str, Any]) -> None:
        """Raise InvalidInput for other types that Neutron can share."""
        kind, action = asked["object_type"], asked["action"]
        if kind not in self._shares.objects:
            raise InvalidInput(
                f"Invalid input for operation: '{kind}' is not a valid RBAC object type."
            )
        if action != "access_as_shared":
            raise InvalidInput(
                f"Invalid action '{action}' for object type '{kind}'. Valid actions: "
                "access_as_shared"
            )

    def _new(self, call: Call, asked: Mapping[str, Any], found: Record) -> NewShare:
        shares, whom = self._shares, asked["target_tenant"]
        project_id = owner(call, shares.policy, "rbac_policy", asked)
        shares.check(call, "create", of_project(project_id), whom)
        if found.project_id != call.ctxt.project_id and not shares.policy.allows(
            call.ctxt, "admin_only", {}
        ):
            raise Invalid(
                "Invalid input for operation: Only admins can manipulate policies on "
                f"{asked['object_type'].replace('_', ' ')}s they do not own.",
                type="InvalidInput",
            )
        return NewShare(project_id, found.id, whom, asked["object_type"])


class ShareItem(Item):
    """``/rbac-policies/{id}``."""

    def __init__(self, shares: Shares) -> None:
        super().__init__(shares.store)
        self._shares = shares

    @operation(asks=("update_{noun}",))
    def on_put(self, call: Call, record_id: str) -> Any:
        """Have another project use it instead."""
        share = self._store.find(call.ctxt, record_id)
        asked = bodies.of_update(call.body(), "rbac_policy", _INPUTS, _KNOWN)
        self._shares.check(call, "update", target_of(share), asked.get("target_tenant"))
        if "target_tenant" in asked:
            self._shares.conductor.update_network_share(
                call.ctxt, share.id, asked["target_tenant"]
            )
        return self._store.shown_one(call.ctxt, share.id)

    @operation(asks=("delete_{noun}",), status=204)
    def on_delete(self, call: Call, record_id: str) -> Reply:
        """Share it no longer, where who loses it doesn't use it."""
        share = self._store.find(call.ctxt, record_id)
        self._shares.check(call, "delete", target_of(share))
        self._shares.conductor.delete_network_share(call.ctxt, share.id)
        return Reply()
