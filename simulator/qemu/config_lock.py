"""Taking the lock of a VM's configuration in a task, and what the configuration says of locks."""

from __future__ import annotations

from simulator.call import Call
from simulator.engine import Work
from simulator.errors import locked
from simulator.model import Vm
from simulator.tasks import Job


def take(call: Call, job: Job | None, vmid: int = 0) -> Work:
    """Take a VM's lock (default: of the VM in the call); a wait is logged."""
    vmid = vmid or call.vmid
    waits = not call.cluster.vm_lock(call.node, vmid).free_for(False)
    if job is not None and waits:
        job.log("trying to acquire lock...")
    lock = yield from call.cluster.lock_vm(call.node, vmid)
    if job is not None and waits:
        job.log(" OK")
    return lock


def check_lock(vm: Vm, *, skip: bool = False) -> None:
    """500 when the configuration is locked."""
    if vm.lock and not skip:
        raise locked(vm.lock)
