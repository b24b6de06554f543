"""Operations whose deadline passed while no conductor ran: ending them changes no VM or disk.

See ``store.ledger.pulse``. Their commands only look. If the change is seen done the operation
succeeds; else it fails like any operation past its deadline, except that its undos only look, too.
A change that is half done is left so, and the resource shows it.
"""

from __future__ import annotations

from typing import Any

from common.log import logger
from common.messages.reports import Category, Failure
from common.resources.states import PowerState, VmState, found_well
from conductor.cloud import backoff
from conductor.engine import close
from conductor.engine.stages import Table, Task, Work
from conductor.store.ledger import leases, pulse
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation
from conductor.store.transactions import Store, Transaction

LOG = logger(__name__)

_UNSEEN = (
    "No conductor could see how far the {} was when its deadline passed, and it was not seen done "
    "since. Nothing was removed."
)


def unseen(task: Work) -> Failure:
    """Return the failure of an operation whose change was not seen done."""
    text = _UNSEEN.format(task.operation.action)
    return Failure(
        Category.UNKNOWN_OUTCOME,
        text,
        host=task.operation.plan.target.host,
        owner_message=text,
        remedy="micronova audit",
    )


def woke(connection: Transaction, conductor: str, operation: Operation) -> bool:
    """Return whether an operation has overslept; if so, make it due at once.

    For a caller that finds it past its deadline, and may itself have been frozen since it read it.
    """
    pulse.sign(connection, conductor)
    pulse.mark_held(connection, operation.id)
    now = ledger.get(connection, operation.id)
    if now is None or not now.overslept:
        return False
    leases.postpone(connection, operation.id, 0)
    return True


def again(store: Store, operation: Operation, failure: Failure) -> None:
    """Plan another look, as this one failed."""

    def work(connection: Transaction) -> None:
        ledger.record_failure(connection, operation, failure)
        following = leases.next_attempt(connection, operation)
        leases.postpone(connection, following.id, backoff(operation.attempt))

    store.run(work)


def leave(
    store: Store,
    table: Table[Any],
    task: Work,
    failure: Failure,
    seen: int = PowerState.NOSTATE,
) -> None:
    """End an operation as failed. What it reserved is kept until its resource is deleted.

    ``seen``: the power state of the server's VM, if a look found it unlocked and proved that it is
    the server's: then the server can be used.
    """
    operation = task.operation

    def work(connection: Transaction) -> None:
        if close.has_ended(connection, operation):
            return
        if table.uncertain is not None:
            table.uncertain(connection, task)
        elif isinstance(task, Task) and table.owns and task.shown is not None:
            close.settle(
                connection,
                task,
                found_well(VmState.ERROR, seen) if table.usable else VmState.ERROR,
                power_state=seen,
            )
        close.close_failed(connection, operation, failure)

    store.run(work)
    LOG.error(
        "%s %s: its %s is left as it is: %s",
        *(operation.resource_type, operation.resource_id, operation.action, failure.message),
    )
