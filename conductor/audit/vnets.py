"""Compares the SDN vnets of networks with the record. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from common.messages.inventory import SeenVnet
from conductor.audit.facts import Facts, Finding
from conductor.store.networks.vnets import State


def vnets(facts: Facts) -> Iterator[Finding]:
    """Yield findings for vnets without a network, and for networks whose vnet a cluster lacks."""
    for cluster, inventory in facts.inventories.items():
        if inventory.vnets is None:
            continue
        for seen in inventory.vnets:
            if seen.cloud != facts.cloud:
                continue  # another cloud's
            known = facts.vnets.get((cluster, seen.network_id))
            wanted = known is not None and known.state is not State.REMOVING
            if not wanted and seen.network_id not in facts.busy_networks:
                yield _without_network(facts, cluster, seen)
        if not inventory.short and not inventory.unseen:
            yield from _missing(facts, cluster, {one.vnet for one in inventory.vnets})


def _without_network(facts: Facts, cluster: str, seen: SeenVnet) -> Finding:
    ours = seen.network_id in facts.networked
    text = f"The vnet of network {seen.network_id}, which this cloud "
    text += "doesn't have there." if ours else "never had."
    return Finding(
        "vnet_without_network",
        f"{cluster}/{seen.vnet}",
        text,
        ours,
        cluster=cluster,
        evidence={"vnet": seen.vnet, "zone": seen.zone, "network": seen.network_id},
    )


def _missing(facts: Facts, cluster: str, there: Collection[str]) -> Iterator[Finding]:
    for (where, network_id), vnet in facts.vnets.items():
        missing = where == cluster and vnet.state is State.ACTIVE and vnet.vnet not in there
        if missing and network_id not in facts.busy_networks:
            yield Finding(
                "network_without_vnet",
                f"{cluster}/{vnet.vnet}",
                f"Network {network_id} is vnet {vnet.vnet} by the record, which the cluster "
                "doesn't list.",
                cluster=cluster,
                evidence={"vnet": vnet.vnet, "network": network_id},
            )
