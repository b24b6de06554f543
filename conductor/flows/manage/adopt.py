"""Adopt: an existing VM becomes a server. Nothing is restarted, only the mark is set.

What can be refused is refused before anything is written. Then: record, VMID, ports and quota in
one transaction, the claim, the mark; if one of these fails, record and mark are removed again, and
the ledger has the reason.
"""

from __future__ import annotations

import functools

from common import clock
from common.log import logger
from common.messages.commands import Mark
from common.messages.reports import Category, Failure, Outcome
from common.states import OperationState, PowerState, TaskState, VmState
from conductor.cloud import Cloud, backoff, failure_of, placed
from conductor.engine import ends, unwinding
from conductor.engine.stages import Stage, Table, Task, Undo
from conductor.flows import build_command
from conductor.flows.remove.finish_delete import let_go
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
        """Return the stages: claim, then have the mark set."""
        shown = TaskState.ADOPTING
        release = Undo("release_claim", self._release)
        unmark = Undo("unmark", self._unmark, self._unmarked)
        return Table(
            (
                Stage("claim", self._claim, shown=shown, undo=release),
                Stage("mark", self._mark, self._on_outcome, shown=shown, undo=unmark),
            ),
            on_superseded=functools.partial(ends.overtaken, self._cloud),
            on_deadline=self._on_deadline,
            undone=self._undone,
        )

    def _claim(self, task: Task) -> Task | None:
        """Claim, as far as placement has room for it. Raises Unavailable."""
        server = task.server
        amounts = allocations.wanted(server)
        provider = str(task.operation.plan.target.uuid)
        placement = self._cloud.placement
        if placement.claim(server.uuid, provider, amounts, server.project_id, server.user_id):
            return task
        asked = ", ".join(f"{amount} {name}" for name, amount in amounts.items())
        text = f"Host {server.host} has no room for {asked} by what it has promised already."
        placement.release(server.uuid)
        self._refused(task, Failure(Category.NO_VALID_HOST, text, host=server.host))
        return None

    def _mark(self, task: Task) -> None:
        self._send(task, on=True)

    def _unmark(self, task: Task) -> bool:
        self._send(task, on=False)
        return False

    def _send(self, task: Task, *, on: bool) -> None:
        operation, server = task.operation, task.server
        where, deadline = placed(operation), operation.deadline
        worker = self._cloud.take_to(operation, str(server.host))
        if worker is None or where is None or deadline is None:
            self._cloud.wait(operation, backoff(operation.attempt))
            return
        seconds = self._cloud.conf.conductor.action_timeout_seconds
        with self._cloud.store.read() as connection:
            owner = build_command.owner(connection, server)
        command = Mark(
            operation.id,
            operation.attempt,
            server.uuid,
            where,
            deadline if on else clock.after(seconds),
            on=on,
            smbios_uuid=operation.asked(AdoptParams).smbios_uuid,
            **owner,
        )
        self._cloud.compute.execute(operation.ctxt, worker, command)

    def _on_outcome(self, task: Task, outcome: Outcome) -> None:
        """Take the agent's outcome of the mark."""
        if not outcome.ok:
            unwinding.begin(self._cloud, self.table(), task, failure_of(outcome))
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

    # --- failure

    def _on_deadline(self, task: Task) -> None:
        failure = Failure(Category.TASK_TIMEOUT, "It did not end in time.")
        unwinding.begin(self._cloud, self.table(), task, failure)

    def _unmarked(self, task: Task, outcome: Outcome) -> bool:
        if not outcome.gone:
            ends.again(self._cloud, task.operation, outcome.failure)
        return outcome.gone

    def _release(self, task: Task) -> bool:
        """Release the claim. Raises Unavailable to be repeated later."""
        self._cloud.placement.release(task.server.uuid)
        return True

    @staticmethod
    def _undone(connection: Transaction, task: Task) -> None:
        """Delete record, VMID and ports: the VM is as it was."""
        operation = task.operation
        let_go(connection, task.server, operation.id)
        ledger.close(connection, operation.id, OperationState.FAILED, operation.message)

    def _refused(self, task: Task, failure: Failure) -> None:
        """End an adoption that made nothing but the record."""

        def work(connection: Transaction) -> None:
            let_go(connection, task.server, task.operation.id)
            ends.close_failed(connection, task.operation, failure)

        self._cloud.store.run(work)
