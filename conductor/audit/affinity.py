"""Compares strict server groups in the clusters with the record. Pure.

A server in flux may or may not be in its group's rule; a single one in its cluster needs none.
"""

from __future__ import annotations

from collections.abc import Iterator

from common.messages.inventory import SeenAffinity
from conductor.audit.facts import Facts, Finding, ServerFacts
from conductor.audit.records import PRESENT


def affinity(facts: Facts) -> Iterator[Finding]:
    """Yield rules and resources of ours without a group, and groups with an incomplete rule."""
    for cluster, inventory in facts.inventories.items():
        if not inventory.affinity_seen or not facts.cloud:
            continue
        seen = {one.group: one for one in inventory.affinity if one.cloud == facts.cloud}
        wanted = _wanted(facts, cluster) if inventory.writes_affinity else {}
        busy = _in_flux(facts, cluster)
        for group, one in seen.items():
            left = sorted(set(one.managed) - wanted.get(group, set()) - busy)
            if left or (one.rule and group not in wanted and not set(one.members) & busy):
                yield _left(cluster, one, left)
        for group, vmids in wanted.items():
            there = set(seen[group].members) if group in seen else set()
            lacking = sorted(vmids - there - busy)
            if lacking and len(vmids) > 1:
                yield _incomplete(cluster, group, lacking)


def _wanted(facts: Facts, cluster: str) -> dict[str, set[int]]:
    """Return group → the VMs of its servers in a cluster, if a rule can express its policy."""
    found: dict[str, set[int]] = {}
    for server in facts.servers.values():
        group = facts.groups.get(server.server_group_uuid or "")
        if group is None or server.place is None or server.cluster != cluster:
            continue
        if server.vm_state in PRESENT and not (group.apart and group.max_per_host > 1):
            found.setdefault(group.uuid, set()).add(server.place[1])
    return found


def _in_flux(facts: Facts, cluster: str) -> set[int]:
    return {
        server.vmid
        for server in facts.servers.values()
        if server.cluster == cluster and server.vmid is not None and _unsettled(facts, server)
    }


def _unsettled(facts: Facts, server: ServerFacts) -> bool:
    return server.deleted_at is None and (
        server.uuid in facts.busy or server.vm_state not in PRESENT
    )


def _left(cluster: str, one: SeenAffinity, left: list[int]) -> Finding:
    vms = f"VMs {', '.join(map(str, left))}" if left else "a rule"
    return Finding(
        "affinity_rule_left",
        f"{cluster}/{one.group}",
        f"High availability knows {vms} of server group {one.group}, by the record it hasn't.",
        cluster=cluster,
        evidence={"managed": list(one.managed), "members": list(one.members), "rule": one.rule},
    )


def _incomplete(cluster: str, group: str, lacking: list[int]) -> Finding:
    vms = ", ".join(map(str, lacking))
    return Finding(
        "affinity_rule_incomplete",
        f"{cluster}/{group}",
        f"No affinity rule of server group {group} names VMs {vms}.",
        cluster=cluster,
        evidence={"vmids": lacking},
    )
