"""Stop, start, reboot, pause, unpause, suspend and resume; soft delete and restore."""

from __future__ import annotations

from collections.abc import Mapping

from common.log import logger
from common.messages.commands import Power, PowerAction
from common.messages.reports import Outcome
from common.states import ACTIONS, PowerState, VmState
from conductor.cloud import failure_of
from conductor.engine import ends
from conductor.engine.stages import Table, Task
from conductor.flows.server_flow import Reached, ShortFlow

LOG = logger(__name__)

COMMANDS: Mapping[str, PowerAction] = {
    "stop": PowerAction.STOP,
    "start": PowerAction.START,
    "reboot": PowerAction.REBOOT_SOFT,
    "reboot-hard": PowerAction.REBOOT_HARD,
    "pause": PowerAction.PAUSE,
    "unpause": PowerAction.UNPAUSE,
    "suspend": PowerAction.SUSPEND,
    "resume": PowerAction.RESUME,
    "soft-delete": PowerAction.STOP,
    "restore": PowerAction.START,
}


class PowerFlow(ShortFlow):
    """The flow of an action that only changes power."""

    def table(self, action: str) -> Table[Task]:
        """Return the action's one stage."""
        (shown,) = ACTIONS[action].walk
        return self._one_stage("power", shown, self._send, self._heard)

    def _reach(self, task: Task) -> Reached | None:
        """Return where to send the command; a soft delete of saved memory needs none."""
        if task.operation.action == "soft-delete" and _is_saved(task):
            ends.done(self._cloud, task, VmState.SOFT_DELETED)
            return None
        return super()._reach(task)

    def _send(self, task: Task, reached: Reached) -> None:
        operation = task.operation
        self._cloud.compute.execute(
            operation.ctxt,
            reached.worker,
            Power(
                operation.id,
                operation.attempt,
                task.server.uuid,
                reached.where,
                reached.deadline,
                _command(task),
                operation.started_at,
            ),
        )

    def _heard(self, task: Task, outcome: Outcome) -> None:
        if not outcome.ok:
            self._failed(task, failure_of(outcome), outcome.power_state)
            return
        operation = task.operation
        after = ACTIONS[operation.action].done or VmState(task.server.vm_state)
        ends.done(self._cloud, task, after, power_state=outcome.power_state)
        LOG.info("Operation %d, %s, is done.", operation.id, operation.action)


def _is_saved(task: Task) -> bool:
    return task.server.power_state == PowerState.SUSPENDED


def _command(task: Task) -> PowerAction:
    """Return what the agent does; a VM whose memory was saved is restored with that."""
    action = task.operation.action
    return PowerAction.RESUME if action == "restore" and _is_saved(task) else COMMANDS[action]
