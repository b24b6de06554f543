"""The lock of a VM's configuration: taking it in a task, and checking its `lock` entry."""

from __future__ import annotations

from simulator.engine import Work
from simulator.errors import locked
from simulator.request.call import Call
from simulator.state.model import Vm
from simulator.state.tasks import Job


def take(call: Call, job: Job | None, vmid: int = 0) -> Work:
    """Take the lock of a VM (default: the VM of the call); a wait is logged."""
    vmid = vmid or call.vmid
    waits = not call.cluster.vm_lock(call.node, vmid).free_for(False)
    if job is not None and waits:
        job.log("trying to acquire lock...")
    lock = yield from call.cluster.lock_vm(call.node, vmid)
    if job is not None and waits:
        job.log(" OK")
    return lock


def check_lock(vm: Vm, *, skip: bool = False) -> None:
    """Raise 500 if the configuration has a `lock` entry."""
    if vm.lock and not skip:
        raise locked(vm.lock)
