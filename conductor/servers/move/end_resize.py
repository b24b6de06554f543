"""The second half of a resize: it is confirmed, and the disks grow; or reverted.

Each ends with the claim of one size, and the server's columns with it.
"""

from __future__ import annotations

import functools

from common.failures import passes
from common.log import logger
from common.messages.commands import Grow, Shape
from common.messages.reports import Category, Failure, VmSeen
from common.resources.migrations import MigrationStatus
from common.resources.states import OperationState, PowerState, TaskState, VmState
from conductor.cloud import Cloud, failure_of, placed, silent
from conductor.engine import close, unwinding
from conductor.engine.cases import Cases
from conductor.engine.stages import Stage, Table, Task, answer
from conductor.plans import ResizePlan
from conductor.rpc.servers.flavors import local_disks_of, root_gib
from conductor.servers.move import shaping
from conductor.servers.move.cold_move import BACK, OTHER_HOST, SAME_HOST, ColdMove, case
from conductor.servers.move.settling import hold, settle
from conductor.store.ledger import operations as ledger
from conductor.store.servers import migrations, server_groups
from conductor.store.transactions import Transaction
from conductor.sync.allocations import of_flavor

LOG = logger(__name__)

SETTLE = "settle"


class _SecondHalf:
    """What both have in common: failures that leave the resize as it was."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def _failed(self, task: Task, failure: Failure) -> None:
        """Try again later where waiting may help; else the resize still waits for its end."""
        if not close.waits(self._cloud, task.operation, failure):
            self._end(task, failure)

    def _on_deadline(self, task: Task) -> None:
        text = f"{task.operation.action} did not end in time."
        self._end(task, Failure(Category.TASK_TIMEOUT, text, host=task.server.host))

    def _end(self, task: Task, failure: Failure) -> None:
        status = MigrationStatus.FINISHED
        shaping.failed(self._cloud, task, failure, VmState.RESIZED, status)
        close.log_failed(task.operation, failure)

    def _no_agent(self, task: Task) -> None:
        self._failed(task, silent(task.server.host))

    def _hold(self, task: Task, flavor: shaping.Flavor) -> None:
        """Hold one size only. Raises Unavailable to be repeated later."""
        plan = task.operation.planned(ResizePlan)
        mine = {str(plan.target.uuid): of_flavor(flavor, task.server.image_properties)}
        hold(self._cloud, task, mine, plan.holder, {})


class ConfirmFlow(_SecondHalf):
    """The flow of the action ``confirmResize``."""

    def table(self) -> Table[Task]:
        """Return the stages: the disks grow, then the claim shrinks. As in Nova no task_state
        shows them."""
        return Table(
            (
                Stage("grow", self._grow, answer(Grow, self._grown)),
                Stage(SETTLE, self._settle, final=True),
            ),
            on_superseded=functools.partial(close.overtaken, self._cloud),
            on_deadline=self._on_deadline,
            has_finished=lambda task: task.server.vm_state != VmState.RESIZED,
        )

    def _grow(self, task: Task) -> Task | None:
        operation, plan = task.operation, task.operation.planned(ResizePlan)
        fitted = local_disks_of(plan.new)
        if fitted == local_disks_of(plan.old) and root_gib(plan.new) <= root_gib(plan.old):
            return task
        where, deadline = placed(operation), operation.deadline
        if (
            where is None
            or deadline is None
            or not self._cloud.send(
                operation,
                Grow(
                    *operation.about(where, deadline),
                    disk_gib=root_gib(plan.new),
                    local_disks=fitted,
                ),
            )
        ):
            self._no_agent(task)
        return None

    def _grown(self, task: Task, outcome: VmSeen) -> Task | None:
        if not outcome.ok:
            self._failed(task, failure_of(outcome))
            return None
        return shaping.reach(self._cloud, task, SETTLE)

    def _settle(self, task: Task) -> None:
        plan = task.operation.planned(ResizePlan)
        self._hold(task, plan.new)
        stopped = task.server.power_state == PowerState.SHUTDOWN
        after = VmState.STOPPED if stopped else VmState.ACTIVE
        columns = shaping.sizes(plan.new)

        def also(connection: Transaction) -> None:
            server_groups.move_place(connection, task.server, plan.holder)

        shaping.done(self._cloud, task, after, MigrationStatus.CONFIRMED, also, **columns)
        LOG.info("Server %s: the resize is confirmed.", task.server.uuid)


class RevertFlow(_SecondHalf):
    """The flow of the action ``revertResize``, also of a migration."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(cloud)
        self._move = ColdMove(cloud, BACK, self._unwind, self._settle_there)

    def cases(self) -> Cases[Task]:
        """Return the stages: the VM gets its old size, then the claim shrinks. If the VM was moved
        it is moved back first, and a failure is undone."""
        shown = TaskState.RESIZE_REVERTING
        lost = functools.partial(close.overtaken, self._cloud)
        here = (
            Stage("shape", self._shape, answer(Shape, self._on_outcome), shown),
            Stage(SETTLE, self._settle, shown=shown, final=True),
        )
        return Cases(
            case,
            {
                SAME_HOST: Table(here, on_superseded=lost, on_deadline=self._on_deadline),
                OTHER_HOST: Table(
                    self._move.stages(),
                    on_superseded=lost,
                    on_deadline=self._on_deadline_there,
                    undone=self._undone,
                ),
            },
        )

    def _unwind(self, task: Task, failure: Failure) -> None:
        unwinding.begin(self._cloud, self.cases().of(task), task, failure)

    def _on_deadline_there(self, task: Task) -> None:
        text = "The reversion did not end in time."
        self._unwind(task, Failure(Category.TASK_TIMEOUT, text, host=task.server.host))

    @staticmethod
    def _undone(connection: Transaction, task: Task) -> None:
        """End with the server as it was, to be confirmed or reverted."""
        operation = task.operation
        number = operation.planned(ResizePlan).migration_id
        migrations.set_status(connection, number, MigrationStatus.FINISHED, operation)
        close.settle(connection, task, VmState.RESIZED)
        ledger.close(connection, operation.id, OperationState.FAILED, operation.message)

    def _settle_there(self, task: Task) -> None:
        plan = task.operation.planned(ResizePlan)
        mine = {str(plan.target.uuid): of_flavor(plan.old, task.server.image_properties)}
        settle(
            self._cloud,
            task,
            mine,
            {},
            VmState(plan.was),
            MigrationStatus.REVERTED,
            claim=None,
            flavor=dict(plan.old),
            **shaping.sizes(plan.old),
        )
        LOG.info("Server %s is back on host %s.", task.server.uuid, plan.target.host)

    def _shape(self, task: Task) -> None:
        if not shaping.send(self._cloud, task, forward=False):
            self._no_agent(task)

    def _on_outcome(self, task: Task, outcome: VmSeen) -> Task | None:
        if outcome.ok:
            return shaping.reach(self._cloud, task, SETTLE)
        failure = failure_of(outcome)
        if failure.clean or passes(failure):
            self._failed(task, failure)
        else:
            # It has neither size for certain.
            status = MigrationStatus.ERROR
            shaping.failed(self._cloud, task, failure, VmState.ERROR, status)
        return None

    def _settle(self, task: Task) -> None:
        plan = task.operation.planned(ResizePlan)
        self._hold(task, plan.old)
        was = VmState(plan.was)
        runs = was == VmState.ACTIVE
        shaping.done(
            self._cloud,
            task,
            was,
            MigrationStatus.REVERTED,
            power_state=PowerState.RUNNING if runs else PowerState.SHUTDOWN,
            flavor=dict(plan.old),
            **shaping.sizes(plan.old),
        )
        LOG.info("Server %s: the resize is reverted.", task.server.uuid)
