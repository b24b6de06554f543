"""Give a cluster the SDN vnet of a network, or take it away again."""

from __future__ import annotations

from common.messages.commands import MakeVnet, RemoveVnet
from common.messages.reports import Category, Removed, VnetMade
from compute.commands.job import Job
from compute.commands.steps import Step, carry_out
from compute.hypervisor.port import Detail, Hypervisor, HypervisorError


def make(job: Job, hypervisor: Hypervisor, command: MakeVnet) -> VnetMade:
    """Make the vnet, until it is seen applied. The next attempt continues after a failure."""
    mtu: list[int] = []

    def have() -> Detail:
        made = hypervisor.make_vnet(job, command)
        mtu.append(made.mtu)
        return {"vnet": command.vnet, "zone": command.zone, "vni": command.vni, **vars(made)}

    failure = carry_out(job, (Step("compute_make_vnet", have),))
    return VnetMade(failure is None, failure, mtu[0] if mtu else None)


def remove(job: Job, hypervisor: Hypervisor, command: RemoveVnet) -> Removed:
    """Remove the vnet, until it is seen gone. An absent one counts as removed."""

    def have() -> Detail:
        removal = hypervisor.remove_vnet(job, command)
        if not removal.gone:
            raise HypervisorError(
                Category.UNKNOWN_OUTCOME, f"Vnet {command.vnet} is still there.", left=removal.left
            )
        return {"cleaned": list(removal.cleaned)}

    failure = carry_out(job, (Step("compute_remove_vnet", have),))
    return Removed(failure is None, failure, gone=failure is None)
