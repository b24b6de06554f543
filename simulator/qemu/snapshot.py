"""Snapshots: create, list, delete, roll back."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

from simulator import disks
from simulator.call import Call
from simulator.cluster import Cluster
from simulator.engine import Release, Sleep, Work
from simulator.errors import PveError, locked
from simulator.model import ConfigMap, Snapshot, Volume
from simulator.qemu import config_lock, resize, suspend_disk
from simulator.qemu.config_lock import check_lock
from simulator.qemu.drives import Drive, drives_of
from simulator.qemu.power import end_process, mark_running
from simulator.storage_kinds import KINDS
from simulator.tasks import Job
from simulator.vmschema import typed

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
    for key, text in (("description", kept.description), ("parent", kept.parent)):
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


def _disks_of(cluster: Cluster, config: ConfigMap, node: str) -> Iterator[tuple[Drive, Volume]]:
    for one in drives_of(config):
        volume = None
        if one.storage in cluster.storages and not one.cdrom:
            volume = cluster.volume(one.file, node)
        if volume is not None:
            yield one, volume


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
    if not all(resize.able_to(cluster, vm, "snapshot", one.file) for one, _ in found):
        raise PveError("snapshot feature is not available")
    kept = {key: text for key, text in vm.config.items() if not _NOT_KEPT.fullmatch(key)}
    cluster.edit(vm).config["lock"] = "snapshot"
    yield Release(lock)
    state = ""
    try:
        if call.flag("vmstate") and vm.running:
            state = yield from _save_memory(call, job, name)
        for drive, volume in found:
            job.log(f"snapshotting 'drive-{drive.name}' ({drive.file})")
            if vm.running:
                job.log("internal qemu snapshot")
            else:
                disks.require_closed(cluster, volume)
        yield Sleep(SNAPSHOT_SECONDS)
        for _, volume in found:
            volume.kept[name] = volume.data
            cluster.add_volume(volume)
    except PveError:
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
    if gone.vmstate:
        yield from disks.free(cluster, call.node, gone.vmstate)
    yield Sleep(SNAPSHOT_SECONDS)
    for _, volume in _disks_of(cluster, gone.config, vm.node):
        if not vm.running:
            disks.require_closed(cluster, volume)
        volume.kept.pop(name, None)
        cluster.add_volume(volume)
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
    yield Release(lock)


def _require_last(cluster: Cluster, volume: Volume, name: str) -> None:
    """Raise unless a volume can go back to a snapshot."""
    only_last = KINDS[cluster.storage(volume.storage).type].only_last
    if only_last and next(reversed(volume.kept), name) != name:
        raise PveError(f"can't rollback, '{name}' is not most recent snapshot on '{volume.volid}'")


def rollback(call: Call) -> str:
    """Roll back to a snapshot."""
    return call.start("qmrollback", call.vmid, lambda job: _rollback(call, job))


def _rollback(call: Call, job: Job) -> Work:
    cluster, name = call.cluster, call.get("snapname")
    lock = yield from config_lock.take(call, job)
    vm = call.vm()
    if name not in vm.snapshots:
        raise PveError(f"snapshot '{name}' does not exist")
    if vm.lock and vm.lock != "rollback":
        raise locked(vm.lock)
    snapshot = vm.snapshots[name]
    found = list(_disks_of(cluster, snapshot.config, vm.node))
    for _, volume in found:
        _require_last(cluster, volume, name)
    if vm.running:
        end_process(cluster, vm)
    cluster.edit(vm).config["lock"] = "rollback"
    yield Sleep(SNAPSHOT_SECONDS)
    for _, volume in found:
        disks.require_closed(cluster, volume)
        volume.data = volume.kept.get(name, volume.data)
        cluster.add_volume(volume)
    used = {volume.volid for _, volume in found}
    stays = {
        key: text
        for key, text in vm.config.items()
        if key == "description" or (key.startswith("unused") and text not in used)
    }
    cluster.edit(vm).config = {**snapshot.config, **stays, "parent": name}
    vm.pending, vm.pending_delete, vm.pending_force = {}, [], []
    if snapshot.vmstate or call.flag("start"):
        mark_running(cluster, vm)
    yield Release(lock)
