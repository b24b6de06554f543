"""Snapshots of a volume: Proxmox VE takes them of its holder, with the disk plugged in.

A storage with snapshots of its own (LVM-thin, RBD, btrfs) can take one while a running server
has the volume: the holder is off, so no QEMU is asked, and the snapshot is what a power cut would
leave. A snapshot inside a qcow2 file needs the file closed; so does a snapshot as a volume of its
own, for which the disk is renamed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from common.failures import Verdict
from common.messages.commands import SnapshotVerb, SnapVolume
from common.messages.reports import Category
from common.resources.volumes import SnapshotWay
from compute.hypervisor.port import Detail, HypervisorError, Removal
from compute.hypervisor.proxmox.cluster import quorum, space
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.cluster.vmid import Vm
from compute.hypervisor.proxmox.vmconfig import storage_types, volumes
from compute.hypervisor.proxmox.volume.parking import Holder

ROLLBACK_BYTES = 64 << 20
"""What a storage must have left for a rollback: more than tables and metadata take."""


def way(shared: Shared, vm: Vm, storage: str) -> str:
    """Return how snapshots of disks on a storage are made.

    Proxmox VE is asked once for each storage, of a holder that has its disk plugged; again where
    a storage of that name is of another type than it was.
    """
    known = known_way(shared, vm.node, storage)
    if not known:
        answer = shared.client.get(f"{vm.path}/feature", feature="snapshot")
        kind = _kind(shared, vm.node, storage)
        able = bool(int(answer.get("hasFeature", 0)))
        known = storage_types.of(kind).snapshots if able else SnapshotWay.COPY
        shared.snapshot_ways[shared.storage_key(vm.node, storage), kind] = known
    return known


def known_way(shared: Shared, node: str, storage: str) -> str:
    """Return what ``way`` found before; empty: it was not asked."""
    key = shared.storage_key(node, storage), _kind(shared, node, storage)
    return shared.snapshot_ways.get(key, "")


def _kind(shared: Shared, node: str, storage: str) -> str:
    seen = shared.snapshot.storage(node, storage)
    return "" if seen is None else seen.kind


def change(shared: Shared, holder: Holder, command: SnapVolume) -> Detail:
    """See ``port.Volume.snap``."""
    quorum.require(holder.vm)
    if command.verb in _DONE_IF_GONE and holder.seen() is None:
        return {"absent": True}
    holder.having(command.volid)
    act = _ACTS.get(command.verb)
    if act is not None:
        _require_closed(holder, command)
        act(shared, holder, command)
    holder.park()
    return {"volume": command.volid, "snapshot": command.name}


def undo(shared: Shared, holder: Holder, command: SnapVolume) -> Removal:
    """See ``port.Volume.unsnap``."""
    if holder.seen() is not None:
        if command.verb is SnapshotVerb.TAKE:
            _remove(shared, holder, command)
        holder.park()
    return Removal(True, (f"snapshot {command.name} of {holder.vm}",))


def _require_closed(holder: Holder, command: SnapVolume) -> None:
    """Raise HypervisorError (protected) if a running VM has the volume's file open.

    Checked first, and again right before each write: the server may start in between.
    """
    inside = command.volid.endswith(f".{storage_types.QCOW2}")
    if command.user is None or (command.storage_way == SnapshotWay.ONLINE and not inside):
        return
    vm = holder.server(command.user)
    if vm.running():
        raise HypervisorError(
            Category.PROTECTED,
            f"{vm} runs and has {command.volid} open; the snapshot is inside of it. Stop the "
            "server, or detach the volume.",
            verdict=Verdict.FATAL,
        )


def _take(shared: Shared, holder: Holder, command: SnapVolume) -> None:
    vm = holder.vm
    found = _listed(shared, vm, command.name)
    if found is not None and found.get("snapstate"):
        # What a worker left that was killed, once its lock is gone.
        _remove(shared, holder, command)
    elif found is not None:
        return
    holder.plug(command.volid)

    def done() -> bool:
        holder.required()
        return _is_whole(_listed(shared, vm, command.name))

    def call() -> Any:
        _require_closed(holder, command)
        vm.fence()
        values = {"snapname": command.name, "description": command.description}
        return shared.client.post(f"{vm.path}/snapshot", **values)

    key = shared.storage_key(vm.node, command.volid.split(":", 1)[0])
    with shared.storage_queue.slot(vm.work, key, "snapshot"):
        vm.converge(done, call, look_first=False)
    if not done():
        raise HypervisorError(
            Category.UNKNOWN_OUTCOME, f"Snapshot {command.name} of {vm} was not seen."
        )


def _remove(shared: Shared, holder: Holder, command: SnapVolume) -> None:
    vm = holder.vm

    def done() -> bool:
        holder.required()
        return _listed(shared, vm, command.name) is None

    def call() -> Any:
        _require_closed(holder, command)
        vm.fence()
        return shared.client.delete(f"{vm.path}/snapshot/{command.name}")

    key = shared.storage_key(vm.node, command.volid.split(":", 1)[0])
    with shared.storage_queue.slot(vm.work, key, "remove snapshot"):
        vm.converge(done, call)
    if not done():
        raise HypervisorError(
            Category.UNKNOWN_OUTCOME, f"Snapshot {command.name} of {vm} is still there."
        )


def _revert(shared: Shared, holder: Holder, command: SnapVolume) -> None:
    """Roll the volume back. It may run twice: no server has the volume during it."""
    vm = holder.vm
    if not _is_whole(_listed(shared, vm, command.name)):
        raise HypervisorError(
            Category.VANISHED, f"{vm} has no snapshot {command.name}.", verdict=Verdict.FATAL
        )
    # Proxmox VE brings the configuration back as well, in which the disk was plugged: that shows
    # that it is done.
    holder.park()
    _require_room(shared, vm, command)

    def done() -> bool:
        return volumes.slot_of(holder.required(), command.volid) is not None

    def call() -> Any:
        vm.fence()
        return shared.client.post(f"{vm.path}/snapshot/{command.name}/rollback")

    key = shared.storage_key(vm.node, command.volid.split(":", 1)[0])
    with shared.storage_queue.slot(vm.work, key, "revert"):
        vm.converge(done, call, look_first=False)
    if not done():
        raise HypervisorError(
            Category.UNKNOWN_OUTCOME, f"{vm} was not seen brought back to {command.name}."
        )


def _require_room(shared: Shared, vm: Vm, command: SnapVolume) -> None:
    """Raise HypervisorError (storage_full) where a rollback would fail for want of room.

    What fails leaves its lock. On LVM-thin the disk is lost as well, since it is removed before it
    is made of the snapshot (``volume_snapshot_rollback`` of LvmThinPlugin.pm).
    """
    name = command.volid.split(":", 1)[0]
    storage = shared.snapshot.storage(vm.node, name)
    if storage is not None and storage_types.of(storage.kind).thin:
        space.require(shared, vm.node, storage, ROLLBACK_BYTES, now=True)


#: done already if the holder is gone
_DONE_IF_GONE = frozenset({SnapshotVerb.REMOVE, SnapshotVerb.PARK})

#: what is done before the disk is parked
_ACTS: Mapping[SnapshotVerb, Callable[[Shared, Holder, SnapVolume], None]] = {
    SnapshotVerb.TAKE: _take,
    SnapshotVerb.REMOVE: _remove,
    SnapshotVerb.REVERT: _revert,
}


def _listed(shared: Shared, vm: Vm, name: str) -> Mapping[str, Any] | None:
    listed = shared.client.get(f"{vm.path}/snapshot")
    return next((one for one in listed if one["name"] == name), None)


def _is_whole(found: Mapping[str, Any] | None) -> bool:
    return found is not None and not found.get("snapstate")
