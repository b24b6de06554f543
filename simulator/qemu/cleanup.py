"""A node's clean-up after a VM's QEMU has ended, under the configuration's lock.

A VM that is still off is cleaned up at once. If it was started again in between, the clean-up
holds the lock until the VM ends, or gives up; calls that need the lock in that time fail.
A soft reboot has no such window: there the clean-up itself starts the VM again.
"""

from __future__ import annotations

from simulator.engine import Acquire, Process, Release, Sleep, Work
from simulator.state.cluster import Cluster
from simulator.state.model import Vm

#: captured: the lock is still free for the first two to four seconds after the end
BEGINS_AFTER_SECONDS = 3.0
#: how long it waits for a VM that runs again, looking once a second
WAITS_SECONDS = 30
LOCK_WAIT_SECONDS = 10.0


def begin(cluster: Cluster, vm: Vm) -> None:
    """Start the clean-up of a VM whose process has just ended. Needs the cluster's mutex."""
    process = Process(_clean_up(cluster, vm.node, vm.vmid), cluster.turn)
    cluster.background.add(process)
    process.on_end = cluster.background.discard
    cluster.engine.spawn(process)


def forget(cluster: Cluster) -> None:
    """End all processes without a task and release their locks. Needs the mutex."""
    for process in list(cluster.background):
        cluster.engine.let_go(process)


def _clean_up(cluster: Cluster, node: str, vmid: int) -> Work:
    yield Sleep(BEGINS_AFTER_SECONDS)
    lock = cluster.vm_lock(node, vmid)
    # It takes the lock in any case: a start in progress holds it first, and then the VM runs.
    if vmid not in cluster.vms or not (yield Acquire(lock, LOCK_WAIT_SECONDS)):
        return
    for _second in range(WAITS_SECONDS):
        if not _runs(cluster, node, vmid):
            break
        yield Sleep(1.0)
    yield Release(lock)


def _runs(cluster: Cluster, node: str, vmid: int) -> bool:
    vm = cluster.vms.get(vmid)
    return vm is not None and vm.node == node and vm.running
