"""A migration's local disks: what can't follow, and the copies on the target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from simulator.engine import Sleep, Work
from simulator.errors import PveError
from simulator.qemu.drives import Drive
from simulator.request.call import Call
from simulator.state import disks
from simulator.state.model import MIB, Vm, Volume
from simulator.state.storage_kinds import QCOW2, RAW, kind
from simulator.state.volumes import parse_volid

COPIED_TYPES = frozenset({"dir", "btrfs", "zfspool", "lvmthin", "lvm"})
_Log = Callable[[str], None]


class Moved(NamedTuple):
    """A drive with its volume and the copy on the target."""

    drive: Drive
    source: Volume
    copy: Volume


def check(call: Call, vm: Vm, local: list[Drive], log: _Log) -> None:
    """Check all local volumes before changing anything; the causes are only in the log."""
    for drive in local:
        log(f"found local disk '{drive.file}' (attached)")
    causes = [cause for drive in local for cause in _causes(call, vm, drive)]
    if not causes:
        return
    for cause in causes:
        log(cause)
    problem = "Problem found while scanning volumes - can't migrate VM - check log"
    log(f"ERROR: {problem}")
    log("aborting phase 1 - cleanup resources")
    log(f"ERROR: migration aborted (duration 00:00:01): {problem}")
    raise PveError("migration aborted")


def _causes(call: Call, vm: Vm, drive: Drive) -> Iterator[str]:
    """Yield why a local volume prevents the migration."""
    refused = f"can't migrate local disk '{drive.file}': "
    if drive.cdrom and not drive.cloudinit:
        yield f"{refused}local cdrom image"
        return
    if vm.running and not call.flag("with-local-disks"):
        yield f"{refused}can't live migrate attached local disks without with-local-disks option"
        return
    kind = call.cluster.storage(drive.storage).type
    if kind not in COPIED_TYPES:
        yield f"{refused}storage type '{kind}' not supported"
        return
    volume = call.cluster.volume(drive.file, call.node)
    if volume is not None and volume.vmid != vm.vmid:
        yield f"{refused}owned by other VM (owner = VM {volume.vmid})"
        return
    if vm.snapshots and vm.running:
        yield f"{refused}online storage migration not possible if non-replicated snapshot exists"
        return
    if volume is not None and volume.kept and not _exports_snapshots(call, volume):
        yield f"{refused}non-migratable snapshot exists"
        return
    base = parse_volid(drive.file).parent.rpartition("/")[2]
    if base:
        yield f"can't migrate '{drive.file}' as it's a clone of '{base}'"


def _exports_snapshots(call: Call, volume: Volume) -> bool:
    """Return whether a volume is copied to another node with its snapshots."""
    storage = call.cluster.storage(volume.storage)
    own = storage.type == "zfspool" or (storage.type == "btrfs" and volume.format == RAW)
    return own or (volume.format == QCOW2 and not kind(storage).chained)


def copy(
    call: Call, log: _Log, vm: Vm, local: list[Drive], target: str, moved: list[Moved]
) -> Work:
    """Copy the local disks to the target; each is in ``moved`` from when it begins."""
    if vm.running:
        log(f"starting VM {vm.vmid} on remote node '{target}'")
    elif local:
        log("copying local disk images")
    for drive in local:
        yield from _allocate(call, log, drive, target, moved)
        if not vm.running:
            yield from _offline(call, log, moved[-1], target)
    if vm.running:
        log("start remote tunnel")
        log("ssh tunnel ver 1")
        yield from _mirrors(call, log, vm, target, moved)


def _allocate(call: Call, log: _Log, drive: Drive, target: str, moved: list[Moved]) -> Work:
    cluster = call.cluster
    source = cluster.volume(drive.file, call.node)
    if source is None:
        raise PveError(f"volume '{drive.file}' does not exist")
    if source.base and cluster.volumes.children(source):
        raise PveError(f"base volume '{drive.file}' is still in use by linked cloned")
    storage = _mapped(call, drive.storage)
    name, place = source.name, cluster.place(storage, target)
    if cluster.volumes.get(place, name) is not None:
        name = cluster.volumes.free_name(
            cluster.storage(storage), target, source.vmid, source.format
        )
    # On a storage of another type it gets a name and a format of that.
    image_format = kind(cluster.storage(storage)).format(source.format)
    if kind(cluster.storage(storage)) != kind(cluster.storage(drive.storage)):
        name = cluster.volumes.free_name(
            cluster.storage(storage), target, source.vmid, image_format
        )
    made = yield from disks.allocate(
        cluster, None, target, storage, source.vmid, image_format, source.size, name
    )
    moved.append(Moved(drive, source, made))
    if call.vm().running:
        log(f"volume '{drive.file}' is '{made.volid}' on the target")


def _offline(call: Call, log: _Log, one: Moved, target: str) -> Work:
    size = one.source.virtual_size or one.source.size
    if one.copy.format == QCOW2 and not kind(call.cluster.storage(one.copy.storage)).files:
        raise PveError(
            f"storage migration for '{one.source.volid}' to storage '{one.copy.storage}' failed - "
            f"cannot import format raw+size into a file of format {one.copy.format}"
        )
    for step in range(1, disks.STEPS + 1):
        yield Sleep(size / disks.COPY_BYTES_PER_SECOND / disks.STEPS)
        _check(call, one, target)
        if step < disks.STEPS:
            log(_dd(size * step // disks.STEPS, step))
    _grow(call, one)
    records = size // 4096
    for line in (
        f"{records}+0 records in",
        f"{records}+0 records out",
        _dd(size, disks.STEPS),
        f"successfully imported '{one.copy.volid}'",
        f"volume '{one.source.volid}' is '{one.copy.volid}' on the target",
    ):
        log(line)


def _dd(copied: int, seconds: int) -> str:
    """Return what dd says each second, and at its end."""
    megabytes = copied / 1_000_000
    sizes = f"{megabytes:.0f} MB, {copied / MIB:.0f} MiB"
    return f"{copied} bytes ({sizes}) copied, {seconds} s, {megabytes / seconds:.1f} MB/s"


def _mirrors(call: Call, log: _Log, vm: Vm, target: str, moved: list[Moved]) -> Work:
    if not moved:
        return
    log("starting storage migration")
    for one in moved:
        name, size = one.drive.name, one.source.virtual_size or one.source.size
        log(
            f"{name}: start migration to nbd:unix:/run/qemu-server/{vm.vmid}_nbd.migrate:"
            f"exportname=drive-{name}"
        )
        log(f"drive mirror is starting for drive-{name}")
        for step in range(1, disks.STEPS + 1):
            yield Sleep(size / disks.COPY_BYTES_PER_SECOND / disks.STEPS)
            _check(call, one, target)
            log(disks.mirrored(name, size, step))
        _grow(call, one)
    log("all 'mirror' jobs are ready")


def _check(call: Call, one: Moved, target: str) -> None:
    cluster = call.cluster
    if not cluster.nodes[target].up:
        raise PveError("storage migration failed: mirroring error: target node is not reachable")
    storage = cluster.storages.get(one.copy.storage)
    if storage is None or cluster.used(storage, target) + one.source.used > storage.capacity:
        raise PveError(
            f"storage migration for '{one.source.volid}' to storage '{one.copy.storage}' failed - "
            "No space left on device"
        )


def _grow(call: Call, one: Moved) -> None:
    one.copy.data, one.copy.kept = one.source.data, dict(one.source.kept)
    one.copy.kept_sizes = dict(one.source.kept_sizes)
    if one.source.used > one.copy.used:
        disks.resize(call.cluster, one.copy, used=one.source.used)


def _mapped(call: Call, storage: str) -> str:
    mapped = call.get("targetstorage")
    if not mapped or mapped == "1":
        return storage
    pairs = dict(pair.split(":", 1) for pair in mapped.split(",") if ":" in pair)
    default = next((one for one in mapped.split(",") if ":" not in one), storage)
    return pairs.get(storage, default)
