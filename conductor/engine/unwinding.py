"""How operations begin to unwind: one update, with the undo that the table says."""

from __future__ import annotations

import dataclasses
from typing import Any

from common.messages.reports import Failure
from common.messages.scheduling import Decision
from common.resources.states import OperationState
from conductor.cloud import Cloud
from conductor.engine import close
from conductor.engine.stages import Table, Undo, W
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.transactions import Transaction


def begin(
    cloud: Cloud,
    table: Table[W],
    task: W,
    failure: Failure,
    decision: Decision | None = None,
) -> None:
    """Commit that the operation unwinds because of the failure, and have it taken up at once.

    ``decision`` is stored too, where it found no host. Raises StaleTransition; see ``write``.
    """

    def work(connection: Transaction) -> None:
        if decision is not None:
            ledger.record_decision(connection, task.operation, decision)
        write(connection, table, task, failure, owner=cloud.name)

    cloud.store.run(work)
    cloud.wake()
    close.log_failed(task.operation, failure)


def again_or_begin(cloud: Cloud, table: Table[W], task: W, failure: Failure) -> None:
    """Begin a new attempt where waiting may help, else to unwind."""
    if not close.waits(cloud, task.operation, failure):
        begin(cloud, table, task, failure)


def write(
    connection: Transaction,
    table: Table[W],
    task: W,
    failure: Failure | None,
    *,
    owner: str,
    seconds: float = 0.0,
    after: Undo[W] | None = None,
    **values: Any,
) -> W:
    """Store that the operation unwinds, and its first undo; return the task as stored.

    The first undo is that of the stage reached, as the stage may have been made in part; if the
    stage has no undo, that of the nearest stage before it with an undo. If this transaction has
    carried out the undo ``after``, the first undo is the next in order. A table without undos
    continues forward from its stage, past the point of no return. The operation has no lease, and
    is due after ``seconds``. ``values`` are further columns.

    If the stage is an agent's, a new attempt begins, so that late reports of the agent don't
    count. If it is a conductor's, ``owner`` must be that conductor, with the lease. Raises
    StaleTransition if another process works on the operation, or it is further, or has ended.
    """
    operation = task.operation
    undos, position = table.undos_from(task, after), table.reached(task)
    known = table.stages if position is None else table.stages[: position + 1]
    agents = position is None or known[-1].on_outcome is not None or task.unwinding
    read = leases.Read([stage.name for stage in known], None if agents else owner)
    stage = undos[0].name if undos else operation.stage
    message = operation.message if failure is None or task.unwinding else failure.message
    if failure is not None:
        ledger.record_failure(connection, operation, failure)
    attempt = operation.attempt + int(agents and after is None)
    values |= {"attempt": attempt, "stage": stage, "message": message}
    leases.unwind(connection, operation, read, seconds, **values)
    now = dataclasses.replace(
        operation, state=OperationState.UNWINDING, attempt=attempt, stage=stage, message=message
    )
    return dataclasses.replace(task, operation=now)
