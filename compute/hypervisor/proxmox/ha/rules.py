"""The node affinity rules of high availability, and the groups before version 9. Pure.

Rules are interpreted as Proxmox VE does: guests of a strict rule run only on its nodes; others
prefer those of the highest priority and may run anywhere. Since version 9 groups are rules named
``ha-group-<group>``; here they keep their name, so that references survive the upgrade.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from common.digits import is_digits
from common.messages.facts import HaRule

_FROM_GROUP = "ha-group-"
#: rules replaced groups
_RULES_SINCE = 9


@dataclass(frozen=True)
class NodeAffinity:
    """One rule or group; the same for the whole cluster."""

    name: str
    strict: bool
    nodes: Mapping[str, int] = field(default_factory=dict)
    """Node → priority, the higher the better."""
    vmids: tuple[int, ...] = ()
    """The VMs that it binds."""

    def at(self, node: str) -> HaRule:
        """Return the rule as it applies to one node."""
        allowed = node in self.nodes or not self.strict
        bound = () if allowed else self.vmids
        return HaRule(self.name, self.strict, len(self.nodes), self.nodes.get(node), bound)


def has_rules(version: str) -> bool:
    """Return whether a version has rules, not groups."""
    return int(version.partition(".")[0] or 0) >= _RULES_SINCE


def of_rules(listed: Iterable[Mapping[str, Any]]) -> tuple[NodeAffinity, ...]:
    """Return the rules of ``GET /cluster/ha/rules``, without those that are disabled or that the
    manager ignores because they contradict others."""
    return _sorted(
        NodeAffinity(
            str(one["rule"]).removeprefix(_FROM_GROUP),
            bool(int(one.get("strict") or 0)),
            _priorities(str(one.get("nodes") or "")),
            () if one.get("errors") else vmids(str(one.get("resources") or "").split(",")),
        )
        for one in listed
        if one.get("type") == "node-affinity" and not int(one.get("disable") or 0)
    )


def of_groups(
    groups: Iterable[Mapping[str, Any]], resources: Iterable[Mapping[str, Any]]
) -> tuple[NodeAffinity, ...]:
    """Return the rules of ``/cluster/ha/groups`` and ``/resources``, before version 9."""
    members: dict[str, list[str]] = {}
    for one in resources:
        members.setdefault(str(one.get("group") or ""), []).append(str(one.get("sid")))
    return _sorted(
        NodeAffinity(
            str(one["group"]),
            bool(int(one.get("restricted") or 0)),
            _priorities(str(one.get("nodes") or "")),
            vmids(members.get(str(one["group"]), ())),
        )
        for one in groups
    )


def _sorted(found: Iterable[NodeAffinity]) -> tuple[NodeAffinity, ...]:
    return tuple(sorted(found, key=lambda rule: rule.name))


def _priorities(text: str) -> dict[str, int]:
    parts = (part.strip().partition(":") for part in text.split(",") if part.strip())
    return {node: int(priority or 0) for node, _, priority in parts}


def vmids(sids: Iterable[str]) -> tuple[int, ...]:
    """Return the VMs among resources, by VMID."""
    kinds = (sid.strip().partition(":") for sid in sids)
    return tuple(sorted(int(name) for kind, _, name in kinds if kind == "vm" and is_digits(name)))
