"""The configuration of high availability: resources, rules since version 9, groups before.

Plain data, stored and checked as on the real server; `simulator.qemu.ha_power` acts on the
states of resources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


@dataclass
class HaResource:
    """A guest managed by high availability; `sid` is `vm:<vmid>`."""

    sid: str
    type: str
    options: dict[str, str] = field(default_factory=dict)


@dataclass
class HaGroup:
    """Nodes for resources, before version 9; `nodes` with priorities: `pve1:2,pve2`."""

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
        """Return whether the rule is enabled."""
        return self.options.get("disable") != "1"

    @property
    def negative(self) -> bool:
        """Return whether the rule separates its resources."""
        return self.options.get("affinity") == "negative"


@dataclass
class HaConfig:
    """All resources, rules and groups of a cluster."""

    resources: dict[str, HaResource] = field(default_factory=dict)
    groups: dict[str, HaGroup] = field(default_factory=dict)
    rules: dict[str, HaRule] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    """What the manager shows of the resources of lost nodes: `fence` or `recovery`."""


def nodes_of(text: str) -> dict[str, int]:
    """Return node → priority, of `pve1:2,pve2`."""
    parts = (part.partition(":") for part in text.replace(";", ",").split(",") if part)
    return {name.strip(): int(priority or 0) for name, _, priority in parts}


def strict_nodes(rules: Iterable[HaRule], sid: str) -> set[str] | None:
    """Return the only nodes that strict rules leave a resource; None: they bind it to none."""
    for rule in rules:
        binds = rule.type == "node-affinity" and rule.options.get("strict") == "1"
        if rule.enabled and binds and sid in rule.resources:
            return set(nodes_of(rule.options.get("nodes", "")))
    return None


def infeasible(rules: Iterable[HaRule], nodes: int) -> dict[str, list[str]]:
    """Return rule → why it has no effect, for those without effect; checks across types last."""
    counted = [rule for rule in rules if rule.enabled]
    errors: dict[str, list[str]] = {}

    def wrong(rule: HaRule, text: str) -> None:
        errors.setdefault(rule.rule, []).append(text)

    bound = [rule for rule in counted if rule.type == "node-affinity"]
    _check_nodes(bound, wrong)
    together = [rule for rule in counted if rule.type == "resource-affinity"]
    for rule in together:
        if len(rule.resources) < 2:
            wrong(rule, "rule is ineffective as there are less than two resources")
        # Captured with rules whose nodes have priorities: these don't count as nodes.
        available = 0 if _with_priorities(rule, bound) else nodes
        if rule.negative and len(rule.resources) > available:
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
    _check_across(bound, together, wrong)
    return errors


def _shared(rule: HaRule, others: list[HaRule]) -> list[HaRule]:
    return [other for other in others if set(rule.resources) & set(other.resources)]


def _with_priorities(rule: HaRule, bound: list[HaRule]) -> bool:
    """Return whether a resource of a rule is bound to nodes of different priorities."""
    found = (nodes_of(one.options.get("nodes", "")) for one in _shared(rule, bound))
    return any(len(set(nodes.values())) > 1 for nodes in found)


def _check_across(
    bound: list[HaRule], together: list[HaRule], wrong: Callable[[HaRule, str], None]
) -> None:
    for rule in together:
        paired = _shared(rule, bound)
        if _with_priorities(rule, bound):
            wrong(rule, "resources are in node affinity rules with multiple priorities")
            for one in paired:
                wrong(
                    one,
                    "resources are in a resource affinity rule and cannot be in a node affinity "
                    "rule with multiple priorities",
                )
        if rule.negative:
            _check_room(rule, paired, wrong)


def _check_room(rule: HaRule, paired: list[HaRule], wrong: Callable[[HaRule, str], None]) -> None:
    """Report a rule that separates more resources than there are nodes."""
    nodes = {name for one in paired for name in nodes_of(one.options.get("nodes", ""))}
    located = {sid for one in paired for sid in set(one.resources) & set(rule.resources)}
    if len(nodes) >= len(located):
        return
    wrong(
        rule, "two or more resources are restricted to less nodes than available to the resources"
    )
    for one in paired:
        wrong(
            one,
            "at least one resource is in a negative resource affinity rule and this rule would "
            "restrict these to less nodes than available to the resources",
        )


def _check_nodes(rules: list[HaRule], wrong: Callable[[HaRule, str], None]) -> None:
    for rule in rules:
        others = {sid for one in rules if one is not rule for sid in one.resources}
        for sid in sorted(set(rule.resources) & others):
            wrong(rule, f"resource '{sid}' is already used in another node affinity rule")
