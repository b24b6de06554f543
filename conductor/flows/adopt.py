"""An adoption: an existing VM becomes a server. Nothing is restarted, only the mark is set.

What can be refused is refused before anything is written. Then: record, VMID, ports and quota in
one transaction, the claim, the mark; where one of these can't be had, the record goes again, the
mark is off, and the ledger tells why.
"""

from __future__ import annotations

import functools

from common import clock
from common.log import logger
from common.messages.commands import Mark
from common.messages.reports import Category, Failure, Outcome
from common.states import OperationState, PowerState, TaskState, VmState
from conductor.cloud import Cloud, backoff, failure_of, placed
from conductor.engine import ends
from conductor.engine.stages import Stage, Table, Task
from conductor.flows.finish_delete import let_go
from conductor.plans import AdoptParams
from conductor.store import operations as ledger
from conductor.store.transactions import Transaction
from conductor.sync import allocations

LOG = logger(__name__)


class Adopt:
    """The flow of the action ``adopt``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[Task]:
        """Claim, then have the mark set; unwinding, see the mark gone."""
        shown = TaskState.ADOPTING
        unmark = Stage("unmark", self._unmark, self._taken_back)
        return Table(
            (
                Stage("claim", self._claim, shown=shown),
                Stage("mark", self._mark, self._heard, shown=shown, undo=unmark),
            ),
            lost=functools.partial(ends.overtaken, self._cloud),
            late=self._late,
        )

    def _claim(self, task: Task) -> Task | None:
        """Claim what the host has room for by what is promised. Raises Unavailable."""
        server = task.server
        amounts = allocations.wanted(server)
        provider = str(task.operation.plan.target.uuid)
        placement = self._cloud.placement
        if placement.claim(server.uuid, provider, amounts, server.project_id, server.user_id):
            return task
        asked = ", ".join(f"{amount} {name}" for name, amount in amounts.items())
        text = f"Host {server.host} has no room for {asked} by what it has promised already."
        self._gone(task, Failure(Category.NO_VALID_HOST, text, host=server.host))
        return None

    def _mark(self, task: Task) -> None:
        self._send(task, on=True)

    def _unmark(self, task: Task) -> None:
        self._send(task, on=False)

    def _send(self, task: Task, *, on: bool) -> None:
        operation, server = task.operation, task.server
        where, deadline = placed(operation), operation.deadline
        worker = self._cloud.take_to(operation, str(server.host))
        if worker is None or where is None or deadline is None:
            self._cloud.wait(operation, backoff(operation.attempt))
            return
        seconds = self._cloud.conf.conductor.action_timeout_seconds
        command = Mark(
            operation.id,
            operation.attempt,
            server.uuid,
            where,
            deadline if on else clock.after(seconds),
            on=on,
            smbios_uuid=operation.asked(AdoptParams).smbios_uuid,
        )
        self._cloud.compute.mark(operation.ctxt, worker, command)

    def _heard(self, task: Task, outcome: Outcome) -> None:
        """The agent's word on the mark."""
        if not outcome.ok:
            self._unwind(task, failure_of(outcome))
            return
        running = outcome.power_state == PowerState.RUNNING
        ends.done(
            self._cloud,
            task,
            VmState.ACTIVE if running else VmState.STOPPED,
            power_state=outcome.power_state,
            launched_at=clock.utcnow(),
        )
        LOG.info("VM %s is server %s now.", task.server.vmid, task.server.uuid)

    # --- it did not come to pass

    def _late(self, task: Task) -> None:
        self._unwind(task, Failure(Category.TASK_TIMEOUT, "It did not end in time."))

    def _unwind(self, task: Task, failure: Failure) -> None:
        """The mark may be set: it is seen gone before the record goes."""
        operation = task.operation

        def work(connection: Transaction) -> None:
            ledger.save(
                connection,
                operation.id,
                state=OperationState.UNWINDING,
                message=failure.message,
            )

        ends.again(self._cloud, operation, failure, work, seconds=0)
        self._cloud.wake()
        LOG.warning("An adoption failed (%s): %s", failure.category, failure.message)

    def _taken_back(self, task: Task, outcome: Outcome) -> None:
        if outcome.gone:
            self._gone(task, None)
        else:
            ends.again(self._cloud, task.operation, outcome.failure)

    def _gone(self, task: Task, failure: Failure | None) -> None:
        """The VM is as it was: record, VMID, ports and claim go. Raises Unavailable."""
        operation, server = task.operation, task.server
        self._cloud.placement.release(server.uuid)

        def work(connection: Transaction) -> None:
            message = operation.message
            if failure is not None:
                ledger.record_failure(connection, operation, failure)
                message = failure.message
            let_go(connection, server, operation.id)
            ledger.close(connection, operation.id, OperationState.FAILED, message)

        self._cloud.store.run(work)
