"""Security groups as Nova showed them: what they let in; facts from nova's security_groups.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from common.resources.security_rules import EVERYWHERE
from db.reads.networks import security_groups
from db.reads.networks.security_groups import SecurityGroup, SecurityGroupRule

#: what a rule without ports shows
_ALL_PORTS = {"tcp": (1, 65535), "udp": (1, 65535)}
_NO_PORTS = (-1, -1)


def groups(found: Sequence[SecurityGroup], read: Callable[..., Any]) -> list[dict[str, Any]]:
    """Return groups with what they let in; the names of other groups take one more query."""
    remote = _remote([rule for group in found for rule in group.rules], read)
    return [_group(group, remote) for group in found]


def rule(found: SecurityGroupRule, read: Callable[..., Any]) -> dict[str, Any]:
    """Return one rule."""
    return _rule(found, _remote([found], read))


def _remote(
    rules: Sequence[SecurityGroupRule], read: Callable[..., Any]
) -> Mapping[str, SecurityGroup]:
    named = {one.remote_group_id for one in rules if one.remote_group_id is not None}
    found: Mapping[str, SecurityGroup] = read(security_groups.names, named) if named else {}
    return found


def _group(group: SecurityGroup, remote: Mapping[str, SecurityGroup]) -> dict[str, Any]:
    return {
        "id": group.id,
        "name": group.name,
        "description": group.description,
        "tenant_id": group.project_id,
        "rules": [_rule(rule, remote) for rule in group.rules if rule.direction == "ingress"],
    }


def _rule(rule: SecurityGroupRule, remote: Mapping[str, SecurityGroup]) -> dict[str, Any]:
    first, last = rule.port_range_min, rule.port_range_max
    if rule.protocol and first is None and last is None:
        first, last = _ALL_PORTS.get(rule.protocol, _NO_PORTS)
    group = remote.get(rule.remote_group_id or "")
    cidr = rule.remote_ip_prefix or EVERYWHERE.get(rule.ethertype)
    return {
        "id": rule.id,
        "parent_group_id": rule.security_group_id,
        "ip_protocol": rule.protocol,
        "from_port": first,
        "to_port": last,
        "group": {"name": group.name, "tenant_id": group.project_id} if group else {},
        "ip_range": {} if group else {"cidr": cidr},
    }
