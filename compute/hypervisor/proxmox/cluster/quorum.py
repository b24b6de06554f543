"""Whether a cluster can write: without quorum a destroy removes the disks first and then fails."""

from __future__ import annotations

from common.failures import Verdict
from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.cluster.vmid import Vm
from compute.hypervisor.proxmox.observe.snapshot import quorate


def require(vm: Vm) -> None:
    """Check quorum now. Raises HypervisorError (wait) when cluster or node can't write."""
    status = vm.shared.client.get("cluster/status")
    name = vm.shared.settings.name
    if not quorate(status):
        raise HypervisorError(
            Category.NODE_UNHEALTHY,
            f"Cluster {name} has no quorum. {vm} was not touched.",
            verdict=Verdict.WAIT,
        )
    apart = any(
        one.get("type") == "node" and one.get("name") == vm.node and not one.get("online", 1)
        for one in status
    )
    if apart:
        raise HypervisorError(
            Category.NODE_UNHEALTHY,
            f"Node {vm.node} is apart from the quorum of cluster {name}. {vm} was not touched.",
            verdict=Verdict.WAIT,
        )
