"""Delete: destroy the VM, see it gone, then release everything.

It may begin in any state and takes the server over from any operation. A delete that can't be
finished in time is shown as ERROR with its fault, and continues in the background.
"""

from __future__ import annotations

import functools

from common import clock
from common.errors import Unavailable
from common.failures import Verdict, verdict_of
from common.log import logger
from common.messages.commands import Destroy, Placed
from common.messages.reports import Category, Failure, Outcome
from common.states import OperationState, TaskState, VmState
from conductor.cloud import Cloud, failure_of
from conductor.engine import ends
from conductor.engine.stages import Stage, Table, Task
from conductor.flows.finish_delete import farewell
from conductor.store import operations as ledger
from conductor.store import server_groups, transitions, vmids
from conductor.store.transactions import Transaction

LOG = logger(__name__)


class Delete:
    """The flow of the action ``delete``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[Task]:
        """Return the one stage, past the point of no return: tried until the VM is seen gone."""
        stage = Stage("destroy", self._destroy, self._heard, shown=TaskState.DELETING, final=True)
        return Table((stage,), lost=functools.partial(ends.overtaken, self._cloud))

    def _destroy(self, task: Task) -> None:
        """Send the command, or finish at once if no agent ever got a VM to build."""
        operation, server = task.operation, task.server
        if server.host is None or server.vmid is None:
            self._finish(task)
            return
        worker = self._cloud.take_to(operation, server.host)
        if worker is None:
            text = f"The agent of host {server.host} does not answer."
            self._failed(task, Failure(Category.NODE_UNHEALTHY, text))
            return
        timeout = self._cloud.conf.conductor.action_timeout_seconds
        where = Placed(server.host, server.cluster or "", server.node or "", server.vmid)
        self._cloud.compute.destroy(
            operation.ctxt,
            worker,
            Destroy(operation.id, operation.attempt, server.uuid, where, clock.after(timeout)),
        )

    def _heard(self, task: Task, outcome: Outcome) -> None:
        """Finish, as the agent has seen it gone, or try again."""
        if outcome.gone:
            self._finish(task)
            return
        failure = failure_of(outcome)
        if verdict_of(failure) == Verdict.FATAL:
            self._refused(task, failure)
        else:
            self._failed(task, failure)

    def _finish(self, task: Task) -> None:
        operation, server = task.operation, task.server
        try:
            self._cloud.placement.release(server.uuid)
        except Unavailable as error:
            if not task.late:
                raise
            text = f"The VM is gone; its allocation is not: {error.message}"
            self._failed(task, Failure(Category.UNKNOWN_OUTCOME, text))
            return

        def work(connection: Transaction) -> None:
            server_groups.give_back(connection, server)
            if server.vmid is not None and server.cluster is not None:
                vmids.free(connection, server.cluster, server.vmid)
            farewell(connection, server, operation.id)
            ledger.close(connection, operation.id, OperationState.DONE)

        self._cloud.store.run(work)
        LOG.info("Server is deleted: seen gone, everything released.")

    def _refused(self, task: Task, failure: Failure) -> None:
        """End a delete that no retry would help: the server gets its state back."""
        was = VmState(task.server.vm_state)
        # The build that it took over from is over.
        ends.failed(self._cloud, task, failure, VmState.ERROR if was == VmState.BUILDING else was)
        LOG.warning("Delete is refused (%s): %s", failure.category, failure.message)

    def _failed(self, task: Task, failure: Failure) -> None:
        """Try again later; after the time limit, show ERROR."""
        operation, server = task.operation, task.server

        def work(connection: Transaction) -> None:
            if not (task.late and server.task_state == TaskState.DELETING):
                return
            transitions.move(
                connection,
                server,
                operation_id=operation.id,
                vm_state=VmState.ERROR,
                task_state=None,
            )
            ledger.save(
                connection,
                operation.id,
                state=OperationState.UNWINDING,
                message=failure.message,
            )

        ends.again(self._cloud, operation, failure, work)
        LOG.warning(
            "Delete failed (%s), and is tried again: %s", failure.category, failure.message
        )
