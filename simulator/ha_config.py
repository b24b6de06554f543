"""What high availability is configured to do: resources, rules since version 9, groups before.

Plain data, kept and checked as the real server does it; `simulator.qemu.ha_power`
acts on the states of resources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


@dataclass
class HaResource:
    """A guest that is put into high availability's hands; `sid` is `vm:<vmid>`."""

    sid: str
    type: str
    options: dict[str, str] = field(default_factory=dict)


@dataclass
class HaGroup:
    """Nodes for resources, of versions before 9; `nodes` with priorities: `pve1:2,pve2`."""

    group: str
    nodes: str
    options: dict[str, str] = field(default_factory=dict)


@dataclass
class HaRule:
    """A rule since version 9; `order` is its place in the file."""

    rule: str
    type: str
    resources: list[str]
    order: int
    options: dict[str, str] = field(default_factory=dict)

    @property
    def enabled(self) -> bool:
        """Tell whether the rule counts."""
        return self.options.get("disable") != "1"

    @property
    def negative(self) -> bool:
        """Tell whether it keeps resources apart."""
        return self.options.get("affinity") == "negative"


@dataclass
class HaConfig:
    """All of a cluster."""

    resources: dict[str, HaResource] = field(default_factory=dict)
    groups: dict[str, HaGroup] = field(default_factory=dict)
    rules: dict[str, HaRule] = field(default_factory=dict)


def nodes_of(text: str) -> dict[str, int]:
    """Node → priority, of `pve1:2,pve2`."""
    parts = (part.partition(":") for part in text.replace(";", ",").split(",") if part)
    return {name.strip(): int(priority or 0) for name, _, priority in parts}


def infeasible(rules: Iterable[HaRule], nodes: int) -> dict[str, list[str]]:
    """Rule → why it has no effect, of those that have none; the checks within one type."""
    counted = [rule for rule in rules if rule.enabled]
    errors: dict[str, list[str]] = {}

    def wrong(rule: HaRule, text: str) -> None:
        errors.setdefault(rule.rule, []).append(text)

    _check_nodes([rule for rule in counted if rule.type == "node-affinity"], wrong)
    together = [rule for rule in counted if rule.type == "resource-affinity"]
    for rule in together:
        if len(rule.resources) < 2:
            wrong(rule, "rule is ineffective as there are less than two resources")
        if rule.negative and len(rule.resources) > nodes:
            wrong(rule, "rule defines more resources than available nodes")
    for one in together:
        for other in together:
            shared = set(one.resources) & set(other.resources)
            if one.negative != other.negative and len(shared) >= 2:
                kind = "positive" if one.negative else "negative"
                wrong(
                    one,
                    f"rule shares two or more resources with a {kind} resource affinity rule",
                )
    return errors


def _check_nodes(rules: list[HaRule], wrong: Callable[[HaRule, str], None]) -> None:
    for rule in rules:
        others = {sid for one in rules if one is not rule for sid in one.resources}
        for sid in sorted(set(rule.resources) & others):
            wrong(rule, f"resource '{sid}' is already used in another node affinity rule")
