"""What commands about an existing VM begin and end with."""

from __future__ import annotations

from common.messages.reports import Category
from common.resources.states import PowerState
from compute.hypervisor.port import Detail, HypervisorError, Machine


def find(machine: Machine) -> Detail:
    """Find the VM. Raises HypervisorError if there is none."""
    detail = machine.find()
    if machine.absent:
        raise HypervisorError(Category.VANISHED, "The server has no VM.")
    return detail


def seen(machine: Machine) -> PowerState:
    """Return the power state seen now; NOSTATE where that isn't known."""
    try:
        return machine.power_state()
    except HypervisorError:
        return PowerState.NOSTATE
