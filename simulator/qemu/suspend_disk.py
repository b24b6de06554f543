"""Suspend to disk: the volume with the memory, and the configuration's entries."""

from __future__ import annotations

import re
import time

from simulator.engine import Sleep, Work
from simulator.errors import PveError
from simulator.qemu import ha_power
from simulator.qemu.drives import drives_of
from simulator.request.call import Call
from simulator.state import disks
from simulator.state.cluster import Cluster
from simulator.state.model import MIB, Vm
from simulator.state.tasks import Job
from simulator.state.volumes import image_name

SAVE_SECONDS = 1.0
MACHINE = "pc-i440fx-10.2+pve0"
KEYS = ("lock", "vmstate", "runningmachine", "runningcpu", "running-nets-host-mtu")


_PCI = re.compile(r"hostpci[0-9]+")
_SHARE = re.compile(r"virtiofs[0-9]+")


def check(call: Call, vm: Vm) -> None:
    """Raise what a suspend to disk answers before there is a task."""
    if ha_power.resource(call.cluster, vm.vmid):
        raise PveError("Cannot suspend HA managed VM to disk")
    call.cluster.access.require(call.who, f"/vms/{vm.vmid}", "VM.Config.Disk")
    if any(_PCI.fullmatch(name) for name in vm.config):
        raise PveError(
            "cannot suspend VM to disk due to passed-through PCI device(s), which lack the "
            "possibility to save/restore their internal state"
        )
    storage = call.get("statestorage") or state_storage(call.cluster, vm)
    call.cluster.access.require(call.who, f"/storage/{storage}", "Datastore.AllocateSpace")


def prepare(call: Call, job: Job, vm: Vm) -> Work:
    """Allocate the state volume; from then on the VM has the lock `suspending`."""
    if any(_SHARE.fullmatch(name) for name in vm.config):
        raise PveError(
            "Cannot live-migrate, snapshot (with RAM), or hibernate a VM with: virtiofs"
        )
    storage = call.get("statestorage") or state_storage(call.cluster, vm)
    name = time.strftime("suspend-%Y-%m-%d", time.gmtime())
    volume = yield from allocate_state(call, job, vm, storage, name)
    state = {"vmstate": volume.volid, "runningmachine": MACHINE, "runningcpu": "qemu64"}
    call.cluster.edit(vm).config |= {"lock": "suspending", **state}


def save(call: Call, job: Job, vm: Vm) -> Work:
    """Write the memory. If that fails the volume is deleted and the lock remains."""
    yield Sleep(SAVE_SECONDS)
    if call.cluster.faults.leak("L8", call.node, vm.vmid):
        forget(call.cluster, vm)
        call.cluster.edit(vm).config["lock"] = "suspending"
        # Of pve-qemu's savevm-async: a number.
        raise PveError("query-savevm failed with error 'qemu_savevm_state_iterate error -28'")
    job.log("State saved, quitting")


def state_storage(cluster: Cluster, vm: Vm) -> str:
    """Return the storage for a VM's memory: the configured one, or the storage of a disk of the
    VM, a shared one first."""
    used = [one.storage for one in drives_of(vm.config) if one.storage and not one.cdrom]
    used.sort(key=lambda name: name in cluster.storages and not cluster.storages[name].shared)
    return vm.config.get("vmstatestorage") or next(iter(used), "local")


def allocate_state(call: Call, job: Job, vm: Vm, storage: str, name: str) -> Work:
    """Allocate a volume for twice the memory and the state of devices."""
    found = call.cluster.storage(storage)
    size = int(vm.config.get("memory", "512")) * 2 * MIB + 500 * MIB
    file = image_name(found, vm.vmid, f"state-{name}", "raw")
    return (
        yield from disks.allocate(
            call.cluster, job, call.node, storage, vm.vmid, "raw", size, file
        )
    )


def forget(cluster: Cluster, vm: Vm) -> None:
    """Remove the saved state of a VM that runs again."""
    volume = cluster.volume(vm.config["vmstate"], vm.node) if "vmstate" in vm.config else None
    if volume is not None:
        cluster.remove_volume(volume)
    for key in KEYS:
        cluster.edit(vm).config.pop(key, None)
