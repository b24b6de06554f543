"""Suspend to disk: the volume with the memory, and the configuration's entries."""

from __future__ import annotations

import time

from simulator import disks
from simulator.call import Call
from simulator.cluster import Cluster
from simulator.engine import Work
from simulator.model import MIB, Vm
from simulator.qemu.drives import drives_of
from simulator.tasks import Job

MACHINE = "pc-i440fx-10.2+pve0"
KEYS = ("lock", "vmstate", "runningmachine", "runningcpu", "running-nets-host-mtu")


def save(call: Call, job: Job, vm: Vm) -> Work:
    """Allocate the state volume; return the configuration's entries."""
    storage = call.get("statestorage") or state_storage(vm)
    name = time.strftime("suspend-%Y-%m-%d", time.gmtime())
    volume = yield from allocate_state(call, job, vm, storage, name)
    return {"vmstate": volume.volid, "runningmachine": MACHINE, "runningcpu": "qemu64"}


def state_storage(vm: Vm) -> str:
    """Return the storage for a VM's memory: the configured one, or that of its first disk."""
    return vm.config.get("vmstatestorage") or next(
        (one.storage for one in drives_of(vm.config) if one.storage and not one.cdrom), "local"
    )


def allocate_state(call: Call, job: Job, vm: Vm, storage: str, name: str) -> Work:
    """Allocate a volume for twice the memory and the state of devices."""
    call.cluster.storage(storage)
    size = int(vm.config.get("memory", "512")) * 2 * MIB + 500 * MIB
    file = f"{vm.vmid}/vm-{vm.vmid}-state-{name}.raw"
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
