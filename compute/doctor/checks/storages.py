"""Storages: which are usable, on which nodes, with how much room."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from common.findings import Finding, Level
from compute.doctor.facts import Facts
from compute.hypervisor.proxmox.observe.snapshot import Node, Storage, chosen
from compute.hypervisor.proxmox.vmconfig import storage_types

#: share of free space below which a storage is a finding
LEAST_FREE = 0.1
#: content types for which servers need a storage
_OURS = frozenset({"images", "iso", "import"})


def active(facts: Facts) -> Iterator[Finding]:
    """Yield storages that are configured for a node and don't work there."""
    for node in facts.online:
        for one in _used(node):
            if not one.active:
                yield Finding(
                    "storage_inactive",
                    Level.WARNING,
                    f"Node {node.name}",
                    f"Storage {one.name} ({one.type}) is configured and not active there.",
                    "What is on it can't be reached, and servers that have disks there don't "
                    "start.",
                    (f"pvesm status --storage {one.name}",),
                )


def room(facts: Facts) -> Iterator[Finding]:
    """Yield storages that are nearly full; a shared one once."""
    reported: set[str] = set()
    for node in facts.online:
        for one in _used(node):
            if not one.active or not one.total or one.available >= one.total * LEAST_FREE:
                continue
            if one.shared and one.name in reported:
                continue
            reported.add(one.name)
            where = f"Cluster {facts.name}" if one.shared else f"Node {node.name}"
            yield Finding(
                "storage_full",
                Level.WARNING,
                where,
                f"Storage {one.name} has {one.available >> 30} of {one.total >> 30} GiB free.",
                "Builds and snapshots on it fail soon, and thin disks stop their guests.",
                (f"pvesm list {one.name}",),
            )


def everywhere(facts: Facts) -> Iterator[Finding]:
    """Yield storages for disks that only some of the nodes have."""
    nodes = facts.online
    names = sorted({one.name for node in nodes for one in _disks(node)})
    for name in names:
        have = [node.name for node in nodes if name in node.storages]
        lack = [node.name for node in nodes if name not in node.storages]
        if not lack:
            continue
        shared = any(node.storages[name].shared for node in nodes if name in node.storages)
        code = "storage_not_everywhere" if shared else "storage_differs"
        why = (
            "Servers with disks there can't move to the others, and high availability doesn't "
            "start them there."
            if shared
            else "Disks of servers that move to the others go to a storage of another name."
        )
        yield Finding(
            code,
            Level.WARNING,
            f"Cluster {facts.name}",
            f"Storage {name} is on {', '.join(have)}, and not on {', '.join(lack)}.",
            why,
            _everywhere(name, [node.storages[name] for node in nodes if name in node.storages]),
        )


#: types of network storage: available on every node as soon as configured there
_REMOTE = frozenset({"nfs", "cifs", "cephfs", "rbd", "glusterfs", "pbs", "esxi"})
#: storages on a node's own disks → what shows whether a node has such a one
_LOOK = {"lvm": "vgs", "lvmthin": "lvs", "zfspool": "zpool list", "btrfs": "btrfs filesystem show"}


def _everywhere(name: str, found: list[Storage]) -> tuple[str, ...]:
    """Return the line that has other nodes use a storage, or what shows whether they can.

    Without the disks for it a node has the storage inactive, and agents of it build nothing.
    """
    kind = found[0].type
    if found[0].shared and kind in _REMOTE:
        return (f"pvesm set {name} --delete nodes",)
    return (_LOOK.get(kind, f"pvesm status --storage {name}"),)


def sharing(facts: Facts) -> Iterator[Finding]:
    """Yield that several nodes have no storage in common for disks."""
    nodes = facts.online
    if len(nodes) > 1 and not any(one.shared for node in nodes for one in _disks(node)):
        yield Finding(
            "storage_not_shared",
            Level.WARNING,
            f"Cluster {facts.name}",
            "No storage that its nodes share takes disks.",
            "A server that moves has its disk copied, volumes keep servers on their node, and "
            "nothing survives the loss of one.",
            (
                f"pvesm add nfs {_free_name(facts)} --server <address> --export <path> "
                "--content images,iso,import",
            ),
        )


def _free_name(facts: Facts) -> str:
    """Return a name for a shared storage that no storage has."""
    taken = {str(one.get("storage")) for one in facts.storages}
    names = itertools.chain(["shared"], (f"shared{number}" for number in itertools.count(2)))
    return next(name for name in names if name not in taken)


def config_drives(facts: Facts) -> Iterator[Finding]:
    """Yield that config drives are on nodes' own storages."""
    nodes = facts.online
    places = [chosen(node, facts.settings.iso_storage, "iso") for node in nodes]
    local = sorted({one.name for one in places if one is not None and not one.shared})
    if len(nodes) > 1 and local:
        yield Finding(
            "iso_not_shared",
            Level.WARNING,
            f"Cluster {facts.name}",
            f"Config drives are on {', '.join(local)}, which the nodes don't share.",
            "Only this cloud can migrate such servers: high availability, scheduling by Proxmox "
            "VE and people are refused by the CD.",
            (f"# [proxmox:{facts.name}] iso_storage = {_shared_for_files(facts)}",),
        )


def features(facts: Facts) -> Iterator[Finding]:
    """Yield storages for root disks that know no snapshots or no clones."""
    reported: set[str] = set()
    for node in facts.online:
        one = chosen(node, facts.settings.vm_storage, "images")
        lacks = [] if one is None else _lacks(one)
        if one is None or one.name in reported or not lacks:
            continue
        reported.add(one.name)
        yield Finding(
            "storage_lacks_features",
            Level.WARNING,
            f"Cluster {facts.name}",
            f"Storage {one.name}, for root disks, is of type {one.type}, without "
            f"{' and '.join(lacks)}.",
            "Each server's disk is a copy of its image, and what needs a snapshot is refused.",
            (f"# [proxmox:{facts.name}] vm_storage = {_better(facts)}",),
        )


def _lacks(storage: Storage) -> list[str]:
    able = storage_types.of(storage.kind)
    wanted = {"snapshots": able.snaps_vms, "linked clones": able.linked}
    return [what for what, has in wanted.items() if not has]


def _shared_for_files(facts: Facts) -> str:
    return next(
        (
            one.name
            for node in facts.online
            for one in node.storages.values()
            if one.shared and one.active and "iso" in one.content
        ),
        "<a shared one>",
    )


def _better(facts: Facts) -> str:
    return next(
        (
            one.name
            for node in facts.online
            for one in _disks(node)
            if one.active and not _lacks(one)
        ),
        "<one of type dir, nfs, btrfs, lvmthin, zfspool or rbd>",
    )


def _used(node: Node) -> Iterator[Storage]:
    return (one for one in node.storages.values() if one.content & _OURS)


def _disks(node: Node) -> Iterator[Storage]:
    return (one for one in node.storages.values() if "images" in one.content)
