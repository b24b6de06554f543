"""Power: bring a VM to a power state and see it there."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from common.messages.commands import Power, PowerAction
from common.messages.reports import Category, Outcome
from common.states import PowerState, VmState
from compute.hypervisor.port import Detail, HypervisorError, Machine
from compute.job import Job
from compute.steps import Step, carry_out

_SHOWN = {PowerState.RUNNING: VmState.ACTIVE.value, PowerState.SHUTDOWN: VmState.STOPPED.value}


def power(job: Job, machine: Machine, command: Power, graceful_seconds: int) -> Outcome:
    """Run the action; the outcome names the power state that was seen in the end."""
    name, act = _ACTIONS[command.action]
    failure = carry_out(
        job,
        (
            Step("compute_find_vm", lambda: _find(machine)),
            Step(name, lambda: act(machine, graceful_seconds)),
        ),
    )
    try:
        seen = machine.power_state()
    except HypervisorError:
        seen = PowerState.NOSTATE
    return Outcome(failure is None, seen, _SHOWN.get(seen), failure)


def _find(machine: Machine) -> Detail:
    detail = machine.find()
    if machine.absent:
        raise HypervisorError(Category.CONFIGURATION, "The server has no VM.")
    return detail


_ACTIONS: Mapping[PowerAction, tuple[str, Callable[[Machine, int], Detail]]] = {
    PowerAction.START: ("compute_start_vm", lambda machine, _: machine.start()),
    PowerAction.STOP: ("compute_stop_vm", lambda machine, seconds: machine.stop(seconds)),
    PowerAction.REBOOT_SOFT: ("compute_reboot_vm", lambda machine, sec: machine.reboot(sec)),
    PowerAction.REBOOT_HARD: ("compute_reboot_vm", lambda machine, _: machine.reboot(0)),
}
