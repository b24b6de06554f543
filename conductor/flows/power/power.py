"""Stop, start, reboot, pause, unpause, suspend and resume; soft delete and restore."""

from __future__ import annotations

from collections.abc import Mapping

from common.log import logger
from common.messages.commands import Power, PowerAction
from common.messages.reports import Outcome
from common.states import ACTIONS, VmState
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

    def _send(self, task: Task, reached: Reached) -> None:
        operation = task.operation
        self._cloud.compute.power(
            operation.ctxt,
            reached.worker,
            Power(
                operation.id,
                operation.attempt,
                task.server.uuid,
                reached.where,
                reached.deadline,
                COMMANDS[operation.action],
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
