"""Resize and cold migration.

The server's own host is taken if it has room: nothing is copied. The claim grows to
the larger of both sizes, the VM is stopped, gets its new size, and runs again if it ran. Else, and
always where the server is migrated, another host is chosen, and the stopped VM moves there.

The root disk grows only once the resize is confirmed, so that a reversion is exact.
"""

from __future__ import annotations

import dataclasses
import functools

from common import clock
from common.errors import GenerationConflict, Unavailable
from common.log import logger
from common.messages.commands import Shape
from common.messages.reports import Category, Failure, VmSeen
from common.messages.scheduling import Decision
from common.resources.migrations import MigrationStatus
from common.resources.states import TaskState, VmState
from conductor.cloud import Cloud, failure_of, silent
from conductor.engine import close, unwinding
from conductor.engine.cases import Cases
from conductor.engine.stages import Stage, Table, Task, Undo, answer
from conductor.plans import ResizePlan
from conductor.servers.move import destination, own_host, shaping
from conductor.servers.move.cold_move import (
    FORWARD,
    OTHER_HOST,
    SAME_HOST,
    ColdMove,
    case,
    decided_move,
)
from conductor.servers.move.destination import Chosen, Destinations, Wanted
from conductor.servers.move.settling import settle
from conductor.store.ledger import leases
from conductor.store.servers import migrations, server_groups
from conductor.store.transactions import Transaction
from conductor.sync import claims
from conductor.sync.allocations import of_flavor

LOG = logger(__name__)

_WHAT = {"resize": "resize", "migrate": "cold migrate"}


