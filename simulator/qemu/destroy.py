"""`DELETE …/{vmid}`: disks first, then the configuration, even if disks could not be freed."""

from __future__ import annotations

from simulator.engine import Release, Work
from simulator.errors import PveError
from simulator.qemu import config_lock
from simulator.qemu.config_lock import check_lock
from simulator.qemu.drives import Drive, drives_of
from simulator.request.call import Call
from simulator.state import disks, ha_resources
from simulator.state.model import Vm
from simulator.state.tasks import Job
from simulator.state.volumes import owner_of, parse_volid


def destroy(call: Call) -> str:
    """Remove a VM and the disks its configuration names."""
    skip = call.skiplock()
    _early(call)
    return call.start("qmdestroy", call.vmid, lambda job: _worker(call, job, skip))


def _early(call: Call) -> Vm:
    vm = call.vm()
    if vm.config.get("protection") == "1":
        raise PveError(f"can't remove VM {vm.vmid} - protection mode enabled")
    if vm.running:
        raise PveError(f"VM {vm.vmid} is running - destroy failed")
    if f"vm:{vm.vmid}" in call.cluster.ha.resources and not call.flag("purge"):
        raise PveError(
            f"unable to remove VM {vm.vmid} - used in HA resources and purge parameter not set."
        )
    return vm


def _worker(call: Call, job: Job, skip: bool) -> Work:
    cluster = call.cluster
    lock = yield from config_lock.take(call, job)
    vm = _early(call)
    check_lock(vm, skip=skip or vm.lock == "suspended")
    _check_base(call, vm)
    yield from _free_disks(call, job, vm)
    # Until the end the VMID is taken by a configuration with only this lock.
    cluster.edit(vm).config = {"lock": "destroyed"}
    vm.pending, vm.pending_delete, vm.snapshots = {}, [], {}
    vm.pending_force = []
    cluster.set_pool(vm.vmid, None)
    _forget_grants(call, vm.vmid)
    if call.flag("purge"):
        job.log(f"purging VM {vm.vmid} from related configurations..")
        if ha_resources.forget(cluster, f"vm:{vm.vmid}", purge=True):
            job.log(f"NOTE: removed VM {vm.vmid} from HA resource configuration.")
        if cluster.firewalls.pop(f"vm/{vm.vmid}", None) is not None:
            cluster.drop("firewall", f"vm/{vm.vmid}")
    cluster.remove_vm(vm)
    yield Release(lock)


def _check_base(call: Call, vm: Vm) -> None:
    if not vm.template:
        return
    for drive in drives_of(vm.config, unused=True):
        volume = call.cluster.volume(drive.file, call.node) if drive.storage else None
        if volume is not None and volume.base and call.cluster.volumes.children(volume):
            raise PveError(f"base volume '{drive.file}' is still in use by linked cloned")


def _free_disks(call: Call, job: Job, vm: Vm) -> Work:
    cluster = call.cluster
    kept: set[str] = set()
    named = (*drives_of(vm.config, unused=True), *drives_of(vm.pending))
    owned = [drive.file for drive in named if _owned(drive, vm.vmid)]
    if "vmstate" in vm.config:
        owned.append(vm.config["vmstate"])
    owned += [one.vmstate for one in vm.snapshots.values() if one.vmstate]
    for volid in dict.fromkeys(owned):
        try:
            if cluster.faults.leak("L7", call.node, vm.vmid):
                raise PveError(f"unable to remove '{volid}': device or resource busy")
            yield from disks.free(cluster, call.node, volid)
        except PveError as error:
            kept.add(volid)
            job.warn(f"Could not remove disk '{volid}', check manually: {error.text}")
    if call.flag("destroy-unreferenced-disks"):
        yield from _free_unreferenced(call, job, vm, kept)


def _owned(drive: Drive, vmid: int) -> bool:
    return bool(drive.storage) and owner_of(parse_volid(drive.file).name) == vmid


def _free_unreferenced(call: Call, job: Job, vm: Vm, kept: set[str]) -> Work:
    cluster = call.cluster
    for storage in list(cluster.storages.values()):
        if storage.disabled or not storage.on(call.node) or "images" not in storage.content:
            continue
        place = cluster.place(storage.id, call.node)
        for volume in cluster.volumes.at(place, vm.vmid):
            if volume.volid in kept:
                continue
            try:
                yield from disks.free(cluster, call.node, volume.volid)
            except PveError as error:
                job.warn(error.text)


def _forget_grants(call: Call, vmid: int) -> None:
    access = call.cluster.access
    path = f"/vms/{vmid}"
    if any(grant.path == path for grant in access.grants):
        access.grants = [grant for grant in access.grants if grant.path != path]
        call.cluster.save_access()
