"""Stop, start and reboot."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from common.log import logger
from common.messages.commands import Power, PowerAction
from common.messages.reports import Outcome
from common.states import ACTIONS, OperationState
from conductor.cloud import failure_of
from conductor.flows.server_flow import ShortFlow
from conductor.store import operations as ledger
from conductor.store import transitions
from conductor.store.operations import Operation
from conductor.store.servers import Server

LOG = logger(__name__)

COMMANDS: Mapping[str, PowerAction] = {
    "stop": PowerAction.STOP,
    "start": PowerAction.START,
    "reboot": PowerAction.REBOOT_SOFT,
    "reboot-hard": PowerAction.REBOOT_HARD,
}


class PowerFlow(ShortFlow):
    """The flow of the actions that only change power."""

    def resume(self, operation: Operation, *, fresh: bool) -> None:
        """Send the command, again if need be, until it is too late."""
        reached = self._reach(operation)
        if reached is None:
            return
        self._cloud.compute.power(
            operation.ctxt,
            reached.worker,
            Power(
                operation.id,
                operation.attempt,
                reached.server_uuid,
                reached.where,
                reached.deadline,
                COMMANDS[operation.action],
            ),
        )

    def finished(self, operation: Operation, outcome: Outcome) -> None:
        """The agent's word on it."""
        server = self._mine(operation)
        if server is None:
            return
        if outcome.ok:
            self._done(operation, server, outcome)
        else:
            self._failed(operation, server, failure_of(outcome), outcome.power_state)

    def _done(self, operation: Operation, server: Server, outcome: Outcome) -> None:
        def work(connection: sa.Connection) -> None:
            transitions.move(
                connection,
                server,
                operation_id=operation.id,
                vm_state=ACTIONS[operation.action].done,
                task_state=None,
                power_state=outcome.power_state,
            )
            ledger.close(connection, operation.id, OperationState.DONE)

        self._cloud.store.run(work)
        LOG.info("Operation %d, %s, is done.", operation.id, operation.action)
