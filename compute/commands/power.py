"""Power: bring a VM to a power state and see it there."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from common.failures import Verdict
from common.messages.commands import Power, PowerAction
from common.messages.reports import Category, VmSeen
from common.resources.states import PowerState
from compute.commands.job import Job
from compute.commands.steps import Step, carry_out
from compute.commands.vm_steps import find, seen
from compute.hypervisor.port import Detail, HypervisorError, Machine


def power(job: Job, machine: Machine, command: Power, graceful_seconds: int) -> VmSeen:
    """Run the action; the outcome has the last power state seen."""
    name, act = _ACTIONS[command.action]

    def work() -> Detail:
        try:
            detail = act(machine, graceful_seconds)
            _require(machine, command.action)
        except HypervisorError as error:
            if not _is_settled(machine, command.action):
                raise
            return {"power_state": _WANTED[command.action].name, "after": error.message}
        return detail

    failure = carry_out(job, (Step("compute_find_vm", lambda: find(machine)), Step(name, work)))
    now = seen(machine)
    if failure is None and now == PowerState.NOSTATE:
        # The action has just seen the VM in that state.
        now = _WANTED.get(command.action, now)
    return VmSeen(failure is None, failure, now)


def _is_settled(machine: Machine, action: PowerAction) -> bool:
    """Return whether the VM has the wanted state in spite of an error, which may be a look's."""
    if action not in _SETTLED_BY_A_LOOK:
        return False
    try:
        find(machine)
        return machine.power_state() == _WANTED[action]
    except HypervisorError:
        return False


def _require(machine: Machine, action: PowerAction) -> None:
    """Check the power state: somebody may have locked or moved the VM since the action."""
    now, wanted = machine.power_state(), _WANTED.get(action)
    if wanted not in (None, now):
        raise HypervisorError(
            Category.UNKNOWN_OUTCOME,
            f"After its {action.value} the VM is {now.name}: it was locked or moved since.",
            verdict=Verdict.WAIT,
        )


_WANTED = {
    PowerAction.START: PowerState.RUNNING,
    PowerAction.STOP: PowerState.SHUTDOWN,
    PowerAction.PAUSE: PowerState.PAUSED,
    PowerAction.UNPAUSE: PowerState.RUNNING,
    PowerAction.SUSPEND: PowerState.SUSPENDED,
    PowerAction.RESUME: PowerState.RUNNING,
}

#: actions with nothing left to do once the VM has the power state
_SETTLED_BY_A_LOOK = frozenset(
    {PowerAction.START, PowerAction.STOP, PowerAction.PAUSE, PowerAction.UNPAUSE}
)

_ACTIONS: Mapping[PowerAction, tuple[str, Callable[[Machine, int], Detail]]] = {
    PowerAction.START: ("compute_start_vm", lambda machine, _: machine.start()),
    PowerAction.STOP: ("compute_stop_vm", lambda machine, seconds: machine.stop(seconds)),
    PowerAction.REBOOT_SOFT: ("compute_reboot_vm", lambda machine, sec: machine.reboot(sec)),
    PowerAction.REBOOT_HARD: ("compute_reboot_vm", lambda machine, _: machine.reboot(0)),
    PowerAction.PAUSE: ("compute_pause_instance", lambda machine, _: machine.pause()),
    PowerAction.UNPAUSE: ("compute_unpause_instance", lambda machine, _: machine.unpause()),
    PowerAction.SUSPEND: ("compute_suspend_instance", lambda machine, _: machine.suspend()),
    PowerAction.RESUME: ("compute_resume_instance", lambda machine, _: machine.resume()),
}
