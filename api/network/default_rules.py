"""Default rules of security groups: list, show, create and delete; there is no update."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from api.network import attributes, bodies, rules, values
from api.network.bodies import Input
from api.network.resources import Collection, Item, Store, of_project
from api.plain import Call, operation
from common.errors import Invalid
from common.resources.security_rules import PARENT
from conductor.rpc import ConductorRpc
from conductor.rpc.networks.security_groups import NewDefaultRule
from web.guard import Reply
from web.policy import Enforcer

_TEXT = values.text(255)
_NOUN = "default_security_group_rule"
_INPUTS: Mapping[str, Input] = {
    "direction": Input(rules.direction, updates=False, required=True),
    "ethertype": Input(rules.ethertype, updates=False),
    "protocol": Input(rules.protocol, updates=False),
    "port_range_min": Input(rules.port, updates=False),
    "port_range_max": Input(rules.port, updates=False),
    "remote_ip_prefix": Input(rules.prefix, updates=False),
    "remote_group_id": Input(
        lambda value: value if value == PARENT else rules.group(value), updates=False
    ),
    "remote_address_group_id": Input(rules.group, updates=False),
    "description": Input(_TEXT, updates=False),
    "used_in_default_sg": Input(values.boolean, updates=False),
    "used_in_non_default_sg": Input(values.boolean, updates=False),
    "tenant_id": Input(_TEXT, updates=False),
    "project_id": Input(_TEXT, updates=False),
}
_KNOWN = frozenset({*_INPUTS, *(each.name for each in attributes.DEFAULT_RULE)})


class DefaultRuleCollection(Collection):
    """``/default-security-group-rules``."""

    def __init__(self, store: Store, policy: Enforcer, conductor: ConductorRpc) -> None:
        super().__init__(store)
        self._policy, self._conductor = policy, conductor

    @operation(asks=("create_{noun}",), status=201)
    def on_post(self, call: Call) -> Any:
        """Have new groups begin with a rule, or with all of a list, or none."""
        asked, many = bodies.of_create(call.body(), _NOUN, _INPUTS, _KNOWN)
        self._policy.check(call.ctxt, f"create_{_NOUN}", of_project(call.ctxt.project_id or ""))
        made = self._conductor.create_default_rules(call.ctxt, [_new(one) for one in asked])
        return self._store.made(call.ctxt, made, many=many)


class DefaultRuleItem(Item):
    """``/default-security-group-rules/{id}``."""

    def __init__(self, store: Store, policy: Enforcer, conductor: ConductorRpc) -> None:
        super().__init__(store)
        self._policy, self._conductor = policy, conductor

    @operation()
    def on_put(self, call: Call, record_id: str) -> NoReturn:
        """Refuse a change: nothing of a rule can be changed."""
        self._store.find(call.ctxt, record_id)
        bodies.of_update(call.body(), _NOUN, _INPUTS, _KNOWN)
        raise Invalid("A rule can't be changed: delete it, and create another one.")

    @operation(asks=("delete_{noun}",), status=204)
    def on_delete(self, call: Call, record_id: str) -> Reply:
        """Have new groups begin without a rule."""
        found = self._store.find(call.ctxt, record_id)
        self._policy.check(call.ctxt, f"delete_{_NOUN}", of_project(call.ctxt.project_id or ""))
        self._conductor.delete_default_rule(call.ctxt, found.id)
        return Reply()


def _new(asked: Mapping[str, Any]) -> NewDefaultRule:
    return NewDefaultRule(
        rules.rule(asked),
        asked.get("description", ""),
        asked.get("used_in_default_sg", False),
        asked.get("used_in_non_default_sg", True),
    )
