"""Rules of security groups: list, create and delete; there is no update."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from api.network import attributes, bodies, rules, values
from api.network.bodies import Input
from api.network.owners import owner
from api.network.resources import Collection, Item
from api.network.security_groups import Groups
from api.plain import Call, operation
from common.errors import Invalid
from conductor.rpc.networks.security_groups import NewRule
from web.guard import Reply

_TEXT = values.text(255)
_INPUTS: Mapping[str, Input] = {
    "security_group_id": Input(values.an_id, updates=False, required=True),
    "direction": Input(rules.direction, updates=False, required=True),
    "ethertype": Input(rules.ethertype, updates=False),
    "protocol": Input(rules.protocol, updates=False),
    "port_range_min": Input(rules.port, updates=False),
    "port_range_max": Input(rules.port, updates=False),
    "remote_ip_prefix": Input(rules.prefix, updates=False),
    "remote_group_id": Input(rules.group, updates=False),
    "description": Input(_TEXT, updates=False),
    "tenant_id": Input(_TEXT, updates=False),
    "project_id": Input(_TEXT, updates=False),
    "remote_address_group_id": Input(rules.group, updates=False),
}
_KNOWN = frozenset({*_INPUTS, *(each.name for each in attributes.SECURITY_GROUP_RULE)})


class RuleCollection(Collection):
    """``/security-group-rules``."""

    def __init__(self, groups: Groups) -> None:
        super().__init__(groups.store)
        self._groups = groups

    @operation(asks=("get_{noun}", "create_default_security_group"))
    def on_get(self, call: Call) -> Any:
        """List rules, one page where `limit` is given; the project gets its default group."""
        self._groups.ensure_default(call)
        return self.listed(call)

    @operation(asks=("create_{noun}",), status=201)
    def on_post(self, call: Call) -> Any:
        """Add a rule to a group, or all of a list, or none."""
        groups = self._groups
        asked, many = bodies.of_create(call.body(), "security_group_rule", _INPUTS, _KNOWN)
        project_id = self._project(call, asked)
        groups.check(call, "create_security_group_rule", project_id)
        new = [
            NewRule(one["security_group_id"], rules.rule(one), one.get("description", ""))
            for one in asked
        ]
        made = groups.conductor.create_security_group_rules(call.ctxt, project_id, new)
        return groups.store.made(call.ctxt, made, many=many)

    def _project(self, call: Call, asked: list[dict[str, Any]]) -> str:
        """Return the project of the group. Raises Invalid, NotFound."""
        groups = self._groups
        projects = {owner(call, groups.policy, "security group rule", one) for one in asked}
        if len(projects) > 1:
            raise Invalid(
                "Invalid input for operation: Multiple project_ids in bulk security group rule "
                "create not allowed.",
                type="SecurityGroupRulesNotSingleProject",
            )
        return groups.store.project_of_group(call.ctxt, asked[0]["security_group_id"])


class RuleItem(Item):
    """``/security-group-rules/{id}``."""

    def __init__(self, groups: Groups) -> None:
        super().__init__(groups.store)
        self._groups = groups

    @operation()
    def on_put(self, call: Call, record_id: str) -> NoReturn:
        """Refuse a change: nothing of a rule can be changed."""
        self._groups.of(call, record_id)
        bodies.of_update(call.body(), "security_group_rule", _INPUTS, _KNOWN)
        raise Invalid("A rule can't be changed: delete it, and create another one.")

    @operation(asks=("delete_{noun}",), status=204)
    def on_delete(self, call: Call, record_id: str) -> Reply:
        """Remove a rule from its group."""
        found = self._groups.of(call, record_id)
        self._groups.check(call, "delete_security_group_rule", found.project_id)
        self._groups.conductor.delete_security_group_rule(call.ctxt, found.id)
        return Reply()
