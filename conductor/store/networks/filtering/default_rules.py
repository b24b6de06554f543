"""Default rules: what new security groups begin with, which administrators choose.

The migrations write Neutron's first ones: all out, and in a project's default group its members.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import Conflict, NotFound
from common.resources.security_rules import PARENT, Rule
from common.rpc import deadlines
from conductor.rpc.networks.security_groups import NewDefaultRule
from db.schema import default_group_rules

_C = default_group_rules.c
_PARTS = (
    *("direction", "ethertype", "protocol", "port_range_min", "port_range_max"),
    *("remote_ip_prefix", "normalized_cidr", "remote_group_id", "remote_address_group_id"),
)


def of_new(connection: sa.Connection, group_id: str, *, default: bool) -> list[Rule]:
    """Return the rules of a new group; ``default``: of a project's default group."""
    used = _C.used_in_default_sg if default else _C.used_in_non_default_sg
    query = sa.select(*(_C[name] for name in _PARTS)).where(used).order_by(_C.created_at, _C.id)
    found = [Rule(*row) for row in connection.execute(query)]
    return [
        replace(one, remote_group_id=group_id) if one.remote_group_id == PARENT else one
        for one in found
    ]


def create(connection: sa.Connection, wanted: Sequence[NewDefaultRule]) -> list[str]:
    """Write rules; return their ids. Raises Conflict for a rule that exists, or is given twice."""
    meanings = [one.rule.meaning() for one in wanted]
    if len(set(meanings)) != len(meanings):
        raise Conflict(
            "Duplicate Default Security Group Rule in POST.", type="DuplicateDefaultSgRuleInPost"
        )
    for one, meaning in zip(wanted, meanings, strict=True):
        _require_new(connection, one, meaning)
    now = clock.utcnow()
    rows = [_row(one) | {"created_at": now} for one in wanted]
    connection.execute(default_group_rules.insert(), rows)
    return [str(row["id"]) for row in rows]


def delete(connection: sa.Connection, rule_id: str) -> None:
    """Delete a rule; groups that have it keep it. Raises NotFound."""
    gone = default_group_rules.delete().where(_C.id == rule_id)
    if not connection.execute(gone).rowcount:
        raise NotFound(
            f"Default Security Group rule {rule_id} does not exist",
            type="DefaultSecurityGroupRuleNotFound",
        )


def _require_new(connection: sa.Connection, new: NewDefaultRule, meaning: str) -> None:
    both = (
        _C.meaning == meaning,
        _C.used_in_default_sg.is_(new.used_in_default_sg),
        _C.used_in_non_default_sg.is_(new.used_in_non_default_sg),
    )
    there = connection.execute(sa.select(_C.id).where(*both)).scalar()
    if there is not None:
        raise Conflict(
            f"Default Security group rule already exists. Rule id is {there}.",
            type="DefaultSecurityGroupRuleExists",
        )


def _row(new: NewDefaultRule) -> dict[str, Any]:
    return {
        "id": deadlines.new_uuid(),
        "description": new.description,
        "used_in_default_sg": new.used_in_default_sg,
        "used_in_non_default_sg": new.used_in_non_default_sg,
        "meaning": new.rule.meaning(),
        **{name: getattr(new.rule, name) for name in _PARTS},
    }
