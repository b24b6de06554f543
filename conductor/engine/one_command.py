"""The form of a flow that is one command to an agent, about any resource but a server's own state.

A subclass says whose agent acts, what it is sent, and what is written once it is done or has
failed. The form has the rest: an agent that is down, repetition, the deadline, an outcome that
comes twice, waking, and the log.
"""

from __future__ import annotations

import abc
import datetime
from typing import Any, ClassVar, Generic

from common import clock
from common.log import logger
from common.messages.commands import Command, Placed
from common.messages.reports import Category, Failure, Outcome
from common.states import OperationState
from conductor.cloud import Cloud, backoff, placed
from conductor.engine import ends
from conductor.engine.stages import Stage, Table, W
from conductor.store import operations as ledger
from conductor.store.operations import Operation
from conductor.store.transactions import Transaction

LOG = logger(__name__)

#: operation, attempt, resource, place and deadline: what every command begins with
About = tuple[int, int, str, Placed, datetime.datetime]


class OneCommand(abc.ABC, Generic[W]):
    """A flow of one stage. Its command may be sent twice, and its outcome may come twice."""

    stage: ClassVar[str]
    """The name of the stage."""
    done: ClassVar[str]
    """What the log says when it is done, such as "is extended"."""
    unseen: ClassVar[str]
    """The failure of an outcome that has none: what was not seen."""
    late: ClassVar[str | None] = None
    """The failure at the deadline. None: it is final, and repeated until it is done."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[W]:
        """Return the one stage."""
        final = self.late is None
        stage = Stage(self.stage, self._send, self._on_outcome, final=final)
        return Table(
            (stage,),
            lost=None,
            late=None if final else self._on_deadline,
            owns=False,
            load=self.load,
            uncertain=None if final else self.uncertain(),
        )

    # --- what a flow says

    @abc.abstractmethod
    def load(self, connection: Transaction, operation: Operation) -> W:
        """Read what the operation is about."""

    @abc.abstractmethod
    def command(self, task: W) -> Command:
        """Return what the agent is sent; see ``about``."""

    @abc.abstractmethod
    def write_done(self, connection: Transaction, task: W, row: Any, outcome: Outcome) -> None:
        """Write that it is done, in the transaction that closes the operation."""

    @abc.abstractmethod
    def write_failed(self, connection: Transaction, task: W, row: Any, failure: Failure) -> None:
        """Write that it has failed, in the transaction that closes the operation."""

    def lock(self, connection: Transaction, task: W) -> Any:
        """Lock the record before the operation is closed, and return it for what is written."""
        return None

    def host(self, task: W) -> str:
        """Return the host whose agent acts; by default that of the plan."""
        return str(task.operation.plan.target.host)

    def reach(self, task: W) -> tuple[str, W] | None:
        """Give the lease to an agent's worker; return it and the task to continue with.

        None: no agent answers.
        """
        worker = self._cloud.take_to(task.operation, self.host(task))
        return None if worker is None else (worker, task)

    def obstacle(self, task: W) -> Failure | None:
        """Return why nothing is sent, and the operation fails at once; None: it is sent."""
        return None

    def succeeded(self, outcome: Outcome) -> bool:
        """Return whether the outcome is a success; of a removal: whether it was seen gone."""
        return outcome.ok

    def on_no_agent(self, task: W) -> None:
        """Take note that no agent of the host answers: it waits, or fails after some waiting."""
        if self.late is None:
            self._cloud.wait(task.operation, backoff(task.operation.attempt))
            return
        host = self.host(task)
        text = f"The agent of host {host} does not answer."
        self.on_failure(task, Failure(Category.NODE_UNHEALTHY, text, host=host))

    def retry(self, task: W, failure: Failure) -> bool:
        """Begin another attempt where that may help, and return whether."""
        return ends.waits(self._cloud, task.operation, failure)

    def uncertain(self) -> Any:
        """See ``Table.uncertain``."""
        return None

    # --- what a flow may use

    def about(self, task: W, where: Placed | None = None) -> About:
        """Return the beginning of the command: ``where`` it acts, by default as planned."""
        operation = task.operation
        where = where or placed(operation) or _of_host(operation)
        if self.late is None:
            deadline = clock.after(self._cloud.conf.conductor.action_timeout_seconds)
        else:
            deadline = operation.deadline or clock.utcnow()
        return operation.id, operation.attempt, operation.resource_id, where, deadline

    def on_failure(self, task: W, failure: Failure) -> None:
        """Try again, or close the operation as failed."""
        self._log_failure(task, failure)
        if not self.retry(task, failure):
            self.fail(task, failure)

    def fail(self, task: W, failure: Failure) -> None:
        """Close the operation as failed, once."""

        def work(connection: Transaction) -> None:
            row = self.lock(connection, task)
            if not ends.has_ended(connection, task.operation):
                ends.close_failed(connection, task.operation, failure)
                self.write_failed(connection, task, row, failure)

        self._cloud.store.run(work)
        self._cloud.wake()

    # --- what the form does

    def _send(self, task: W) -> None:
        obstacle = self.obstacle(task)
        if obstacle is not None:
            self.fail(task, obstacle)
            return
        reached = self.reach(task)
        if reached is None:
            self.on_no_agent(task)
            return
        worker, task = reached
        self._cloud.compute.execute(task.operation.ctxt, worker, self.command(task))

    def _on_outcome(self, task: W, outcome: Outcome) -> None:
        if not self.succeeded(outcome):
            unseen = Failure(Category.UNKNOWN_OUTCOME, self.unseen)
            self.on_failure(task, outcome.failure or unseen)
            return

        def work(connection: Transaction) -> None:
            row = self.lock(connection, task)
            if not ends.has_ended(connection, task.operation):
                ledger.close(connection, task.operation.id, OperationState.DONE)
                self.write_done(connection, task, row, outcome)

        self._cloud.store.run(work)
        self._cloud.wake()
        operation = task.operation
        LOG.info("%s %s %s.", _title(operation), operation.resource_id, self.done)

    def _on_deadline(self, task: W) -> None:
        self.fail(task, Failure(Category.TASK_TIMEOUT, str(self.late)))

    @staticmethod
    def _log_failure(task: W, failure: Failure) -> None:
        operation = task.operation
        LOG.warning("%s %s: %s", _title(operation), operation.resource_id, failure.message)


def _title(operation: Operation) -> str:
    return str(operation.resource_type).capitalize()


def _of_host(operation: Operation) -> Placed:
    """Return the host of a plan that has no VM."""
    target = operation.plan.target
    return Placed(str(target.host), str(target.cluster), str(target.node), 0)
