"""A delete: destroy the VM, see it gone, then give everything back.

It may begin in any state and takes the server over from whatever was being done. A delete that
can't be finished in time shows as ERROR with its fault, and goes on in the background.
"""

from __future__ import annotations

import sqlalchemy as sa

from common import clock
from common.errors import Unavailable
from common.failures import Verdict, verdict_of
from common.log import logger
from common.messages.commands import Destroy, Placed
from common.messages.reports import Category, Failure, Outcome
from common.states import OperationState, TaskState, VmState
from conductor.cloud import failure_of
from conductor.flows.finish_delete import farewell
from conductor.flows.server_flow import ServerFlow
from conductor.store import operations as ledger
from conductor.store import server_groups, transitions, vmids
from conductor.store.operations import Operation
from conductor.store.servers import Server

LOG = logger(__name__)


class Delete(ServerFlow):
    """The flow of the action ``delete``."""

    def resume(self, operation: Operation, *, fresh: bool) -> None:
        """Send the command, or finish at once where no VM was ever asked for."""
        server = self._mine(operation)
        if server is None:
            return
        if server.host is None or server.vmid is None:
            self._finish(operation, server)
            return
        worker = self._cloud.take_to(operation, server.host)
        if worker is None:
            text = f"The agent of host {server.host} does not answer."
            self._failed(operation, server, Failure(Category.NODE_UNHEALTHY, text))
            return
        timeout = self._cloud.conf.conductor.action_timeout_seconds
        where = Placed(server.host, server.cluster or "", server.node or "", server.vmid)
        self._cloud.compute.destroy(
            operation.ctxt,
            worker,
            Destroy(operation.id, operation.attempt, server.uuid, where, clock.after(timeout)),
        )

    def finished(self, operation: Operation, outcome: Outcome) -> None:
        """The agent has seen it gone, or could not."""
        server = self._mine(operation)
        if server is None:
            return
        if outcome.gone:
            self._finish(operation, server)
            return
        failure = failure_of(outcome)
        if verdict_of(failure) == Verdict.FATAL:
            self._refused(operation, server, failure)
        else:
            self._failed(operation, server, failure)

    def _finish(self, operation: Operation, server: Server) -> None:
        try:
            self._cloud.placement.release(server.uuid)
        except Unavailable as error:
            if not _late(operation):
                raise
            text = f"The VM is gone; its allocation is not: {error.message}"
            self._failed(operation, server, Failure(Category.UNKNOWN_OUTCOME, text))
            return

        def work(connection: sa.Connection) -> None:
            server_groups.give_back(connection, server)
            if server.vmid is not None and server.cluster is not None:
                vmids.free(connection, server.cluster, server.vmid)
            farewell(connection, server, operation.id)
            ledger.close(connection, operation.id, OperationState.DONE)

        self._cloud.store.run(work)
        LOG.info("Server is deleted: seen gone, everything given back.")

    def _refused(self, operation: Operation, server: Server, failure: Failure) -> None:
        """No other try would do better: the server is what it was, and may be deleted again."""
        was = VmState(server.vm_state)

        def work(connection: sa.Connection) -> None:
            transitions.move(
                connection,
                server,
                operation_id=operation.id,
                # A build that it took over from is over.
                vm_state=VmState.ERROR if was == VmState.BUILDING else was,
                task_state=None,
            )
            ledger.record_failure(connection, operation, failure)
            ledger.close(connection, operation.id, OperationState.FAILED, failure.message)

        self._cloud.store.run(work)
        LOG.warning("Delete is refused (%s): %s", failure.category, failure.message)

    def _failed(self, operation: Operation, server: Server, failure: Failure) -> None:
        """Try again later; once it takes too long, say so."""

        def work(connection: sa.Connection) -> None:
            if not (_late(operation) and server.task_state == TaskState.DELETING):
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

        self._again(operation, failure, work)
        LOG.warning(
            "Delete failed (%s), and is tried again: %s", failure.category, failure.message
        )


def _late(operation: Operation) -> bool:
    return operation.deadline is not None and operation.deadline < clock.utcnow()
