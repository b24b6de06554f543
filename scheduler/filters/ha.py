"""Filter by the HA rules of the clusters, which bind guests to nodes."""

from __future__ import annotations

from collections.abc import Iterable

from common.counting import counted
from common.messages.facts import HaRule
from common.messages.scheduling import RequestSpec
from scheduler.columnar.forms import by_facts, refusing
from scheduler.filters import host_filter
from scheduler.hosts.columns import HostColumns, Mask
from scheduler.hosts.host import Host

#: the extra spec that names a rule, or a group as they were called before
SPEC = "ha:rule"

#: the cluster, and its rules as they apply to the host
Stands = tuple[str, tuple[HaRule, ...]]


def stands(host: Host) -> Stands:
    """Return the fact that the rules decide on."""
    return host.facts.cluster, host.facts.ha_rules


def named(rules: Iterable[HaRule], request: RequestSpec) -> HaRule | None:
    """Return the rule that the flavor names, as it applies to the host."""
    wanted = request.extra_specs.get(SPEC)
    return next((rule for rule in rules if rule.name == wanted), None)


def _bound(columns: HostColumns, request: RequestSpec) -> Mask | None:
    if request.vm is None and SPEC not in request.extra_specs:
        return None
    return columns.where(stands, lambda there: _refusal(there, request) is not None)


@host_filter(after="near_host_ip", words="rules of high availability against it")
@refusing(_bound, same_reason=by_facts(stands))
def ha_rule(host: Host, request: RequestSpec) -> str | None:
    """Refuse nodes outside of a strict rule that the flavor names or that binds the VM.

    Where a rule isn't strict, the weigher ``ha_priority`` prefers its nodes.
    """
    return _refusal(stands(host), request)


def _refusal(there: Stands, request: RequestSpec) -> str | None:
    cluster, rules = there
    wanted = request.extra_specs.get(SPEC)
    if wanted is not None:
        rule = named(rules, request)
        if rule is None:
            return f"its cluster has {counted(len(rules), 'HA rule')}, none called {wanted}"
        if rule.strict and rule.priority is None:
            return f"the strict HA rule {wanted} has {counted(rule.nodes, 'node')}, not this one"
    if request.vm is None or request.vm[0] != cluster:
        return None
    vmid = request.vm[1]
    for rule in rules:
        if vmid in rule.repels:
            others = counted(rule.nodes, "other node")
            return f"the strict HA rule {rule.name} binds VM {vmid} to {others}"
    return None
