"""The second half of a resize: it is confirmed, and the disk grows; or reverted.

Each ends with the claim of one size, and the server's columns with it.
"""

from __future__ import annotations

import functools

from common.failures import passes
from common.log import logger
from common.messages.commands import Grow
from common.messages.reports import Category, Failure, Outcome
from common.migrations import MigrationStatus
from common.states import PowerState, TaskState, VmState
from conductor.cloud import Cloud, failure_of, placed
from conductor.engine import ends
from conductor.engine.stages import Stage, Table, Task
from conductor.flows import shaping
from conductor.plans import ResizePlan
from conductor.sync import claims
from conductor.sync.allocations import of_flavor

LOG = logger(__name__)

SETTLE = "settle"


class _SecondHalf:
    """What both have in common: failures that leave the resize as it was."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def _failed(self, task: Task, failure: Failure) -> None:
        """Try again later where waiting may help; else the resize still waits for its end."""
        operation = task.operation
        if passes(failure) and operation.attempt <= self._cloud.conf.conductor.max_waits:
            ends.again(self._cloud, operation, failure)
            return
        self._end(task, failure)

    def _late(self, task: Task) -> None:
        text = f"{task.operation.action} did not end in time."
        self._end(task, Failure(Category.TASK_TIMEOUT, text, host=task.server.host))

    def _end(self, task: Task, failure: Failure) -> None:
        status = MigrationStatus.FINISHED
        shaping.failed(self._cloud, task, failure, VmState.RESIZED, status)
        action = task.operation.action
        LOG.warning("%s failed (%s): %s", action, failure.category, failure.message)

    def _no_agent(self, task: Task) -> None:
        host = task.server.host
        text = f"The agent of host {host} does not answer."
        self._failed(task, Failure(Category.NODE_UNHEALTHY, text, host=host))

    def _hold(self, task: Task, flavor: shaping.Flavor) -> None:
        """Hold one size only. Raises Unavailable to be repeated later."""
        provider = str(task.operation.plan.target.uuid)
        held = of_flavor(flavor, task.server.image_properties)
        claims.hold(self._cloud.placement, task.server, provider, held)


class ConfirmFlow(_SecondHalf):
    """The flow of the action ``confirmResize``."""

    def table(self) -> Table[Task]:
        """Return the stages: the disk grows, then the claim shrinks. As in Nova no task_state
        shows them."""
        return Table(
            (
                Stage("grow", self._grow, self._grown),
                Stage(SETTLE, self._settle, final=True),
            ),
            lost=functools.partial(ends.overtaken, self._cloud),
            late=self._late,
            over=lambda task: task.server.vm_state != VmState.RESIZED,
        )

    def _grow(self, task: Task) -> Task | None:
        operation, plan = task.operation, task.operation.planned(ResizePlan)
        if plan.new["disk_gib"] <= plan.old["disk_gib"]:
            return task
        worker = self._cloud.take_to(operation, str(plan.target.host))
        where = placed(operation)
        if worker is None or where is None or operation.deadline is None:
            self._no_agent(task)
            return None
        command = Grow(
            operation.id,
            operation.attempt,
            task.server.uuid,
            where,
            operation.deadline,
            disk_gib=plan.new["disk_gib"],
        )
        self._cloud.compute.grow(operation.ctxt, worker, command)
        return None

    def _grown(self, task: Task, outcome: Outcome) -> Task | None:
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
        shaping.done(self._cloud, task, after, MigrationStatus.CONFIRMED, **columns)
        LOG.info("A resize is confirmed.")


class RevertFlow(_SecondHalf):
    """The flow of the action ``revertResize``."""

    def table(self) -> Table[Task]:
        """Return the stages: the VM gets its old size, then the claim shrinks."""
        shown = TaskState.RESIZE_REVERTING
        return Table(
            (
                Stage("shape", self._shape, self._heard, shown),
                Stage(SETTLE, self._settle, shown=shown, final=True),
            ),
            lost=functools.partial(ends.overtaken, self._cloud),
            late=self._late,
        )

    def _shape(self, task: Task) -> None:
        if not shaping.send(self._cloud, task, forward=False):
            self._no_agent(task)

    def _heard(self, task: Task, outcome: Outcome) -> Task | None:
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
        LOG.info("A resize is reverted.")
