"""`…/migrate`: what may be moved where, and the request to do it."""

from __future__ import annotations

from typing import Any

from simulator.errors import PveError, bad_parameters, parameter_errors
from simulator.qemu import ha_move, ha_power, migration
from simulator.qemu.config_lock import check_lock
from simulator.qemu.drives import Drive, drives_of
from simulator.qemu.migration import local_drives
from simulator.request.call import Call
from simulator.state.cluster import Cluster
from simulator.state.model import Vm

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
        "local_disks": [_local_disk(cluster, call.node, one) for one in local_drives(cluster, vm)],
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
    return call.start("qmigrate", call.vmid, lambda job: migration.worker(call, job, target))


def _check_target_storage(call: Call, mapped: str, target: str) -> None:
    if mapped != "1":
        call.cluster.access.require_vm(call.who, call.vmid, None, "VM.Config.Disk")
        for pair in mapped.split(","):
            storage = pair.rpartition(":")[2]
            path = f"/storage/{storage}"
            call.cluster.access.require(call.who, path, "Datastore.AllocateSpace")
            call.cluster.enabled_storage(storage, target)
