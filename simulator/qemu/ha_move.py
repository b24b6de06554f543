"""Migration of a VM under HA: a request that the manager carries out later.

The call only records the request; it is carried out some seconds later, whatever was answered.
"""

from __future__ import annotations

from collections.abc import Callable

from simulator.engine import Process, Sleep, Work
from simulator.qemu import ha_power, power
from simulator.request.call import Call
from simulator.state.access import Identity
from simulator.state.cluster import Cluster
from simulator.state.tasks import Job

#: starts the worker that migrates the VM of a call to a node; returns its UPID
Launch = Callable[[Call, str], str]


def ask(call: Call, target: str, launch: Launch) -> str:
    """`POST …/migrate` of a VM under HA: a task that only sends the request."""

    def body(job: Job) -> Work:
        job.log(f"Requesting HA migration for VM {call.vmid} to node {target}")
        request(call.cluster, call.vmid, target, launch, online=call.flag("online"))
        yield Sleep(0.1)

    return call.start("hamigrate", call.vmid, body)


def request(cluster: Cluster, vmid: int, target: str, launch: Launch, *, online: bool) -> None:
    """Have a VM migrated when the manager next looks."""
    process = Process(_move(cluster, vmid, target, launch, online), cluster.turn)
    cluster.background.add(process)
    process.on_end = cluster.background.discard
    cluster.engine.spawn(process)


def _move(cluster: Cluster, vmid: int, target: str, launch: Launch, online: bool) -> Work:
    yield Sleep(ha_power.MANAGER_SECONDS)
    vm, found = cluster.vms.get(vmid), ha_power.resource(cluster, vmid)
    node = cluster.nodes.get(target)
    if vm is None or found is None or node is None or not node.up or vm.node == target:
        return
    again = vm.running and not online
    if again:
        yield Sleep(power.GUEST_SHUTDOWN_SECONDS)
        power.mark_stopped(cluster, vm)
    task = cluster.tasks.tasks[launch(_call(cluster, vmid, vm.node, target), target)]
    while task.running:
        yield Sleep(1.0)
    if task.exitstatus != "OK":
        found.options["state"] = "error"
        cluster.save("ha-resource", found.sid, found)
    elif again and cluster.vms.get(vmid) is vm and not vm.running:
        power.launch(_call(cluster, vmid, vm.node, target), vmid)


def _call(cluster: Cluster, vmid: int, node: str, target: str) -> Call:
    """Return the manager's call: as root, live if the VM runs, with the disks of its node."""
    params = {"node": node, "vmid": str(vmid), "target": target, "online": "1"}
    params["with-local-disks"] = "1"
    path = f"/nodes/{node}/qemu/{vmid}/migrate"
    return Call(cluster, Identity("root@pam"), "POST", path, params, node)
