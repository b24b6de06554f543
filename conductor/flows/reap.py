"""A reap: what the audit found, and proved to be a server's that has no VM there, is destroyed.

It is an operation of its own, with its journal entry and its faults, and moves no server. The
agent holds it against its ownership fence once more. It is tried once; the audit, which sees what
is left, begins the next one.
"""

from __future__ import annotations

import sqlalchemy as sa

from common import clock
from common.log import logger
from common.messages.reports import Category, Failure, Outcome
from common.states import OperationState
from conductor.cloud import Cloud, placed
from conductor.plans import ReapPlan
from conductor.store import operations as ledger
from conductor.store import servers, vmids
from conductor.store.operations import Operation

LOG = logger(__name__)


class Reap:
    """The flow of ``InternalAction.REAP``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def resume(self, operation: Operation, *, fresh: bool) -> None:
        """Send the command, unless the record gave the place to the server meanwhile."""
        where = placed(operation)
        if operation.state in {OperationState.DONE, OperationState.FAILED} or where is None:
            return
        if operation.deadline is None or operation.deadline < clock.utcnow():
            self._fail(operation, Failure(Category.TASK_TIMEOUT, "It did not end in time."))
            return
        with self._cloud.store.read() as connection:
            server = servers.get(connection, operation.server_uuid)
        alive = server.deleted_at is None
        if alive and (server.cluster, server.vmid) == (where.cluster, where.vmid):
            text = "The record says that the VM is the server's."
            self._fail(operation, Failure(Category.CONFIGURATION, text, host=where.host))
            return
        plan = operation.planned(ReapPlan)
        self._cloud.destroy(
            operation,
            where,
            operation.deadline,
            drive_only=plan.drive_only,
            stopped_on=plan.stopped_on,
        )

    def finished(self, operation: Operation, outcome: Outcome) -> None:
        """Seen gone, or not."""
        if outcome.gone:
            self._done(operation)
            return
        unknown = Failure(Category.UNKNOWN_OUTCOME, "Not everything was seen gone.")
        self._fail(operation, outcome.failure or unknown)

    def overtaken(self, operation: Operation) -> None:
        """Never: it takes no server."""

    def _done(self, operation: Operation) -> None:
        def work(connection: sa.Connection) -> None:
            vmids.release_held(connection, operation.id)
            ledger.close(connection, operation.id, OperationState.DONE)

        self._cloud.store.run(work)
        LOG.info("Operation %d: what was left of the server is gone.", operation.id)

    def _fail(self, operation: Operation, failure: Failure) -> None:
        def work(connection: sa.Connection) -> None:
            target = operation.plan.target
            if vmids.holds(connection, operation.id):
                vmids.quarantine(
                    connection, str(target.cluster), int(target.vmid or 0), failure.message
                )
            ledger.record_failure(connection, operation, failure)
            ledger.close(connection, operation.id, OperationState.FAILED, failure.message)

        self._cloud.store.run(work)
        LOG.warning("Reap failed (%s): %s", failure.category, failure.message)
