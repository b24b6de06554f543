"""Snapshots: create, list, delete, roll back."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from typing import Any

from simulator.engine import Release, Sleep, Work
from simulator.errors import PveError
from simulator.qemu import config_lock, pending, resize, suspend_disk, volume_snapshots
from simulator.qemu.config_lock import check_lock
from simulator.qemu.drives import Drive, drives_of
from simulator.qemu.power import end_process, mark_running
from simulator.request.call import Call
from simulator.request.vmschema import typed
from simulator.state import disks
from simulator.state.cluster import Cluster
from simulator.state.model import ConfigMap, Snapshot, Volume
from simulator.state.tasks import Job

SNAPSHOT_SECONDS = 0.5
#: options that a snapshot does not have (``__snapshot_copy_config``)
_NOT_KEPT = re.compile(r"lock|parent|vmstate|description|unused[0-9]+")


def snapshots(call: Call) -> list[dict[str, Any]]:
    """Return all snapshots, and `current` for the present state."""
    vm = call.vm()
    shown: list[dict[str, Any]] = []
    for one in vm.snapshots.values():
        entry: dict[str, Any] = {
            "name": one.name,
            "description": one.description,
            "snaptime": one.snaptime,
            "vmstate": int(bool(one.vmstate)),
        }
        if one.parent:
            entry["parent"] = one.parent
        if one.snapstate:
            entry["snapstate"] = one.snapstate
        shown.append(entry)
    now: dict[str, Any] = {
        "name": "current",
        "description": "You are here!",
        "running": int(vm.running),
        "digest": vm.digest(),
    }
    if "parent" in vm.config:
        now["parent"] = vm.config["parent"]
    return [*shown, now]


def index(call: Call) -> list[dict[str, str]]:
    """Return the index below one snapshot."""
    return [{"cmd": "rollback"}, {"cmd": "config"}]


def config(call: Call) -> dict[str, Any]:
    """Return a snapshot's configuration."""
    vm, name = call.vm(), call.get("snapname")
    if name not in vm.snapshots:
        raise PveError(f"snapshot '{name}' does not exist")
    kept = vm.snapshots[name]
    shown: dict[str, Any] = {**typed(kept.config), "snaptime": kept.snaptime}
    said = (("description", kept.description), ("parent", kept.parent))
    for key, text in (*said, ("snapstate", kept.snapstate)):
        if text:
            shown[key] = text
    if kept.vmstate:
        shown |= {"vmstate": kept.vmstate, "runningmachine": suspend_disk.MACHINE}
        shown["runningcpu"] = "qemu64"
    return shown


def change(call: Call) -> None:
    """Change a snapshot's description."""
    vm, name = call.vm(), call.get("snapname")
    if name not in vm.snapshots:
        raise PveError(f"snapshot '{name}' does not exist")
    check_lock(vm)
    call.cluster.edit(vm).snapshots[name].description = call.get("description")


def _disks_of(
    cluster: Cluster, config: ConfigMap, node: str
) -> Iterator[tuple[Drive, Volume | None]]:
    """Yield the disks of a configuration on known storages; None: the volume is missing."""
    for one in drives_of(config):
        if one.storage in cluster.storages and not one.cdrom:
            yield one, cluster.volume(one.file, node)


def create(call: Call) -> str:
    """Create a snapshot."""
    name = call.get("snapname")
    if name in ("current", "pending"):
        raise PveError(f"unable to use snapshot name '{name}' (reserved name)")
    call.vm()
    return call.start("qmsnapshot", call.vmid, lambda job: _create(call, job, name))


def _create(call: Call, job: Job, name: str) -> Work:
    cluster = call.cluster
    lock = yield from config_lock.take(call, job)
    vm = call.vm()
    check_lock(vm)
    if vm.template:
        raise PveError("you can't take a snapshot if it's a template")
    if name in vm.snapshots:
        raise PveError(f"snapshot name '{name}' already used")
    found = list(_disks_of(cluster, vm.config, vm.node))
    if not all(resize.able_to(cluster, vm, "snapshot", one.file) for one, disk in found if disk):
        raise PveError("snapshot feature is not available")
    kept = {key: text for key, text in vm.config.items() if not _NOT_KEPT.fullmatch(key)}
    cluster.edit(vm).config["lock"] = "snapshot"
    yield Release(lock)
    state, snapped = "", []
    try:
        if call.flag("vmstate") and vm.running:
            state = yield from _save_memory(call, job, name)
        for drive, volume in found:
            job.log(f"snapshotting 'drive-{drive.name}' ({drive.file})")
            snapped.append(volume_snapshots.make(cluster, job, vm, drive, volume, name))
        yield Sleep(SNAPSHOT_SECONDS)
    except PveError:
        for volume in snapped:
            volume_snapshots.forget(cluster, volume, name)
        cluster.edit(vm).config.pop("lock", None)
        raise
    parent = vm.config.get("parent", "")
    snapshot = Snapshot(name, kept, int(time.time()), parent, call.get("description"), state)
    cluster.edit(vm).snapshots[name] = snapshot
    vm.config["parent"] = name
    vm.config.pop("lock", None)


