"""Compares snapshots of volumes with those of their holders, and sizes with storages. Pure.

Snapshots that are copies have holders of their own, which are compared as volumes'.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from common.messages.inventory import ClusterInventory, SeenVm
from common.resources.volumes import SnapshotStatus, VolumeStatus
from conductor.audit.facts import Facts, Finding, SnapshotFacts, VolumeFacts
from conductor.audit.holders import is_busy, places

GIB = 1 << 30


def volume_snapshots(facts: Facts) -> Iterator[Finding]:
    """Yield snapshots in holders without a record, and records whose snapshot is missing."""
    known = places(facts)
    records: dict[str, list[SnapshotFacts]] = {}
    for one in facts.snapshots:
        records.setdefault(one.volume_id, []).append(one)
    for cluster, inventory in facts.inventories.items():
        for vm in inventory.vms:
            volume = known.get((cluster, vm.vmid))
            ours = vm.read and volume is not None and vm.volume_id == volume.id
            if volume is not None and ours and not is_busy(facts, volume) and not vm.lock_live:
                yield from _of_holder(cluster, vm, volume, records.get(volume.id, []))


def _of_holder(
    cluster: str, vm: SeenVm, volume: VolumeFacts, records: list[SnapshotFacts]
) -> Iterator[Finding]:
    if vm.snapshots is None:
        return
    there = {one.name: one.whole for one in vm.snapshots}
    known = {one.snapname: one for one in records if one.snapname is not None}
    for name in sorted(there.keys() - known.keys()):
        text = f"VM {vm.vmid}, which holds volume {volume.id}, has a snapshot {name} that no "
        text += "record names."
        found = _finding("snapshot_without_record", cluster, vm, f"{vm.vmid}/{name}", text, name)
        yield replace(found, evidence={**found.evidence, "volid": volume.volid})
    for name, record in sorted(known.items()):
        if record.status == SnapshotStatus.AVAILABLE and not there.get(name, False):
            text = f"Snapshot {record.id} is available by the record, but VM {vm.vmid} has no "
            text += f"snapshot {name}."
            yield _finding("snapshot_missing", cluster, vm, record.id, text, name)


def sizes(facts: Facts) -> Iterator[Finding]:
    """Yield volumes that have another size on their storage than the record says."""
    for cluster, inventory in facts.inventories.items():
        yield from _sizes(facts, cluster, inventory)


def _sizes(facts: Facts, cluster: str, inventory: ClusterInventory) -> Iterator[Finding]:
    bytes_of = {one.volid: one.size_bytes for one in inventory.volumes}
    for volume in facts.volumes:
        if volume.cluster != cluster or volume.volid is None or is_busy(facts, volume):
            continue
        has = bytes_of.get(volume.volid, 0)
        # A storage that reports no sizes shows 0; a volume in error may not be whole.
        if has in (0, volume.size_gib * GIB) or volume.status == VolumeStatus.ERROR:
            continue
        yield Finding(
            "volume_size_differs",
            volume.id,
            f"Volume {volume.id} has {has} bytes, by the record {volume.size_gib} GiB.",
            cluster=cluster,
            node=volume.node,
            vmid=volume.vmid,
            evidence={"volume": volume.id, "volid": volume.volid, "size_bytes": has},
        )


def _finding(kind: str, cluster: str, vm: SeenVm, subject: str, text: str, name: str) -> Finding:
    where = f"{cluster}/{subject}" if kind == "snapshot_without_record" else subject
    evidence = {"volume": vm.volume_id, "snapshot": name}
    return Finding(kind, where, text, True, None, cluster, vm.node, vm.vmid, evidence)
