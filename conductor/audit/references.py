"""Compares the volumes that VMs name with the attachments, and reports their snapshots. Pure.

Only VMs whose configuration was read in this look show what they name. A reference that no
attachment explains is never cut: somebody may be writing to the volume by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from common.messages.inventory import SeenReference, SeenVm
from common.resources.volumes import AttachStatus
from conductor.audit.facts import AttachmentFacts, Facts, Finding, VolumeFacts
from conductor.audit.holders import is_busy
from conductor.audit.kinds import ELSEWHERE
from conductor.audit.nics import read_vms

#: (cluster, volid)
Disk = tuple[str, str]


def references(facts: Facts) -> Iterator[Finding]:
    """Yield references without an attachment, attachments without one, volumes that are on another
    node than their server's VM, and volumes in snapshots of VMs."""
    disks = {(str(one.cluster), one.volid): one for one in facts.volumes if one.volid}
    attached = {one.volume_id: one for one in facts.attachments}
    for cluster, inventory in facts.inventories.items():
        for vm in inventory.vms:
            if not _settled(facts, cluster, vm):
                continue
            for one in vm.references or ():
                yield from _elsewhere(facts, cluster, one, disks, attached)
            yield from _in_snapshots(facts, cluster, vm, disks)
        for one in inventory.other_references or ():
            yield from _elsewhere(facts, cluster, one, disks, attached)
    yield from _unreferenced(facts)
    yield from _out_of_reach(facts)


def _settled(facts: Facts, cluster: str, vm: SeenVm) -> bool:
    """Return whether no operation may be at work on the VM."""
    owners = [one.uuid for one in facts.servers.values() if one.place == (cluster, vm.vmid)]
    named = {*owners, vm.server_uuid} & facts.busy
    return vm.read and not vm.lock_live and not named


def _elsewhere(
    facts: Facts,
    cluster: str,
    one: SeenReference,
    disks: Mapping[Disk, VolumeFacts],
    attached: Mapping[str, AttachmentFacts],
) -> Iterator[Finding]:
    volume = disks.get((cluster, one.volid))
    if volume is None or is_busy(facts, volume) or volume.vmid == one.vmid:
        return
    attachment = attached.get(volume.id)
    server = facts.servers.get(attachment.server_uuid) if attachment is not None else None
    if server is not None and (server.place == (cluster, one.vmid) or server.uuid in facts.busy):
        return
    has = f"server {server.uuid} uses it" if server is not None else "no server uses it"
    yield Finding(
        ELSEWHERE,
        f"{cluster}/{one.vmid}/{volume.id}",
        f"VM {one.vmid} names volume {volume.id} as {one.option}; by the record {has}.",
        cluster=cluster,
        node=one.node,
        vmid=one.vmid,
        evidence={"volume": volume.id, "volid": one.volid, "option": one.option},
    )


def _unreferenced(facts: Facts) -> Iterator[Finding]:
    volumes = {one.id: one for one in facts.volumes}
    vms = {server.uuid: (server, vm) for server, vm in read_vms(facts)}
    for one in facts.attachments:
        volume, found = volumes.get(one.volume_id), vms.get(one.server_uuid)
        if volume is None or found is None or is_busy(facts, volume):
            continue
        server, vm = found
        named = {reference.volid for reference in vm.references or ()}
        if (
            one.status != AttachStatus.ATTACHED
            or vm.references is None
            or volume.cluster != server.cluster
            or volume.volid in named
        ):
            continue
        yield Finding(
            "volume_not_referenced",
            volume.id,
            f"By the record server {server.uuid} has volume {volume.id}, but VM {vm.vmid} "
            "doesn't name it.",
            True,
            server.uuid,
            server.cluster,
            vm.node,
            vm.vmid,
            {"volume": volume.id, "volid": volume.volid, "slot": one.slot},
        )


def _out_of_reach(facts: Facts) -> Iterator[Finding]:
    """Yield volumes on a node's own storage whose server's VM is on another node."""
    volumes = {one.id: one for one in facts.volumes}
    vms = {(name, vm.vmid): vm for name, one in facts.inventories.items() for vm in one.vms}
    for one in facts.attachments:
        volume, server = volumes.get(one.volume_id), facts.servers.get(one.server_uuid)
        if volume is None or server is None or server.place is None or volume.shared:
            continue
        vm = vms.get(server.place)
        working = server.uuid in facts.busy or is_busy(facts, volume)
        if vm is None or working or one.status != AttachStatus.ATTACHED or volume.node == vm.node:
            continue
        yield Finding(
            "volume_out_of_reach",
            volume.id,
            f"VM {vm.vmid} of server {server.uuid} is on {vm.node}, volume {volume.id} on storage "
            f"{volume.storage}, which only {volume.node} has.",
            True,
            server.uuid,
            server.cluster,
            vm.node,
            vm.vmid,
            {"volume": volume.id, "volid": volume.volid, "storage": volume.storage},
        )


def _in_snapshots(
    facts: Facts, cluster: str, vm: SeenVm, disks: Mapping[Disk, VolumeFacts]
) -> Iterator[Finding]:
    for snapshot in vm.snapshots or ():
        found = [disks[cluster, one] for one in snapshot.volumes if (cluster, one) in disks]
        if not found or any(is_busy(facts, one) for one in found):
            continue
        names = ", ".join(sorted(one.id for one in found))
        yield Finding(
            "volume_in_vm_snapshot",
            f"{cluster}/{vm.vmid}/{snapshot.name}",
            f"Snapshot {snapshot.name} of VM {vm.vmid}, which somebody made in Proxmox VE, has "
            f"volumes in it: {names}. A roll-back of the VM changes them, too.",
            True,
            vm.server_uuid,
            cluster,
            vm.node,
            vm.vmid,
            {"snapshot": snapshot.name, "volumes": sorted(snapshot.volumes)},
        )
