"""Release: the reverse of an adoption. The record is deleted; the VM stays, without the mark."""

from __future__ import annotations

from common.log import logger
from common.messages.commands import Mark
from common.messages.reports import Outcome
from common.states import OperationState, TaskState
from conductor.cloud import failure_of
from conductor.engine.stages import Table, Task
from conductor.flows.remove.finish_delete import let_go
from conductor.flows.server_flow import Reached, ShortFlow
from conductor.store import operations as ledger
from conductor.store.transactions import Transaction

LOG = logger(__name__)


class Unmanage(ShortFlow):
    """The flow of the action ``release``. A fault says if the mark could not be removed."""

    def table(self) -> Table[Task]:
        """Return the one stage: the mark is removed."""
        return self._one_stage("unmark", TaskState.RELEASING, self._send, self._heard)

    def _send(self, task: Task, reached: Reached) -> None:
        operation = task.operation
        self._cloud.compute.execute(
            operation.ctxt,
            reached.worker,
            Mark(
                operation.id,
                operation.attempt,
                task.server.uuid,
                reached.where,
                reached.deadline,
                on=False,
            ),
        )

    def _heard(self, task: Task, outcome: Outcome) -> None:
        """Finish, by the agent's outcome. Raises Unavailable to be repeated without placement."""
        if not outcome.gone:
            self._failed(task, failure_of(outcome))
            return
        server, number = task.server, task.operation.id
        self._cloud.placement.release(server.uuid)

        def work(connection: Transaction) -> None:
            let_go(connection, server, number)
            ledger.close(connection, number, OperationState.DONE)

        self._cloud.store.run(work)
        LOG.info("Server is released: VM %s stays on %s.", server.vmid, server.node)
