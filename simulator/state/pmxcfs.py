"""What an administrator does in ``/etc/pve`` and by ``pvecm``, when a node is lost for good."""

from __future__ import annotations

from simulator.state import ha_resources
from simulator.state.cluster import Cluster
from simulator.state.faults import BadOrder


def move(cluster: Cluster, node: str, to: str, vmid: int | None) -> list[int]:
    """Move configurations of VMs to another node's folder, as ``mv`` does; None: all of them.

    Nothing else is moved: disks on the node's own storages remain there.
    """
    cluster.check_quorum()
    moved = [vm for vm in cluster.vms.values() if vm.node == node and vmid in (None, vm.vmid)]
    if not moved or to not in cluster.nodes:
        raise BadOrder(f"No such file or directory: VM {vmid or '*'} of {node}, or node {to}")
    for vm in moved:
        cluster.edit(vm).node = to
    return [vm.vmid for vm in moved]


def remove(cluster: Cluster, node: str, vmid: int) -> None:
    """Remove the configuration of a VM that doesn't run; its disks remain."""
    vm = cluster.vm(node, vmid)
    if vm.running:
        raise BadOrder(f"VM {vmid} runs")
    ha_resources.forget(cluster, f"vm:{vmid}", purge=True)
    cluster.remove_vm(vm)


def leave(cluster: Cluster, node: str) -> None:
    """Take a node that is off out of the cluster (``pvecm delnode``), which loses its vote.

    Its folder in ``/etc/pve/nodes`` remains, with the configurations of its VMs.
    """
    cluster.check_quorum()
    if cluster.node(node).up:
        raise BadOrder(f"{node} is online: power it off before")
    cluster.nodes[node].left = True
    cluster.save("node", node, cluster.nodes[node])


def remove_folder(cluster: Cluster, node: str) -> None:
    """Remove a node's folder with the configurations of its VMs, and whatever it alone has."""
    cluster.check_quorum()
    if not cluster.node(node).left:
        raise BadOrder(f"{node} is a member of the cluster")
    for vm in [one for one in cluster.vms.values() if one.node == node]:
        ha_resources.forget(cluster, f"vm:{vm.vmid}", purge=True)
        cluster.remove_vm(vm)
    for volume in [one for one in cluster.volumes.all() if one.node == node]:
        cluster.remove_volume(volume)
    del cluster.nodes[node]
    cluster.drop("node", node)
