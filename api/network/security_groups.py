"""Security groups: list (which makes the default one), create, update and delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.network import attributes, bodies, values
from api.network.bodies import Input
from api.network.owners import owner
from api.network.resources import Collection, Item, Store, of_all_projects, of_project
from api.network.revisions import constrain
from api.plain import Call, operation
from common.errors import Conflict
from common.resources.security_rules import DEFAULT
from conductor.rpc import ConductorRpc
from conductor.rpc.networks.security_groups import NewSecurityGroup, SecurityGroupChange
from db.reads.networks.security_groups import SecurityGroup, SecurityGroupRule
from web.guard import Reply
from web.policy import Enforcer

_TEXT = values.text(255)
_LONGEST_PROJECT_ID = 255


def checked_name(value: Any) -> str:
    """Return the name for a group. Raises Invalid, Conflict for that of default groups."""
    found = _TEXT(value)
    if found.lower() == DEFAULT:
        raise Conflict(
            "Default security group already exists.", type="SecurityGroupDefaultAlreadyExists"
        )
    return found


_INPUTS: Mapping[str, Input] = {
    "name": Input(checked_name),
    "description": Input(_TEXT),
    "tenant_id": Input(_TEXT, updates=False),
    "project_id": Input(_TEXT, updates=False),
    # As asked: Proxmox VE tracks connections in any case.
    "stateful": Input(values.boolean),
}
_KNOWN = frozenset({*_INPUTS, *(each.name for each in attributes.SECURITY_GROUP)})


class Groups:
    """What the resources of groups and of rules need."""

    def __init__(self, store: Store, policy: Enforcer, conductor: ConductorRpc) -> None:
        self.store, self.policy, self.conductor = store, policy, conductor

    def check(self, call: Call, rule: str, project_id: str) -> None:
        """Raise Forbidden unless the policy allows it to the user; record in the context, for the
        conductor, whether the user may act on groups of all projects."""
        target = of_project(project_id)
        self.policy.check(call.ctxt, rule, target)
        call.ctxt.is_admin = of_all_projects(self.policy, call.ctxt)

    def ensure_default(self, call: Call) -> None:
        """Ensure that the project, or the project in the list's filter, has a default group."""
        named = [value for name, value in call.pairs if name in {"project_id", "tenant_id"}]
        project_id = next(iter(named), "") or call.ctxt.project_id or ""
        target = of_project(project_id)
        if not 0 < len(project_id) <= _LONGEST_PROJECT_ID or "\0" in project_id:
            return
        allowed = self.policy.allows(call.ctxt, "create_default_security_group", target)
        if allowed and not self.store.has_default_group(project_id):
            self.conductor.ensure_default_security_group(call.ctxt, project_id)

    def of(self, call: Call, record_id: str) -> SecurityGroup | SecurityGroupRule:
        """Return a group or a rule. Raises the kind's `missing`."""
        found = self.store.find(call.ctxt, record_id)
        assert isinstance(found, SecurityGroup | SecurityGroupRule)
        return found


class GroupCollection(Collection):
    """``/security-groups``."""

    def __init__(self, groups: Groups) -> None:
        super().__init__(groups.store)
        self._groups = groups

    @operation(asks=("get_{noun}", "create_default_security_group"))
    def on_get(self, call: Call) -> Any:
        """List groups, one page where `limit` is given; the project gets its default one."""
        self._groups.ensure_default(call)
        return self.listed(call)

    @operation(asks=("create_{noun}",), status=201)
    def on_post(self, call: Call) -> Any:
        """Make a group that lets all out and nothing in, or all of a list, or none."""
        groups = self._groups
        asked, many = bodies.of_create(call.body(), "security_group", _INPUTS, _KNOWN)
        made = groups.conductor.create_security_groups(
            call.ctxt, [self._new(call, one) for one in asked]
        )
        return groups.store.made(call.ctxt, made, many=many)

    def _new(self, call: Call, asked: Mapping[str, Any]) -> NewSecurityGroup:
        project_id = owner(call, self._groups.policy, "security group", asked)
        self._groups.check(call, "create_security_group", project_id)
        name, description = asked.get("name", ""), asked.get("description", "")
        return NewSecurityGroup(project_id, name, description, asked.get("stateful", True))


class GroupItem(Item):
    """``/security-groups/{id}``."""

    def __init__(self, groups: Groups) -> None:
        super().__init__(groups.store)
        self._groups = groups

    @operation(asks=("update_{noun}",))
    def on_put(self, call: Call, record_id: str) -> Any:
        """Change a group."""
        group, groups = self._groups.of(call, record_id), self._groups
        constrain(call)
        asked = bodies.of_update(call.body(), "security_group", _INPUTS, _KNOWN)
        groups.check(call, "update_security_group", group.project_id)
        parts = (asked.get(name) for name in ("name", "description", "stateful"))
        wanted = SecurityGroupChange(*parts)
        if wanted != SecurityGroupChange():
            groups.conductor.update_security_group(call.ctxt, group.id, wanted)
        return groups.store.shown_one(call.ctxt, group.id)

    @operation(asks=("delete_{noun}",), status=204)
    def on_delete(self, call: Call, record_id: str) -> Reply:
        """Delete a group that no port is in, with the rules of other groups that name it."""
        group = self._groups.of(call, record_id)
        constrain(call)
        self._groups.check(call, "delete_security_group", group.project_id)
        self._groups.conductor.delete_security_group(call.ctxt, group.id)
        return Reply()
