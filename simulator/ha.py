"""High availability when a node is lost: its VMs are recovered on other nodes.

Of the manager only this, and starts and stops on request, are simulated: `node-down` with `ha`
treats all VMs of the node as managed. The configuration moves even where a disk can't follow;
then the start fails, as it does on a real cluster.
"""

from __future__ import annotations

from simulator.access import Identity
from simulator.cluster import Cluster
from simulator.engine import Sleep, Work
from simulator.errors import PveError
from simulator.model import Node, Vm
from simulator.qemu.drives import drives_of
from simulator.qemu.power import START_SECONDS, mark_running
from simulator.tasks import Job

#: the watchdog fences after a minute, and the manager waits for the node's lock
RECOVERY_SECONDS = 120.0


def recover(cluster: Cluster, lost: Node) -> Work:
    """Wait until the node is fenced, then start its VMs on the others."""
    yield Sleep(RECOVERY_SECONDS)
    if lost.up or not cluster.quorate:
        return
    for vm in sorted(cluster.vms.values(), key=lambda one: one.vmid):
        # A VM that was never finished is no HA resource.
        if vm.node == lost.name and not vm.template and vm.lock not in ("create", "clone"):
            target = _emptiest(cluster)
            cluster.edit(vm).node = target.name
            _start(cluster, target, vm)


def _emptiest(cluster: Cluster) -> Node:
    def load(node: Node) -> tuple[int, str]:
        return sum(vm.node == node.name for vm in cluster.vms.values()), node.name

    return min((node for node in cluster.nodes.values() if node.up), key=load)


def _start(cluster: Cluster, node: Node, vm: Vm) -> None:
    def body(job: Job) -> Work:
        for drive in drives_of(vm.config):
            if drive.storage and cluster.volume(drive.file, node.name) is None:
                raise PveError(f"volume '{drive.file}' does not exist")
        yield Sleep(START_SECONDS)
        mark_running(cluster, vm)

    cluster.tasks.start(node, "qmstart", str(vm.vmid), Identity("root@pam"), body)
