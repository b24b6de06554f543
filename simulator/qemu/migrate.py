"""`…/migrate`: preconditions, and the worker that moves a VM to another node."""

from __future__ import annotations

import time
from typing import Any

from simulator import disks
from simulator.call import Call
from simulator.cluster import Cluster
from simulator.engine import Release, Sleep, Work
from simulator.errors import PveError, bad_parameters, parameter_errors
from simulator.model import Vm, Volume
from simulator.qemu import config_lock, ha_move, ha_power
from simulator.qemu.config_lock import check_lock
from simulator.qemu.drives import Drive, drives_of
from simulator.qemu.status import memory_of
from simulator.tasks import Job
from simulator.volumes import parse_volid

SETUP_SECONDS = 1.0
MEMORY_BYTES_PER_SECOND = 500_000_000
_ROOT_ONLY = ("force", "migration_type", "migration_network")


def preconditions(call: Call) -> dict[str, Any]:
    """Return where a VM may go, and what prevents it."""
    cluster = call.cluster
    cluster.check_quorum()
    vm = call.vm()
    check_lock(vm)
    refused: dict[str, Any] = {}
    allowed = []
    for name in cluster.nodes:
        if name == call.node:
            continue
        missing = _missing_storages(cluster, vm, name)
        if missing:
            refused[name] = {"unavailable_storages": missing}
        else:
            allowed.append(name)
            refused[name] = {}
    return {
        "running": int(vm.running),
        "allowed_nodes": allowed,
        "not_allowed_nodes": refused,
        "local_disks": [_local_disk(cluster, call.node, one) for one in _local(cluster, vm)],
        "local_resources": [],
        "mapped-resources": [],
        "mapped-resource-info": {},
        "has-dbus-vmstate": 1,
    }


def _missing_storages(cluster: Cluster, vm: Vm, node: str) -> list[str]:
    used = {drive.storage for drive in drives_of(vm.config) if drive.storage}
    return sorted(
        name
        for name in used
        if name not in cluster.storages
        or cluster.storages[name].disabled
        or not cluster.storages[name].on(node)
    )


def _local(cluster: Cluster, vm: Vm) -> list[Drive]:
    return [
        drive
        for drive in drives_of(vm.config, unused=True)
        if drive.storage and not cluster.storage(drive.storage).shared
    ]


def _local_disk(cluster: Cluster, node: str, drive: Drive) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "volid": drive.file,
        "drivename": drive.name,
        "cdrom": int(drive.cdrom),
        "is_attached": int(not drive.name.startswith("unused")),
        "is_unused": int(drive.name.startswith("unused")),
        "is_cloudinit": int(drive.cloudinit),
        "is_tpmstate": int(drive.name == "tpmstate0"),
        "is_vmstate": 0,
        "replicate": 1,
        "shared": 0,
    }
    volume = cluster.volume(drive.file, node)
    if volume is not None and "size" in drive.options:
        shown["size"] = volume.size
    return shown


def migrate(call: Call) -> str:
    """Migrate a VM: cold, or live with `online`."""
    cluster, target = call.cluster, call.get("target")
    if target == call.node:
        raise bad_parameters(target="target is local node.")
    cluster.check_quorum()
    if target not in cluster.nodes:
        raise PveError(f"no such cluster node '{target}'")
    for name in _ROOT_ONLY:
        if call.get(name) and not call.who.root:
            raise parameter_errors({name: "Only root may use this option."})
    vm = call.vm()
    check_lock(vm)
    if vm.running and not call.flag("online"):
        raise PveError("can't migrate running VM without --online")
    mapped = call.get("targetstorage")
    if mapped:
        _check_target_storage(call, mapped, target)
    else:
        missing = _missing_storages(cluster, vm, target)
        if missing:
            raise PveError(f"storage '{missing[0]}' is not available on node '{target}'")
    if ha_power.resource(cluster, call.vmid):
        return ha_move.ask(call, target, launch)
    return launch(call, target)


def launch(call: Call, target: str) -> str:
    """Start the worker that migrates a VM; also for the HA manager."""
    return call.start("qmigrate", call.vmid, lambda job: _worker(call, job, target))


def _check_target_storage(call: Call, mapped: str, target: str) -> None:
    if mapped != "1":
        call.cluster.access.require_vm(call.who, call.vmid, None, "VM.Config.Disk")
        for pair in mapped.split(","):
            storage = pair.rpartition(":")[2]
            path = f"/storage/{storage}"
            call.cluster.access.require(call.who, path, "Datastore.AllocateSpace")
            call.cluster.enabled_storage(storage, target)


