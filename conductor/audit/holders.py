"""Compares volumes with the holder VMs that have their disks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from common.messages.inventory import ClusterInventory, SeenVm
from common.resources.volumes import VolumeStatus
from conductor.audit.facts import Facts, Finding, Place, VolumeFacts


def places(facts: Facts) -> Mapping[Place, VolumeFacts]:
    """Return the volumes by where their holders are."""
    return {
        (str(one.cluster), int(one.vmid or 0)): one
        for one in facts.volumes
        if one.vmid is not None
    }


def holders(facts: Facts) -> Iterator[Finding]:
    """Yield findings for holders without a volume, and for volumes without their holder."""
    known = places(facts)
    for cluster, inventory in facts.inventories.items():
        seen = {vm.vmid: vm for vm in inventory.vms}
        for vm in inventory.vms:
            yield from _of_vm(facts, cluster, vm, known.get((cluster, vm.vmid)))
        if inventory.short or inventory.unseen:
            continue
        for (where, vmid), volume in known.items():
            if where == cluster and volume.volid is not None and not is_busy(facts, volume):
                yield from _of_volume(inventory, volume, vmid, seen.get(vmid))


def _of_vm(
    facts: Facts, cluster: str, vm: SeenVm, volume: VolumeFacts | None
) -> Iterator[Finding]:
    if not vm.read or (volume is not None and is_busy(facts, volume)):
        return
    if volume is not None and vm.volume_id != volume.id:
        text = f"By the record it holds volume {volume.id}, but its description doesn't say so."
        lines = (f"micronova: volume={volume.id}", f"micronova: cloud={facts.cloud}")
        found = _finding("holder_replaced", cluster, vm, text, volume.id)
        marks = description_line(vm.vmid, lines)
        yield replace(found, evidence={**found.evidence, "marks": marks})
    elif volume is None and vm.volume_id is not None and vm.cloud == facts.cloud:
        if vm.volume_id not in facts.busy_volumes:
            text = f"It holds volume {vm.volume_id}, which the record doesn't have there."
            yield _finding("holder_without_volume", cluster, vm, text, vm.volume_id)
    elif volume is not None and not vm.parked:
        text = f"The disk of volume {volume.id} is plugged into it, or it isn't protected."
        yield replace(
            _finding("holder_not_parked", cluster, vm, text, volume.id), proven=vm.proven
        )


def _of_volume(
    inventory: ClusterInventory, volume: VolumeFacts, vmid: int, vm: SeenVm | None
) -> Iterator[Finding]:
    listed = any(one.volid == volume.volid for one in inventory.volumes)
    if listed and vm is not None:
        return
    what = f"no VM {vmid}" if vm is None else f"no {volume.volid}"
    yield Finding(
        "volume_missing",
        volume.id,
        f"Volume {volume.id} is {volume.status} by the record, but cluster "
        f"{inventory.cluster} has {what}.",
        cluster=inventory.cluster,
        node=volume.node,
        vmid=vmid,
        evidence={"volume": volume.id, "volid": volume.volid},
    )


def description_line(vmid: int, lines: Iterable[str]) -> str:
    """Return the command that writes marks into a VM's description, as bash reads it."""
    text = r"\n".join(lines)
    return f"qm set {vmid} --description $'{text}'"


def is_busy(facts: Facts, volume: VolumeFacts) -> bool:
    """Return whether an operation may be at work on the volume."""
    making = (
        *(VolumeStatus.CREATING, VolumeStatus.DOWNLOADING, VolumeStatus.RESTORING_BACKUP),
        VolumeStatus.DELETING,
    )
    return volume.id in facts.busy_volumes or volume.status in making


def _finding(kind: str, cluster: str, vm: SeenVm, text: str, volume_id: str) -> Finding:
    return Finding(
        kind,
        f"{cluster}/{vm.vmid}",
        text,
        cluster=cluster,
        node=vm.node,
        vmid=vm.vmid,
        evidence={"volume": volume_id, "name": vm.name},
    )
