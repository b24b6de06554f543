"""What flows of one command to the server's agent, which keep the VM, have in common."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable
from dataclasses import dataclass

from common import clock
from common.failures import passes
from common.log import logger
from common.messages.commands import Placed
from common.messages.reports import Category, Failure, Outcome
from common.states import ACTIONS, PowerState, TaskState, VmState, found_well
from conductor.cloud import Cloud, backoff
from conductor.engine import ends
from conductor.engine.stages import Stage, Table, Task
from conductor.store import operations as ledger
from conductor.store.transactions import Transaction

LOG = logger(__name__)


@dataclass(frozen=True)
class Reached:
    """Where a server's VM is, its worker, and the deadline."""

    worker: str
    where: Placed
    deadline: datetime.datetime


class ShortFlow:
    """A flow of one command to the server's agent.

    If it fails the server's state is that of the table of actions, or as its VM was seen, else the
    old one. The fault is the operation's.
    """

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def _one_stage(
        self,
        name: str,
        shown: TaskState,
        send: Callable[[Task, Reached], None],
        heard: Callable[[Task, Outcome], None],
    ) -> Table[Task]:
        """Return the table of one command, which is sent again if need be."""

        def do(task: Task) -> None:
            reached = self._reach(task)
            if reached is not None:
                send(task, reached)

        lost = functools.partial(ends.overtaken, self._cloud)
        return Table((Stage(name, do, heard, shown),), lost=lost, late=self._late)

    def _reach(self, task: Task) -> Reached | None:
        """Return where to send the command; None if there is no agent: the operation failed."""
        server, operation = task.server, task.operation
        host = str(server.host)
        worker = self._cloud.take_to(operation, host)
        if worker is None:
            text = f"The agent of host {host} does not answer."
            self._fail(task, Failure(Category.NODE_UNHEALTHY, text, host=host))
            return None
        where = Placed(host, server.cluster or "", server.node or "", server.vmid or 0)
        return Reached(worker, where, operation.deadline or clock.utcnow())

    def _late(self, task: Task) -> None:
        operation = task.operation
        text = f"The {operation.action} did not end in time."
        if operation.message:
            text += f" It waited: {operation.message}"
        host = str(task.server.host)
        self._fail(task, Failure(Category.TASK_TIMEOUT, text, host=host))

    def _failed(self, task: Task, failure: Failure, seen: int = PowerState.NOSTATE) -> None:
        """Try again later, if waiting may help; ``seen`` is the VM's power state."""
        if passes(failure) and task.operation.attempt <= self._cloud.conf.conductor.max_waits:
            self._wait(task, failure)
        else:
            self._fail(task, failure, seen)

    def _wait(self, task: Task, failure: Failure) -> None:
        """Begin a new attempt after the back-off, or at the deadline, which then ends it."""
        operation = task.operation
        pause = backoff(operation.attempt)
        if operation.deadline is not None:
            pause = min(pause, max(0.0, (operation.deadline - clock.utcnow()).total_seconds()))

        def work(connection: Transaction) -> None:
            ledger.save(connection, operation.id, message=failure.message)

        ends.again(self._cloud, operation, failure, work, seconds=pause)
        LOG.info("%s waits %.0f s: %s", operation.action, pause, failure.message)

    def _fail(self, task: Task, failure: Failure, seen: int = PowerState.NOSTATE) -> None:
        action = task.operation.action
        after = ACTIONS[action].failed or VmState(task.server.vm_state)
        if seen == PowerState.NOSTATE:
            ends.failed(self._cloud, task, failure, after)
        else:
            well = found_well(after, seen)
            ends.failed(self._cloud, task, failure, well, power_state=seen)
        LOG.warning("%s failed (%s): %s", action, failure.category, failure.message)