class _Log:
    """A log with a time stamp on every line."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def __call__(self, text: str) -> None:
        self._job.log(f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())} {text}")


def _worker(call: Call, job: Job, target: str) -> Work:
    cluster, log, began = call.cluster, _Log(job), time.monotonic()
    lock = yield from config_lock.take(call, job)
    vm = call.vm()
    check_lock(vm)
    if vm.running:
        log(
            "conntrack state migration not supported or disabled, active connections might get "
            "dropped"
        )
    log(f"starting migration of VM {vm.vmid} to node '{target}' ({cluster.nodes[target].ip})")
    local = _local(cluster, vm)
    _check_local(call, vm, local, log)
    cluster.edit(vm).config["lock"] = "migrate"
    try:
        yield Sleep(SETUP_SECONDS)
        _check_target(cluster, target)
        moved = yield from _copy_disks(call, job, log, local, target)
        if vm.running:
            yield from _copy_memory(vm, log)
        _check_target(cluster, target)
    except PveError as error:
        log(f"ERROR: migration aborted: {error.text}")
        cluster.edit(vm).config.pop("lock", None)
        raise PveError("migration aborted") from error
    _arrive(call, vm, moved, target)
    seconds = int(time.monotonic() - began)
    log(f"migration finished successfully (duration 00:{seconds // 60:02}:{seconds % 60:02})")
    yield Release(lock)


def _check_local(call: Call, vm: Vm, local: list[Drive], log: _Log) -> None:
    """Check all local volumes before changing anything; the causes are only in the log."""
    for drive in local:
        log(f"found local disk '{drive.file}' (attached)")
    causes = [cause for drive in local if (cause := _cannot_follow(call, vm, drive))]
    if not causes:
        return
    for cause in causes:
        log(cause)
    problem = "Problem found while scanning volumes - can't migrate VM - check log"
    log(f"ERROR: {problem}")
    log("aborting phase 1 - cleanup resources")
    log(f"ERROR: migration aborted (duration 00:00:01): {problem}")
    raise PveError("migration aborted")


def _cannot_follow(call: Call, vm: Vm, drive: Drive) -> str:
    """Return why a local volume prevents the migration, or empty."""
    refused = f"can't migrate local disk '{drive.file}': "
    if drive.cdrom and not drive.cloudinit:
        return f"{refused}local cdrom image"
    if vm.running:
        if not call.flag("with-local-disks"):
            return (
                f"{refused}can't live migrate attached local disks without with-local-disks option"
            )
        return ""
    base = parse_volid(drive.file).parent.rpartition("/")[2]
    return f"can't migrate '{drive.file}' as it's a clone of '{base}'" if base else ""


def _check_target(cluster: Cluster, target: str) -> None:
    if not cluster.nodes[target].up:
        raise PveError(f"command '/usr/bin/ssh … {target}' failed: exit code 255")


def _copy_memory(vm: Vm, log: _Log) -> Work:
    log("starting online/live migration on unix:/run/qemu-server/migrate.migrate")
    yield Sleep(memory_of(vm) / MEMORY_BYTES_PER_SECOND)
    log("migration status: completed")


def _copy_disks(call: Call, job: Job, log: _Log, local: list[Drive], target: str) -> Work:
    cluster = call.cluster
    moved: list[tuple[Drive, Volume, Volume]] = []
    if local:
        log("copying local disk images")
    for drive in local:
        source = cluster.volume(drive.file, call.node)
        if source is None:
            raise PveError(f"volume '{drive.file}' does not exist")
        if source.base and cluster.volumes.children(source):
            raise PveError(f"base volume '{drive.file}' is still in use by linked cloned")
        storage = _mapped(call, drive.storage)
        name = source.name
        if cluster.volumes.get(cluster.place(storage, target), name) is not None:
            name = cluster.volumes.free_name(
                cluster.place(storage, target), source.vmid, source.format
            )
        copy = yield from disks.allocate(
            cluster, None, target, storage, source.vmid, source.format, source.size, name
        )
        yield from disks.copy(cluster, job, target, source, copy)
        log(f"volume '{drive.file}' is '{copy.volid}' on the target")
        moved.append((drive, source, copy))
    return moved


def _mapped(call: Call, storage: str) -> str:
    mapped = call.get("targetstorage")
    if not mapped or mapped == "1":
        return storage
    pairs = dict(pair.split(":", 1) for pair in mapped.split(",") if ":" in pair)
    default = next((one for one in mapped.split(",") if ":" not in one), storage)
    return pairs.get(storage, default)


def _arrive(call: Call, vm: Vm, moved: list[tuple[Drive, Volume, Volume]], target: str) -> None:
    cluster = call.cluster
    cluster.edit(vm)
    for drive, source, copy in moved:
        drive.file = copy.volid
        if drive.name.startswith("unused"):
            vm.config[drive.name] = copy.volid
        else:
            drive.options["size"] = disks.print_size(copy.size)
            vm.config[drive.name] = drive.text()
        cluster.remove_volume(source)
    vm.config.pop("lock", None)
    vm.node = target
    if vm.running:
        node = cluster.nodes[target]
        node.last_pid += 1
        vm.pid = node.last_pid