class ResizeFlow:
    """The flow of the actions ``resize`` and ``migrate``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._destinations = Destinations(cloud)
        self._move = ColdMove(cloud, FORWARD, self._unwind, self._settle)

    def cases(self) -> Cases[Task]:
        """Return the stages of a resize on the same host, and of a move to another host."""
        claim = Stage(
            "claim",
            self._claim,
            shown=TaskState.RESIZE_PREP,
            undo=Undo("release_claim", self._release, write=self._drop_place),
        )
        shaped_back = functools.partial(close.again_unless_ok, self._cloud)
        shape = Stage(
            "shape",
            self._shape,
            answer(Shape, self._on_outcome),
            TaskState.RESIZE_MIGRATING,
            Undo("shape_back", self._shape_back, shaped_back),
        )
        return Cases(
            case,
            {
                SAME_HOST: self._table(claim, shape),
                OTHER_HOST: self._table(claim, *self._move.stages()),
            },
        )

    def _table(self, *stages: Stage[Task]) -> Table[Task]:
        return Table(
            stages,
            on_superseded=self._on_superseded,
            on_deadline=self._on_deadline,
            undone=self._undone,
        )

    # --- the claim, which decides the case

    def _claim(self, task: Task) -> Task | None:
        """Claim the own host where it may stay, else another one."""
        if not self._may_use_own_host(task):
            return self._claim_elsewhere(task, None)
        operation, server = task.operation, task.server
        plan = operation.planned(ResizePlan)
        started = clock.utcnow()
        decision = own_host.decide(self._cloud, operation.ctxt, server, plan.old, plan.new)
        with self._cloud.store.read() as connection:
            held = migrations.claim_of(connection, server.uuid) or {}
        fits = decision.host is not None and claims.hold(
            self._cloud.placement, server, str(plan.target.uuid), held
        )
        if not fits:
            why = decision.reason or "it has not enough left of what the flavor asks for."
            return self._claim_elsewhere(task, f"Host {server.host} can't take it: {why}")

        def work(connection: Transaction) -> Task:
            own_host.record(connection, operation, decision, started)
            return self._decided(connection, task, plan, "shape")

        return self._cloud.store.run(work)

    def _may_use_own_host(self, task: Task) -> bool:
        """Return whether the own host may be asked."""
        allowed = bool(self._cloud.conf.conductor.allow_resize_to_same_host)
        return task.operation.action == "resize" and allowed

    def _claim_elsewhere(self, task: Task, here: str | None) -> Task | None:
        """Claim another host; ``here``: why the own one can't take it."""
        operation, server = task.operation, task.server
        plan = operation.planned(ResizePlan)
        with self._cloud.store.read() as connection:
            fixed = destination.immovable(connection, server)
        if fixed is not None:
            why = f"The server can't be moved: {fixed}."
            self._no_valid_host(task, Decision(server.uuid, None, reason=why), here)
            return None
        started = clock.utcnow()

        def commit(connection: Transaction, chosen: Chosen) -> Task:
            own_host.record(connection, operation, chosen.decision, started)
            return self._commit_destination(connection, task, chosen)

        wanted = Wanted(plan.holder, plan.new, plan.asked_host)
        found = self._destinations.find(task, wanted, commit)
        if isinstance(found, Decision):
            self._no_valid_host(task, found, here)
            return None
        return found

    def _commit_destination(self, connection: Transaction, task: Task, chosen: Chosen) -> Task:
        """Store the destination, and what the server holds until its VM has moved."""
        plan = task.operation.planned(ResizePlan)
        held = of_flavor(plan.old, task.server.image_properties)
        decided, values = decided_move(connection, plan, chosen, held)
        return self._decided(connection, task, decided, "power_off", **values)

    def _decided(
        self,
        connection: Transaction,
        task: Task,
        plan: ResizePlan,
        following: str,
        **values: object,
    ) -> Task:
        """Commit the plan with its case; ``values`` are columns of the migration."""
        operation = task.operation
        status = MigrationStatus.MIGRATING
        migrations.set_status(connection, plan.migration_id, status, operation, **values)
        moved = close.show(connection, task, TaskState.RESIZE_MIGRATING)
        leases.advance(connection, operation, plan, following, self._cloud.name)
        now = dataclasses.replace(operation, plan=plan, stage=following)
        return dataclasses.replace(task, operation=now, server=moved)

    def _no_valid_host(self, task: Task, decision: Decision, here: str | None) -> None:
        """End without a change: neither the server nor its claim moves."""
        words = own_host.NO_VALID_HOST.format(_WHAT[task.operation.action])
        why = " ".join(text for text in (here, decision.reason) if text)
        failure = Failure(
            Category.NO_VALID_HOST,
            f"{words}: {why}",
            "conductor_migrate_server",
            host=task.server.host,
            owner_message=words,
        )

        unwinding.begin(self._cloud, self.cases().of(task), task, failure, decision)

    # --- on the own host

    def _shape(self, task: Task) -> None:
        if not shaping.send(self._cloud, task, forward=True):
            self._failed(task, silent(task.server.host))

    def _on_outcome(self, task: Task, outcome: VmSeen) -> None:
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
        LOG.info("Server %s is resized, to be confirmed or reverted.", task.server.uuid)

    # --- on another host

    def _settle(self, task: Task) -> None:
        """Record where it is: VERIFY_RESIZE. Raises Unavailable to be repeated later."""
        plan = task.operation.planned(ResizePlan)
        properties = task.server.image_properties
        new, old = of_flavor(plan.new, properties), of_flavor(plan.old, properties)
        settle(
            self._cloud,
            task,
            {str(plan.target.uuid): new},
            {str(plan.source.uuid): old},
            VmState.RESIZED,
            MigrationStatus.FINISHED,
            claim=new,
            flavor=dict(plan.new),
        )
        LOG.info("Server %s is moved, to be confirmed or reverted.", task.server.uuid)

    # --- failure

    def _failed(self, task: Task, failure: Failure) -> None:
        unwinding.again_or_begin(self._cloud, self.cases().of(task), task, failure)

    def _unwind(self, task: Task, failure: Failure) -> None:
        unwinding.begin(self._cloud, self.cases().of(task), task, failure)

    def _on_deadline(self, task: Task) -> None:
        text = f"The {task.operation.action} did not end in time."
        if task.operation.message:
            text += f" It waited: {task.operation.message}"
        self._unwind(task, Failure(Category.TASK_TIMEOUT, text, host=task.server.host))

    def _on_superseded(self, task: Task) -> None:
        """End it: another operation has the server, and gives back what the migration holds.

        Unless that came before a claim of ours: as long as none is committed, it is given back.
        """
        plan = task.operation.planned(ResizePlan)
        if case(task) != OTHER_HOST and plan.holder:
            self._destinations.release(plan.holder)
        close.overtaken(self._cloud, task)

    def _shape_back(self, task: Task) -> bool:
        sent = shaping.send(self._cloud, task, forward=False)
        return close.later_unless(self._cloud, task, sent)

    def _release(self, task: Task) -> bool:
        """Hold the old size of the own host only. Raises Unavailable to be repeated later."""
        plan = task.operation.planned(ResizePlan)
        own = plan.source if case(task) == OTHER_HOST else plan.target
        before = {str(own.uuid): of_flavor(plan.old, task.server.image_properties)}
        try:
            claims.hold_both(self._cloud.placement, task.server, before, plan.holder, {})
        except GenerationConflict as error:
            raise Unavailable(error.message) from error
        return True

    @staticmethod
    def _drop_place(connection: Transaction, task: Task, failure: Failure | None) -> Task:
        server_groups.drop(connection, task.server, task.operation.planned(ResizePlan).holder)
        return task

    @staticmethod
    def _undone(connection: Transaction, task: Task) -> None:
        """End with the server as it was."""
        operation = task.operation
        plan = operation.planned(ResizePlan)
        migrations.set_status(connection, plan.migration_id, MigrationStatus.ERROR, operation)
        close.as_before(connection, task, plan.was, **shaping.sizes(plan.old))
