"""Reap: destroy what the audit proved to be a server's that has no VM there.

It is an operation of its own, with its journal entry and its faults, and changes no server's
state. The agent checks its ownership fence once more. It is tried once; the audit, which sees what
is left, begins the next one.
"""

from __future__ import annotations

from common import clock
from common.log import logger
from common.messages.reports import Category, Failure, Outcome
from common.states import OperationState
from conductor.cloud import Cloud, placed
from conductor.engine import ends
from conductor.engine.stages import Stage, Table, Task
from conductor.plans import ReapPlan
from conductor.store import operations as ledger
from conductor.store import vmids
from conductor.store.transactions import Transaction

LOG = logger(__name__)


class Reap:
    """The flow of ``InternalAction.REAP``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[Task]:
        """Return the one stage: what is left is destroyed."""
        return Table((Stage("destroy", self._destroy, self._heard),), None, self._late, owns=False)

    def _late(self, task: Task) -> None:
        self._fail(task, Failure(Category.TASK_TIMEOUT, "It did not end in time."))

    def _destroy(self, task: Task) -> None:
        """Send the command, unless the record gave the place to the server meanwhile."""
        operation, server, where = task.operation, task.server, placed(task.operation)
        if where is None:
            return
        plan = operation.planned(ReapPlan)
        alive = server.deleted_at is None
        its_vm = alive and (server.cluster, server.vmid) == (where.cluster, where.vmid)
        away = its_vm and server.node != where.node
        if its_vm if plan.left_behind is None else not away:
            text = "The record says that the VM is the server's."
            if plan.left_behind is not None:
                text = f"The record says no more that the VM is on another node than {where.node}."
            self._fail(task, Failure(Category.CONFIGURATION, text, host=where.host))
            return
        self._cloud.destroy(
            operation,
            where,
            operation.deadline or clock.utcnow(),
            drive_only=plan.drive_only,
            stopped_on=plan.stopped_on,
            left_behind=plan.left_behind,
        )

    def _heard(self, task: Task, outcome: Outcome) -> None:
        """Store that it was seen gone, or why not."""
        if not outcome.gone:
            unknown = Failure(Category.UNKNOWN_OUTCOME, "Not everything was seen gone.")
            self._fail(task, outcome.failure or unknown)
            return
        number = task.operation.id

        def work(connection: Transaction) -> None:
            vmids.release_held(connection, number)
            ledger.close(connection, number, OperationState.DONE)

        self._cloud.store.run(work)
        LOG.info("Operation %d: what was left of the server is gone.", number)

    def _fail(self, task: Task, failure: Failure) -> None:
        operation, target = task.operation, task.operation.plan.target

        def work(connection: Transaction) -> None:
            if vmids.holds(connection, operation.id):
                vmids.quarantine(
                    connection, str(target.cluster), int(target.vmid or 0), failure.message
                )
            ends.close_failed(connection, operation, failure)

        self._cloud.store.run(work)
        LOG.warning("Reap failed (%s): %s", failure.category, failure.message)
