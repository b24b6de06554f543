"""Snapshots of single volumes, as the storage stores them: make, delete, roll back to."""

from __future__ import annotations

from simulator.errors import PveError
from simulator.qemu.drives import Drive
from simulator.state import disks
from simulator.state.cluster import Cluster
from simulator.state.model import Storage, Vm, Volume
from simulator.state.storage_kinds import RAW, Kind, kind
from simulator.state.tasks import Job
from simulator.state.volumes import parse_volid, say


def make(
    cluster: Cluster, job: Job, vm: Vm, drive: Drive, volume: Volume | None, name: str
) -> Volume:
    """Snap a disk and return its volume. Raises PveError if it is missing or can't be snapped."""
    storage, one = _of(cluster, drive)
    if volume is None:
        raise _missing(one.texts.no_snapshot, storage, drive, name)
    if vm.running and volume.format in one.qemu_snapshots:
        job.log("external qemu snapshot" if one.chained else "internal qemu snapshot")
    elif volume.format in one.closed:
        disks.require_closed(cluster, volume)
    if not one.chained:
        needed, text = disks.EMPTY_QCOW2, one.texts.full_snapshot
        disks.require_more(cluster, job, vm.node, volume, text, needed, snap=name)
    else:
        more = disks.allocated(storage, volume.format, volume.size)
        disks.require_room(cluster, storage, vm.node, more, volume.name)
        disks.resize(cluster, volume, used=volume.used + more)
        if any(user != vm.vmid for user in disks.users(cluster, volume)):
            # The disk is renamed while another VM uses it: later writes change the snapshot,
            # not the disk.
            volume.data = f"torn {volume.data}"
    volume.kept[name], volume.kept_sizes[name] = volume.data, volume.size
    return cluster.add_volume(volume)


def forget(cluster: Cluster, volume: Volume, name: str) -> None:
    """Remove a snapshot of a volume."""
    storage = cluster.storage(volume.storage)
    del volume.kept[name]
    size = volume.kept_sizes.pop(name, volume.size)
    used = disks.allocated(storage, volume.format, size) if kind(storage).chained else 0
    disks.resize(cluster, volume, used=volume.used - used)
    cluster.add_volume(volume)


def delete(cluster: Cluster, vm: Vm, drive: Drive, volume: Volume | None, name: str) -> None:
    """Delete a disk's snapshot. Raises PveError if the volume or the snapshot is missing."""
    storage, one = _of(cluster, drive)
    if volume is None or name not in volume.kept:
        raise _missing(one.texts.no_delete, storage, drive, name)
    if not vm.running and volume.format in one.closed:
        disks.require_closed(cluster, volume)
    forget(cluster, volume, name)


def require_last(cluster: Cluster, drive: Drive, volume: Volume | None, name: str) -> None:
    """Raise PveError unless a disk can go back to a snapshot, as far as is known before."""
    storage, one = _of(cluster, drive)
    if not one.only_last:
        return
    if volume is None or name not in volume.kept:
        raise _missing(one.texts.no_rollback, storage, drive, name)
    if next(reversed(volume.kept)) != name:
        shown = volume.name if one.chained else volume.volid
        raise PveError(f"can't rollback, '{name}' is not most recent snapshot on '{shown}'")


def restore(
    cluster: Cluster, job: Job, vm: Vm, drive: Drive, volume: Volume | None, name: str
) -> None:
    """Have a disk as it was in a snapshot, its size included."""
    storage, one = _of(cluster, drive)
    if volume is None or name not in volume.kept:
        raise _missing(one.texts.no_rollback, storage, drive, name)
    if volume.format in one.closed:
        disks.require_closed(cluster, volume)
    if not one.chained:
        _require_room(cluster, job, vm, volume, name)
    volume.data = volume.kept[name]
    disks.resize(cluster, volume, size=volume.kept_sizes.get(name, volume.size))
    cluster.add_volume(volume)


def _require_room(cluster: Cluster, job: Job, vm: Vm, volume: Volume, name: str) -> None:
    """Raise PveError if there is no room for a rollback, which may be half done by then."""
    one = kind(cluster.storage(volume.storage))
    try:
        text, needed = one.texts.full_rollback, disks.EMPTY_QCOW2
        disks.require_more(cluster, job, vm.node, volume, text, needed, snap=name)
    except PveError:
        if one.frees_first:
            cluster.remove_volume(volume)
        elif RAW in one.qemu_snapshots:
            # RBD copies object after object.
            volume.data = f"torn {volume.data}"
            cluster.add_volume(volume)
        raise


def _of(cluster: Cluster, drive: Drive) -> tuple[Storage, Kind]:
    storage = cluster.storage(drive.storage)
    return storage, kind(storage)


def _missing(text: str, storage: Storage, drive: Drive, snap: str) -> PveError:
    return say(text, storage, parse_volid(drive.file).name, snap=snap)