def _save_memory(call: Call, job: Job, name: str) -> Work:
    vm = call.vm()
    storage = suspend_disk.state_storage(call.cluster, vm)
    volume = yield from suspend_disk.allocate_state(call, job, vm, storage, name)
    job.log(f"saving VM state and RAM using storage '{storage}'")
    return volume.volid


def delete(call: Call) -> str:
    """Delete a snapshot."""
    return call.start("qmdelsnapshot", call.vmid, lambda job: _delete(call, job))


def _delete(call: Call, job: Job) -> Work:
    cluster, name = call.cluster, call.get("snapname")
    lock = yield from config_lock.take(call, job)
    vm = call.vm()
    check_lock(vm)
    gone = vm.snapshots.get(name)
    if gone is None:
        raise PveError(f"snapshot '{name}' does not exist")
    cluster.edit(vm).config["lock"] = "snapshot-delete"
    gone.snapstate = "delete"
    if gone.vmstate:
        yield from disks.free(cluster, call.node, gone.vmstate)
    yield Sleep(SNAPSHOT_SECONDS)
    freed = []
    # What fails leaves the lock, and the disks that are still to be done.
    for drive, volume in list(_disks_of(cluster, gone.config, vm.node)):
        try:
            volume_snapshots.delete(cluster, vm, drive, volume, name)
            freed.append(drive)
        except PveError as error:
            if not call.flag("force"):
                raise
            job.warn(error.text)
        cluster.edit(vm)
        del gone.config[drive.name]
    cluster.edit(vm)
    del vm.snapshots[name]
    for other in vm.snapshots.values():
        if other.parent == name:
            other.parent = gone.parent
    if vm.config.get("parent") == name:
        vm.config.pop("parent")
        if gone.parent:
            vm.config["parent"] = gone.parent
    vm.config.pop("lock", None)
    _leave_unused(vm.config, freed)
    yield Release(lock)


def _leave_unused(config: ConfigMap, released: Iterable[Drive]) -> None:
    """Name volumes that a configuration does not use, of any owner, as unused."""
    used = {one.file for one in drives_of(config)}
    for one in released:
        if one.file not in used:
            pending.add_unused(config, one.file)


def rollback(call: Call) -> str:
    """Roll back to a snapshot."""
    return call.start("qmrollback", call.vmid, lambda job: _rollback(call, job))


def _rollback(call: Call, job: Job) -> Work:
    cluster, name = call.cluster, call.get("snapname")
    lock = yield from config_lock.take(call, job)
    vm = call.vm()
    if vm.template:
        raise PveError("you can't rollback if vm is a template")
    if name not in vm.snapshots:
        raise PveError(f"snapshot '{name}' does not exist")
    snapshot = vm.snapshots[name]
    found = list(_disks_of(cluster, snapshot.config, vm.node))
    for drive, volume in found:
        volume_snapshots.require_last(cluster, drive, volume, name)
    if snapshot.snapstate:
        state = f"(snapstate = {snapshot.snapstate})"
        raise PveError(f"unable to rollback to incomplete snapshot {state}")
    check_lock(vm)
    if vm.running:
        end_process(cluster, vm)
    # From here on a failure leaves the lock.
    cluster.edit(vm).config["lock"] = "rollback"
    yield Sleep(SNAPSHOT_SECONDS)
    for drive, volume in found:
        volume_snapshots.restore(cluster, job, vm, drive, volume, name)
    used = {one.file for one, _ in found}
    retained = {
        key: text
        for key, text in vm.config.items()
        if key == "description" or (key.startswith("unused") and text not in used)
    }
    lost = [one for one, _ in _disks_of(cluster, vm.config, vm.node)]
    cluster.edit(vm).config = {**snapshot.config, **retained, "parent": name}
    _leave_unused(vm.config, lost)
    vm.pending, vm.pending_delete, vm.pending_force = {}, [], []
    if snapshot.vmstate or call.flag("start"):
        mark_running(cluster, vm)
    yield Release(lock)
