"""The form of a flow that is one command to an agent, about any resource.

A subclass says which host's agent acts, which command it gets, and what is written once the
command has succeeded or failed. ``OneCommand`` does the rest: it waits for an agent that is down,
repeats the command, ends it at its deadline, ignores a second outcome, wakes others and logs.

    do ── unwanted? ───────────────────────────────────────────────► fail
     └─── send ── no agent? ── on_no_agent ── on_failure ── retry? ─► fail
    on_outcome ── succeeded? ── no ── on_failure ── retry? ─────────► fail
     └─── on_success: lock, close, write_done unless it had ended
    on_deadline ────────────────────────────────────────────────────► fail
    fail: lock, close and write_failed unless it had ended

See ``conductor.engine.removal`` and ``unwound_command`` for what is repeated until something is
gone, and for what is undone.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Set
from typing import Any, ClassVar, Generic

from common import clock
from common.log import logger
from common.messages.commands import Command, Placed
from common.messages.reports import Category, Failure, Outcome, outcome_named_by
from common.resources.states import OperationState
from conductor.cloud import Cloud, backoff, placed, silent
from conductor.engine import close
from conductor.engine.command_end import End
from conductor.engine.stages import Out, Stage, Table, W, only
from conductor.store.ledger import operations as ledger
from conductor.store.records import About, C, Operation, Resource
from conductor.store.transactions import Transaction, after_commit

LOG = logger(__name__)


class OneCommand(abc.ABC, Generic[W, Out]):
    """A flow of one command, which may be sent twice, and whose outcome may come twice."""

    stage: ClassVar[str]
    """The name of the stage."""
    sends: type[Command[Out]]
    """The command, where it is sent as it is planned."""
    unseen: ClassVar[str]
    """The failure of an outcome that has none: what was not seen."""
    late: str | None = None
    """The failure at the deadline. None: it is final, and repeated until it is done."""
    hopeless: ClassVar[Set[Category] | None] = None
    """Failures that no repetition mends; after all others it is repeated while it is wanted.
    None: repeated only where waiting may help, as often as is configured."""
    wakes: ClassVar[bool] = True
    """Whether other operations may be due at its end, which cost a look; see ``wake_after``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[W]:
        """Return the flow as data."""
        final = self.late is None
        return Table(
            self.stages(),
            on_superseded=None,
            on_deadline=None if final else self.on_deadline,
            undone=self.undone(),
            owns=False,
            load=self.load,
            uncertain=None if final else self.uncertain(),
        )

    # --- what a flow says

    @abc.abstractmethod
    def load(self, connection: Transaction, operation: Operation) -> W:
        """Read what the operation is about."""

    def command(self, task: W) -> Command[Out]:
        """Return what the agent is sent: by default what is planned."""
        return self.planned(task, self.sends)

    def write_done(self, connection: Transaction, end: End[W, Out]) -> None:
        """Write that it is done, in the transaction that closes the operation."""

    def write_failed(self, connection: Transaction, end: End[W, Out]) -> None:
        """Write that it has failed, in the transaction that closes the operation."""

    def stages(self) -> tuple[Stage[W], ...]:
        """Return the stages; a flow may have some of the conductor's own before the command."""
        final = self.late is None
        return (Stage(self.stage, self.do, self.takes(), final=final),)

    def lock(self, connection: Transaction, task: W) -> Any:
        """Lock the record before the operation is closed, and return it for what is written."""
        return None

    def host(self, task: W) -> str:
        """Return the host whose agent acts; by default that of the plan."""
        return str(task.operation.plan.target.host)

    def where(self, task: W) -> Placed:
        """Return where its VM is; by default as planned, or the host alone."""
        target = task.operation.plan.target
        host = Placed(str(target.host), str(target.cluster), str(target.node), 0)
        return placed(task.operation) or host

    def reach(self, task: W) -> tuple[str, W] | None:
        """Give the lease to an agent's worker; return it and the task to continue with.

        None: no agent answers.
        """
        worker = self._cloud.take_to(task.operation, self.host(task))
        return None if worker is None else (worker, task)

    def unwanted(self, task: W) -> str | None:
        """Return why nothing is sent, and the operation fails at once; None: it is wanted."""
        return None

    def succeeded(self, task: W, outcome: Out) -> bool:
        """Return whether the outcome is a success; of a removal: whether it was seen gone."""
        return outcome.ok

    def on_no_agent(self, task: W) -> None:
        """Take note that no agent of the host answers: what is final waits, the rest fails."""
        if self.late is None:
            self.wait(task)
        else:
            self.on_failure(task, self.silent(task))

    def retry(self, task: W, failure: Failure) -> bool:
        """Begin another attempt where that may help, and return whether."""
        if self.hopeless is None:
            return close.waits(self._cloud, task.operation, failure)
        if failure.category in self.hopeless or self.unwanted(task) is not None:
            return False
        close.again(self._cloud, task.operation, failure)
        return True

    def uncertain(self) -> Callable[[Transaction, W], None] | None:
        """See ``Table.uncertain``."""
        return None

    def undone(self) -> Callable[[Transaction, W], None] | None:
        """See ``Table.undone``."""
        return None

    # --- what a flow may use

    def takes(self) -> Callable[[W, Outcome], None]:
        """Return what takes the agent's outcome."""
        return only(outcome_named_by(type(self)), self.on_outcome)

    def nothing_seen(self) -> Out:
        """Return the outcome where no agent has looked."""
        nothing: Out = outcome_named_by(type(self))(False)
        return nothing

    def about(self, task: W, resource: Resource | None = None) -> About:
        """Return how its command begins; ``resource``: as in ``Operation.about``."""
        operation, where = task.operation, self.where(task)
        if self.late is None or task.unwinding:
            deadline = clock.after(self._cloud.conf.conductor.action_timeout_seconds)
        else:
            deadline = operation.deadline or clock.utcnow()
        return operation.about(where, deadline, resource)

    def planned(
        self, task: W, kind: type[C], resource: Resource | None = None, **values: Any
    ) -> C:
        """Return the plan's command for this attempt, with these values; see ``about``."""
        command = dataclasses.replace(task.operation.ordered(kind), **values)
        return command.begun(*self.about(task, resource))

    def send(self, task: W) -> bool:
        """Send the command; return whether there was an agent for it."""
        reached = self.reach(task)
        if reached is None:
            return False
        worker, task = reached
        self._cloud.compute.execute(task.operation.ctxt, worker, self.command(task))
        return True

    def wait(self, task: W) -> None:
        """Postpone it by the back-off, in the same attempt."""
        self._cloud.wait(task.operation, backoff(task.operation.attempt))

    def wake_after(self, connection: Transaction) -> None:
        """After the commit of this transaction, look for operations that it made due."""
        after_commit(connection, self._cloud.wake)

    def silent(self, task: W) -> Failure:
        """Return the failure of an operation whose agent does not answer."""
        return silent(self.host(task))

    def too_late(self, task: W) -> Failure:
        """Return the failure at the deadline, with what it waited for."""
        waited = task.operation.message
        text = f"{self.late} It waited: {waited}" if waited else str(self.late)
        return Failure(Category.TASK_TIMEOUT, text)

    def on_failure(self, task: W, failure: Failure, outcome: Out | None = None) -> None:
        """Try again, or close the operation as failed."""
        if self.retry(task, failure):
            LOG.warning("%s is tried again: %s", task.operation.title, failure.message)
        else:
            self.fail(task, failure, outcome)

    def fail(self, task: W, failure: Failure, outcome: Out | None = None) -> None:
        """Close the operation as failed, once."""
        seen = dataclasses.replace(outcome or self.nothing_seen(), failure=failure)

        def work(connection: Transaction) -> None:
            row = self.lock(connection, task)
            if not close.has_ended(connection, task.operation):
                close.close_failed(connection, task.operation, failure)
                self.write_failed(connection, End(task, row, seen))

        self._close(work)
        close.log_failed(task.operation, failure)

    def on_success(self, task: W, outcome: Out) -> None:
        """Close the operation as done, once."""

        def work(connection: Transaction) -> None:
            row = self.lock(connection, task)
            if ledger.close(connection, task.operation.id, OperationState.DONE):
                self.write_done(connection, End(task, row, outcome))

        self._close(work)

    def _close(self, work: Callable[[Transaction], None]) -> None:
        self._cloud.store.run(work)
        if self.wakes:
            self._cloud.wake()

    # --- what the runner calls

    def do(self, task: W) -> None:
        """Send the command, unless it isn't wanted any more."""
        unwanted = self.unwanted(task)
        if unwanted is not None:
            self.fail(task, Failure(Category.CREATION_FAILED, unwanted))
        elif not self.send(task):
            self.on_no_agent(task)

    def on_outcome(self, task: W, outcome: Out) -> None:
        """Take the agent's outcome, which may be that of an operation that has ended."""
        if self.succeeded(task, outcome):
            self.on_success(task, outcome)
            LOG.info("%s is done.", task.operation.title)
        else:
            unseen = Failure(Category.UNKNOWN_OUTCOME, self.unseen)
            self.on_failure(task, outcome.failure or unseen, outcome)

    def on_deadline(self, task: W) -> None:
        """Close the operation as failed."""
        self.fail(task, self.too_late(task))
