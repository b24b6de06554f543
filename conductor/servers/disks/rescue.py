"""Rescue: the server's VM runs from a disk made of an image, with its own disks beside it; and
unrescue: it runs from its own again."""

from __future__ import annotations

import dataclasses
import functools

from common import clock
from common.log import logger
from common.messages.commands import EndSwap, Swap
from common.messages.reports import Built, VmSeen
from common.resources.states import TaskState, VmState
from conductor.cloud import failure_of
from conductor.engine import close
from conductor.engine.stages import Stage, Table, Task, answer
from conductor.plans import RescuePlan, SwapPlan
from conductor.servers.disks.swapping import Swapping
from conductor.servers.server_command import ServerCommand
from conductor.store.ledger import leases
from conductor.store.transactions import Transaction

LOG = logger(__name__)


class RescueFlow(Swapping):
    """The flow of the action ``rescue``."""

    def table(self) -> Table[Task]:
        """Return the stages."""
        shown = TaskState.RESCUING
        return Table(
            (
                Stage("map_disk", self._map_disk, shown=shown),
                Stage("swap", self._swap, answer(Swap, self._swapped), shown, undo=self._back),
            ),
            on_superseded=functools.partial(close.overtaken, self._cloud),
            on_deadline=self._on_deadline,
            undone=self._undone,
            usable=False,
        )

    def _map_disk(self, task: Task) -> Task | None:
        """Locate the image, and gather what the config drive says."""
        plan = self._located(task, task.operation.planned(RescuePlan).image_id)
        if plan is None:
            return None

        def work(connection: Transaction) -> Task:
            leases.advance(connection, task.operation, plan, "swap", self._cloud.name)
            operation = dataclasses.replace(task.operation, plan=plan, stage="swap")
            return dataclasses.replace(task, operation=operation)

        return self._cloud.store.run(work)

    def _swap(self, task: Task) -> None:
        plan = task.operation.planned(SwapPlan)
        self._send(
            task,
            rescue=True,
            # Whatever it was, it runs from the image.
            running=plan.was != VmState.STOPPED,
            local_disks=(),
            disk_gib=plan.image.min_disk_gib if plan.image and not plan.image.cd else 0,
        )

    def _swapped(self, task: Task, outcome: Built) -> None:
        if not outcome.ok:
            self._failed(task, failure_of(outcome))
            return
        close.done(
            self._cloud,
            task,
            VmState.RESCUED,
            power_state=outcome.power_state,
            launched_at=clock.utcnow(),
        )
        LOG.info("Server %s is rescued.", task.server.uuid)


class UnrescueFlow(ServerCommand[VmSeen]):
    """The flow of the action ``unrescue``; where it fails the server is still rescued."""

    stage = "unrescue"
    unseen = "The agent does not say how it ended."

    def command(self, task: Task) -> EndSwap:
        """Return what starts it from its own disk again."""
        return EndSwap(*self.about(task), keep=False, running=True, rescued=True)
