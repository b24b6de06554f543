"""Resize on the server's own host: nothing is copied.

The claim grows to the larger of both sizes, the VM is stopped, gets its new size, and runs again
if it ran. The root disk grows only once the resize is confirmed, so that a reversion is exact.
"""

from __future__ import annotations

import dataclasses
import functools

from common import clock
from common.failures import passes
from common.log import logger
from common.messages.reports import Category, Failure, Outcome
from common.messages.scheduling import Decision
from common.migrations import MigrationStatus
from common.states import OperationState, TaskState, VmState
from conductor.cloud import Cloud, backoff, failure_of
from conductor.engine import ends, unwinding
from conductor.engine.stages import Stage, Table, Task, Undo
from conductor.flows import own_host, shaping
from conductor.plans import ResizePlan
from conductor.store import leases, migrations, transitions
from conductor.store import operations as ledger
from conductor.store.transactions import Transaction
from conductor.sync import claims
from conductor.sync.allocations import of_flavor

LOG = logger(__name__)

#: Nova's words, which clients read
NO_VALID_HOST = "No valid host was found. No valid host found for resize"


class ResizeFlow:
    """The flow of the action ``resize``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[Task]:
        """Return the stages of a resize that stays on its host."""
        release = Undo("release_claim", self._release)
        back = Undo("shape_back", self._shape_back, self._shaped_back)
        return Table(
            (
                Stage("claim", self._claim, shown=TaskState.RESIZE_PREP, undo=release),
                Stage("shape", self._shape, self._heard, TaskState.RESIZE_MIGRATING, undo=back),
            ),
            lost=functools.partial(ends.overtaken, self._cloud),
            late=self._late,
            undone=self._undone,
        )

    # --- the stages

    def _claim(self, task: Task) -> Task | None:
        """Ask the scheduler about the host, and hold the larger of both sizes of it."""
        operation, server = task.operation, task.server
        plan = operation.planned(ResizePlan)
        started = clock.utcnow()
        decision = own_host.decide(self._cloud, operation, server, plan)
        with self._cloud.store.read() as connection:
            held = migrations.claim_of(connection, server.uuid) or {}
        fits = decision.host is not None and claims.hold(
            self._cloud.placement, server, str(plan.target.uuid), held
        )
        if not fits:
            self._nowhere(task, decision)
            return None

        def work(connection: Transaction) -> Task:
            own_host.record(connection, operation, decision, started)
            status = MigrationStatus.MIGRATING
            migrations.set_status(connection, plan.migration_id, status, operation)
            moved = transitions.move(
                connection,
                server,
                operation_id=operation.id,
                vm_state=VmState(server.vm_state),
                task_state=TaskState.RESIZE_MIGRATING,
            )
            leases.advance(connection, operation, plan, "shape", self._cloud.name)
            return dataclasses.replace(task.at("shape"), server=moved)

        return self._cloud.store.run(work)

    def _nowhere(self, task: Task, decision: Decision) -> None:
        """End as it was: the server stays, and so does what it holds."""
        host = task.server.host
        why = decision.reason or f"Host {host} has not enough left of what the flavor asks for."
        failure = Failure(
            Category.NO_VALID_HOST,
            f"{NO_VALID_HOST}: {why} Servers are resized on their own host only.",
            "conductor_migrate_server",
            host=host,
            owner_message=NO_VALID_HOST,
        )

        def also(connection: Transaction) -> None:
            ledger.record_decision(connection, task.operation, decision)

        unwinding.begin(self._cloud, self.table(), task, failure, also)

    def _shape(self, task: Task) -> None:
        if not shaping.send(self._cloud, task, forward=True):
            text = f"The agent of host {task.server.host} does not answer."
            self._failed(task, Failure(Category.NODE_UNHEALTHY, text, host=task.server.host))

    def _heard(self, task: Task, outcome: Outcome) -> None:
        """Take the agent's outcome: VERIFY_RESIZE, another attempt, or back."""
        if not outcome.ok:
            self._failed(task, failure_of(outcome))
            return
        plan = task.operation.planned(ResizePlan)

        shaping.done(
            self._cloud,
            task,
            VmState.RESIZED,
            MigrationStatus.FINISHED,
            power_state=outcome.power_state,
            flavor=dict(plan.new),
        )
        LOG.info("Server is resized, to be confirmed or reverted.")

    # --- failure

    def _failed(self, task: Task, failure: Failure) -> None:
        operation = task.operation
        if passes(failure) and operation.attempt <= self._cloud.conf.conductor.max_waits:
            ends.again(self._cloud, operation, failure)
        else:
            unwinding.begin(self._cloud, self.table(), task, failure)

    def _late(self, task: Task) -> None:
        text = "The resize did not end in time."
        if task.operation.message:
            text += f" It waited: {task.operation.message}"
        failure = Failure(Category.TASK_TIMEOUT, text, host=task.server.host)
        unwinding.begin(self._cloud, self.table(), task, failure)

    def _shape_back(self, task: Task) -> bool:
        if not shaping.send(self._cloud, task, forward=False):
            self._cloud.wait(task.operation, backoff(task.operation.attempt))
        return False

    def _shaped_back(self, task: Task, outcome: Outcome) -> bool:
        if not outcome.ok:
            ends.again(self._cloud, task.operation, outcome.failure)
        return outcome.ok

    def _release(self, task: Task) -> bool:
        """Hold the old size again. Raises Unavailable to be repeated later."""
        plan = task.operation.planned(ResizePlan)
        before = of_flavor(plan.old, task.server.image_properties)
        claims.hold(self._cloud.placement, task.server, str(plan.target.uuid), before)
        return True

    @staticmethod
    def _undone(connection: Transaction, task: Task) -> None:
        """End with the server as it was."""
        operation = task.operation
        plan = operation.planned(ResizePlan)
        migrations.set_status(connection, plan.migration_id, MigrationStatus.ERROR, operation)
        transitions.move(
            connection,
            task.server,
            operation_id=operation.id,
            vm_state=VmState(plan.was),
            task_state=None,
            **shaping.sizes(plan.old),
        )
        ledger.close(connection, operation.id, OperationState.FAILED, operation.message)
