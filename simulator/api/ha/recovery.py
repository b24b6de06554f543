"""High availability when a node is lost: its guests are recovered on other nodes.

The manager's resources in the states `started` and `stopped` are; `node-down` with `ha` has all
VMs of the node recovered, as if they were managed. As in pve-ha-manager: a node is given up after
a minute (`fence`), then its watchdog must have reset it (`recovery`), and where no node is left,
or a strict rule names no other, the manager looks again and again. The configuration moves even
where a disk can't follow; then the start fails, and the resource is in `error`.
"""

from __future__ import annotations

from simulator.engine import Sleep, Work
from simulator.errors import PveError
from simulator.qemu import ha_power
from simulator.qemu.drives import drives_of
from simulator.qemu.power import START_SECONDS, mark_running
from simulator.state import ha_config
from simulator.state.access import Identity
from simulator.state.cluster import Cluster
from simulator.state.ha_config import HaResource
from simulator.state.model import Node, Vm
from simulator.state.tasks import Job

#: a node that is silent this long is given up
DELAY_SECONDS = 60.0
#: the watchdog resets it, and the manager waits for the node's lock
FENCE_SECONDS = 60.0
#: between two looks for a node
LOOK_SECONDS = 10.0

_RECOVERED = ("started", "stopped")


def recover(cluster: Cluster, lost: Node, *, all_vms: bool) -> Work:
    """Wait until the node is fenced, then start its VMs on the others."""
    for state, seconds in (("fence", DELAY_SECONDS), ("recovery", FENCE_SECONDS)):
        yield Sleep(seconds)
        if lost.up or not cluster.quorate:
            _forget(cluster, lost)
            return
        for vm in _vms_of(cluster, lost, all_vms=all_vms):
            cluster.ha.lost[f"vm:{vm.vmid}"] = state
    while not lost.up:
        waiting = _vms_of(cluster, lost, all_vms=all_vms)
        for vm in waiting:
            target = _target(cluster, vm)
            if target is not None:
                _recover(cluster, vm, target)
        if not waiting:
            return
        yield Sleep(LOOK_SECONDS)
    _forget(cluster, lost)


def _vms_of(cluster: Cluster, node: Node, *, all_vms: bool) -> list[Vm]:
    """Return the VMs of a node that the manager recovers."""
    found = []
    for vm in sorted(cluster.vms.values(), key=lambda one: one.vmid):
        # A VM that was never finished is no HA resource.
        if vm.node != node.name or vm.template or vm.lock in ("create", "clone"):
            continue
        managed = ha_power.resource(cluster, vm.vmid)
        wanted = "" if managed is None else managed.options.get("state", "started")
        if wanted in _RECOVERED or (managed is None and all_vms):
            found.append(vm)
    return found


def _forget(cluster: Cluster, node: Node) -> None:
    for vm in cluster.vms.values():
        if vm.node == node.name:
            cluster.ha.lost.pop(f"vm:{vm.vmid}", None)


def _target(cluster: Cluster, vm: Vm) -> Node | None:
    """Return the emptiest node that its rules leave, or None."""

    def load(node: Node) -> tuple[int, str]:
        return sum(one.node == node.name for one in cluster.vms.values()), node.name

    names = ha_config.strict_nodes(cluster.ha.rules.values(), f"vm:{vm.vmid}")
    left = [
        node
        for node in cluster.nodes.values()
        if node.up and (names is None or node.name in names)
    ]
    return min(left, key=load, default=None)


def _recover(cluster: Cluster, vm: Vm, target: Node) -> None:
    cluster.edit(vm).node = target.name
    cluster.ha.lost.pop(f"vm:{vm.vmid}", None)
    managed = ha_power.resource(cluster, vm.vmid)
    if managed is None or managed.options.get("state", "started") == "started":
        _start(cluster, target, vm, managed)


def _start(cluster: Cluster, node: Node, vm: Vm, managed: HaResource | None) -> None:
    def body(job: Job) -> Work:
        try:
            for drive in drives_of(vm.config):
                if drive.storage and cluster.volume(drive.file, node.name) is None:
                    raise PveError(f"volume '{drive.file}' does not exist")
        except PveError:
            if managed is not None:
                managed.options["state"] = "error"
                cluster.save("ha-resource", managed.sid, managed)
            raise
        yield Sleep(START_SECONDS)
        mark_running(cluster, vm)

    cluster.tasks.start(node, "qmstart", str(vm.vmid), Identity("root@pam"), body)
