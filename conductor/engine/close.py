"""How operations end, or are tried again: each in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.failures import passes
from common.log import logger
from common.messages.reports import Failure, Outcome
from common.resources.states import OperationState, TaskState, VmState
from conductor.cloud import Cloud, backoff
from conductor.engine.stages import Task, Work
from conductor.store.ledger import leases, transitions
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation, Server
from conductor.store.transactions import Transaction

LOG = logger(__name__)


def overtaken(cloud: Cloud, task: Task) -> None:
    """End an operation whose server another operation has taken: only that one's result counts."""
    number = task.operation.id
    cloud.store.run(lambda c: ledger.close(c, number, OperationState.FAILED, "Overtaken."))


def done(cloud: Cloud, task: Task, vm_state: VmState, **values: Any) -> None:
    """End a successful operation with the server's new state; ``values`` are further columns."""

    def work(connection: Transaction) -> None:
        settle(connection, task, vm_state, **values)
        ledger.close(connection, task.operation.id, OperationState.DONE)

    cloud.store.run(work)


def failed(
    cloud: Cloud, task: Task, failure: Failure, vm_state: VmState | None, **values: Any
) -> None:
    """End a failed operation with the server's state after it; None: it has no server."""

    def work(connection: Transaction) -> None:
        if vm_state is not None:
            settle(connection, task, vm_state, **values)
        close_failed(connection, task.operation, failure)

    cloud.store.run(work)


def has_ended(connection: Transaction, operation: Operation) -> bool:
    """Return whether it is closed already, as by an outcome that an agent reported twice."""
    now = ledger.get(connection, operation.id)
    return now is None or now.state in {OperationState.DONE, OperationState.FAILED}


def close_failed(connection: Transaction, operation: Operation, failure: Failure) -> None:
    """Store the fault, and end the operation with it."""
    ledger.record_failure(connection, operation, failure)
    ledger.close(connection, operation.id, OperationState.FAILED, failure.message)


def log_failed(operation: Operation, failure: Failure) -> None:
    """Log that an operation has failed."""
    LOG.warning("%s failed (%s): %s", operation.title, failure.category, failure.message)


def again(
    cloud: Cloud,
    operation: Operation,
    failure: Failure | None,
    also: Callable[[Transaction], None] = lambda _: None,
    seconds: float | None = None,
) -> None:
    """Begin a new attempt after these seconds or the back-off.

    ``also`` writes more in the same transaction.
    """
    pause = backoff(operation.attempt) if seconds is None else seconds

    def work(connection: Transaction) -> None:
        if failure is not None:
            ledger.record_failure(connection, operation, failure)
        following = leases.next_attempt(connection, operation)
        also(connection)
        leases.postpone(connection, following.id, pause)

    cloud.store.run(work)


def waits(cloud: Cloud, operation: Operation, failure: Failure) -> bool:
    """Begin a new attempt where waiting may help, as often as is configured; return whether."""
    if not passes(failure) or operation.attempt > cloud.conf.conductor.max_waits:
        return False
    again(cloud, operation, failure)
    return True


def again_unless_ok(cloud: Cloud, task: Task, outcome: Outcome) -> bool:
    """Return whether an undo is done, as its agent's outcome says; if not, try it again later."""
    if not outcome.ok:
        again(cloud, task.operation, outcome.failure)
    return outcome.ok


def later_unless(cloud: Cloud, task: Work, sent: bool) -> bool:
    """Return False: an undo is not done yet. If its command was not ``sent``, try again later."""
    if not sent:
        cloud.wait(task.operation, backoff(task.operation.attempt))
    return False


def as_before(
    connection: Transaction, task: Task, vm_state: str | None = None, **values: Any
) -> None:
    """End a failed operation that left the server as it was; ``vm_state`` defaults to its own."""
    settle(connection, task, VmState(vm_state or task.server.vm_state), **values)
    operation = task.operation
    ledger.close(connection, operation.id, OperationState.FAILED, operation.message)


def settle(
    connection: Transaction, task: Task, vm_state: VmState | None = None, **values: Any
) -> Server:
    """Move the server to a state in which nothing is done to it; None: its own vm_state.

    ``values`` are further columns. Return its new record. Raises StaleTransition.
    """
    return transitions.move(
        connection,
        task.server,
        operation_id=task.operation.id,
        vm_state=vm_state or VmState(task.server.vm_state),
        task_state=None,
        **values,
    )


def show(
    connection: Transaction, task: Task, task_state: TaskState | None, **values: Any
) -> Server:
    """Move the server to another task_state; as ``settle``."""
    return transitions.move(
        connection,
        task.server,
        operation_id=task.operation.id,
        vm_state=VmState(task.server.vm_state),
        task_state=task_state,
        **values,
    )
