"""Compares volumes and config drives with the record. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from common.messages.inventory import ClusterInventory, SeenVm, SeenVolume
from conductor.audit.came_back import came_back
from conductor.audit.facts import Facts, Finding, Place, ServerFacts
from conductor.audit.holders import places


def volumes(facts: Facts) -> Iterator[Finding]:
    """Yield findings for volumes without a VM, and for those on a node where their VM isn't."""
    recorded = {server.place: server.uuid for server in facts.servers.values() if server.place}
    known = recorded.keys() | {(one.cluster, one.vmid) for one in facts.templates}
    known |= places(facts).keys()
    for cluster, inventory in facts.inventories.items():
        if inventory.short:
            continue  # a VM that isn't listed may be there all the same
        present = {vm.vmid for vm in inventory.vms}
        left = dict(_left_behind(facts, inventory))
        # With a VM that names the same server, which the record doesn't have: see ``vms``.
        named = {(vm.vmid, vm.server_uuid) for vm in inventory.vms if vm.server_uuid}
        unknown = {one for one in named if one[1] not in facts.servers}
        for volume in inventory.volumes:
            place = (cluster, volume.vmid)
            if _in_flux(facts, place, volume) or (volume.vmid, volume.server_uuid) in unknown:
                continue
            if volume in left:
                yield _copy(facts, cluster, volume, left[volume])
            elif volume.server_uuid is not None:
                let_go = volume.server_uuid in facts.released and volume.vmid in present
                if recorded.get(place) != volume.server_uuid and not let_go:
                    found = _config_drive(facts, cluster, volume, volume.server_uuid)
                    yield _with_its_vm(facts, found) if volume.vmid in present else found
            elif volume.vmid not in present and place not in known:
                yield _disk(facts, inventory, volume)


def settled(inventory: ClusterInventory, vm: SeenVm) -> bool:
    """Return whether what other nodes have of the VM can be judged.

    Nobody moves it, its node was seen, and replication jobs, which keep copies, are known.
    """
    seen = inventory.replicas is not None and vm.node not in inventory.unseen_nodes
    return seen and vm.kind == "qemu" and vm.lock != "migrate"


def _left_behind(
    facts: Facts, inventory: ClusterInventory
) -> Iterator[tuple[SeenVolume, ServerFacts]]:
    """Yield volumes of servers' VMs on own storages of nodes where these VMs aren't."""
    vms = {vm.vmid: vm for vm in inventory.vms if settled(inventory, vm)}
    owners = {
        one.vmid: one
        for one in facts.servers.values()
        if one.place is not None and one.cluster == inventory.cluster
    }
    replicas = {(one.vmid, one.node) for one in inventory.replicas or ()}
    # If a storage is shared, but not configured so in Proxmox VE, each node shows the VM's own
    # volume; a copy has another creation time.
    used = {
        _identity(volume)
        for volume in inventory.volumes
        if volume.vmid in vms and volume.node == vms[volume.vmid].node
    }
    for volume in inventory.volumes:
        vm, server = vms.get(volume.vmid), owners.get(volume.vmid)
        if vm is None or server is None or volume.shared or _identity(volume) in used:
            continue
        # Record and cluster agree where the VM is; if not, it may be on its way.
        elsewhere = vm.node == server.node != volume.node
        of_it = volume.server_uuid in (None, server.uuid)
        if elsewhere and of_it and (volume.vmid, volume.node) not in replicas:
            yield volume, server


def _identity(volume: SeenVolume) -> tuple[object, ...]:
    return volume.volid, volume.size_bytes, volume.created_at


def _in_flux(facts: Facts, place: Place, volume: SeenVolume) -> bool:
    """Return whether an open operation may be at work on this VMID, or on the drive's server."""
    reserved = facts.reservations.get(place)
    named = {volume.server_uuid, reserved.server_uuid if reserved else None}
    named |= facts.journal.get(place, frozenset())
    return bool(named & facts.busy)


def _config_drive(facts: Facts, cluster: str, volume: SeenVolume, uuid: str) -> Finding:
    server = facts.servers.get(uuid)
    if server is None:
        text = f"A config drive of server {uuid}, which this cloud never had."
        return _finding("volume_foreign", cluster, volume, text, False, None)
    what = "is deleted" if server.deleted_at is not None else "has no VM of this id"
    text = f"A config drive of server {uuid}, which {what}."
    place = (cluster, volume.vmid)
    # Named after the server: a build that was refused the VMID may have uploaded it.
    had = facts.journal.get(place, frozenset()) | facts.refused.get(place, frozenset())
    proven = _is_removable(facts, server, place) and uuid in had
    return _finding("config_drive_without_server", cluster, volume, text, proven, uuid)


def _with_its_vm(facts: Facts, drive: Finding) -> Finding:
    """Return the finding of a config drive, whose removal would be that of the VM, which is there:
    perhaps again, and not read in this look."""
    server = facts.servers.get(drive.server_uuid or "")
    place = (str(drive.cluster), int(drive.vmid or 0))
    restored = server is not None and came_back(facts, place, server)
    return replace(drive, evidence={**drive.evidence, "came_back": restored})


def _disk(facts: Facts, inventory: ClusterInventory, volume: SeenVolume) -> Finding:
    cluster = inventory.cluster
    place = (cluster, volume.vmid)
    had = sorted(facts.journal.get(place, ()))
    if not had and place not in facts.template_places:
        text = f"No VM has the id {volume.vmid}, and no server of this cloud ever had it."
        if facts.refused.get(place):
            text += " A build passed it over, as others had it."
        return _finding("volume_foreign", cluster, volume, text, False, None)
    owner = had[0] if len(had) == 1 else None
    server = facts.servers.get(owner or "")
    there = facts.reservations.get(place)
    taken = there is not None and there.server_uuid not in (None, owner)
    proven = (
        server is not None and volume.ours and not taken and _is_removable(facts, server, place)
    )
    who = f"server {owner} had the VMID" if owner else f"{len(had)} servers had the VMID"
    text = f"No VM has the id {volume.vmid}; {who}."
    return _finding("volume_without_vm", cluster, volume, text, proven, owner)


def _copy(facts: Facts, cluster: str, volume: SeenVolume, server: ServerFacts) -> Finding:
    text = f"VM {volume.vmid} of server {server.uuid} is on {server.node}, this volume is not."
    if volume.server_uuid is None:
        return _finding("volume_left_behind", cluster, volume, text, False, server.uuid)
    # Without its creation time it may be the VM's own volume, on a storage that is shared but not
    # configured so.
    had = facts.journal.get((cluster, volume.vmid), frozenset())
    proven = server.uuid in had and volume.created_at is not None
    return _finding("config_drive_left_behind", cluster, volume, text, proven, server.uuid)


def _is_removable(facts: Facts, server: ServerFacts, place: Place) -> bool:
    """Return whether the server has nothing there by the record, and was not unmanaged."""
    if server.deleted_at is not None:
        return server.uuid in facts.deleted_on_request
    return server.place != place


def _finding(
    kind: str, cluster: str, volume: SeenVolume, cause: str, proven: bool, server: str | None
) -> Finding:
    evidence = {
        "volid": volume.volid,
        "storage": volume.storage,
        "made_by_us": volume.ours,
        "size_bytes": volume.size_bytes,
        "created_at": volume.created_at.isoformat() if volume.created_at else None,
        "shared": volume.shared,
    }
    where = cluster if volume.shared else f"{cluster}/{volume.node}"
    subject = f"{where}/{volume.volid}"
    return Finding(
        kind, subject, cause, proven, server, cluster, volume.node, volume.vmid, evidence
    )
