"""The band of VMIDs, and VMs in it that nobody works on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from common.findings import Finding, Level
from compute.doctor.facts import Answer, Facts
from compute.hypervisor.proxmox.settings import ClusterSettings

#: share of free VMIDs below which a band is a finding
LEAST_FREE = 0.1
#: locks that no token can take away
_STUCK = frozenset({"create", "clone", "snapshot-delete"})
#: what says which storage of the network it is
_PLACE = ("server", "export", "share", "monhost", "pool", "portal", "target", "vgname", "fsname")


def band(facts: Facts) -> Iterator[Finding]:
    """Yield that the band is nearly used up."""
    low, high = facts.settings.vmid_low, facts.settings.vmid_high
    size = high - low + 1
    used = sum(facts.settings.in_band(vmid) for vmid in facts.snapshot.vms)
    if size - used < size * LEAST_FREE:
        yield Finding(
            "band_nearly_used",
            Level.WARNING,
            f"Cluster {facts.name}",
            f"{used} of the {size} VMIDs from {low} to {high} are used.",
            "Without a free one no server is built.",
            (f"# [proxmox:{facts.name}] vmid_high = {high + max(size, 1000)}",),
        )


def locks(facts: Facts) -> Iterator[Finding]:
    """Yield VMs of the band with a lock that only root can take away.

    A VM under creation has such a lock too: it is reported once, and no longer at the next run.
    """
    for vm in facts.snapshot.vms.values():
        if vm.lock in _STUCK and facts.settings.in_band(vm.vmid):
            yield Finding(
                "lock_stuck",
                Level.WARNING,
                f"Node {vm.node}",
                f"VM {vm.vmid} has the lock '{vm.lock}'. If no task of it runs, it is stuck.",
                "Only root can change or remove the VM; until then its VMID is quarantined.",
                (f"qm unlock {vm.vmid}",),
            )


def between(clusters: Sequence[Facts]) -> Iterator[Finding]:
    """Yield clusters that share a storage, and whose bands overlap; or hosts of one name."""
    for one, other in itertools.combinations(clusters, 2):
        shared = sorted(_shared(one.storages) & _shared(other.storages))
        a, b = one.settings, other.settings
        if shared and a.vmid_low <= b.vmid_high and b.vmid_low <= a.vmid_high:
            yield Finding(
                "bands_overlap",
                Level.BROKEN,
                f"Clusters {one.name} and {other.name}",
                f"They share a storage ({shared[0][0]}), and their bands of VMIDs overlap.",
                "A disk of a server of one is taken for a disk of the other.",
                (_moved(a, other.settings),),
            )
        hosts = _hosts(one) & _hosts(other)
        if hosts:
            yield Finding(
                "hosts_named_alike",
                Level.BROKEN,
                f"Clusters {one.name} and {other.name}",
                f"Both have a host {', '.join(sorted(hosts))}.",
                "Their agents take each other's servers for lost.",
                (f"# [proxmox:{other.name}] host_prefix = {other.name}-",),
            )


def _moved(a: ClusterSettings, b: ClusterSettings) -> str:
    """Return a band of the second one's size right behind both."""
    low = max(a.vmid_high, b.vmid_high) + 1
    high = low + b.vmid_high - b.vmid_low
    return f"# [proxmox:{b.name}] vmid_low = {low}, vmid_high = {high}"


def _shared(storages: Sequence[Answer]) -> set[tuple[str, ...]]:
    """Return what the shared storages for disks are, by type and place.

    A volume group or a pool of a node's own has the same name wherever the installer made it.
    """
    found = set()
    for one in storages:
        place = tuple(str(one.get(key, "")) for key in _PLACE)
        if one.get("shared") and "images" in str(one.get("content", "")) and any(place):
            found.add((str(one.get("type")), *place))
    return found


def _hosts(facts: Facts) -> set[str]:
    return {facts.settings.host(node.name) for node in facts.ours}
