"""Leases: who works on an operation, and who takes it over.

An operation in progress has a lease: an owner and an expiry. A conductor takes it with the row; an
agent's lease is renewed by its reports. When it runs out, the first conductor that looks takes it
over and continues from the record, whether the old owner is dead, cut off or slow. Without a lease
an operation is ``queued``. An unwinding operation remains ``unwinding`` with or without a lease,
as nothing else in its row says that it must not advance.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import StaleTransition
from common.log import logger
from common.messages.reports import Working
from common.resources.states import OPEN_STATES, OperationState
from conductor.plans import Plan
from conductor.store.ledger import ledger_metrics
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation
from db.resources import ITS_SERVER
from db.schema import operations, servers

LOG = logger(__name__)

#: an operation that can't be read is looked at again after so long
UNREADABLE_SECONDS = 30.0
#: an agent may clean up after its deadline, for a little less than this
AGENT_ENDS_SECONDS = 300.0


def _state(before: OperationState, after: OperationState) -> sa.Case[str]:
    """Return ``after`` for the state ``before``; all others, ``unwinding`` above all, stay."""
    column = operations.c.state
    return sa.case((column == before, after), else_=column)


def unowned(not_before: datetime.datetime | None) -> dict[str, Any]:
    """Return the columns of an open operation without lease, due at that time; None: now."""
    return {
        "state": _state(OperationState.RUNNING, OperationState.QUEUED),
        "lease_owner": None,
        "lease_expires_at": None,
        "not_before": not_before,
    }


def owned(owner: str, lease_seconds: float) -> dict[str, Any]:
    """Return the columns of an open operation that ``owner`` works on from now on."""
    return {
        "state": _state(OperationState.QUEUED, OperationState.RUNNING),
        "lease_owner": owner,
        "lease_expires_at": clock.after(lease_seconds),
        "not_before": None,
    }


#: what the owner of a lease begins with where it is an agent's worker
_AGENTS = "compute:"


def of_worker(worker: str) -> str:
    """Return the owner of a lease that an agent's worker has."""
    return f"{_AGENTS}{worker}"


def worker_with(lease_owner: str | None) -> str | None:
    """Return the agent's worker that holds a lease; None: a conductor holds it, or no process."""
    if lease_owner is None or not lease_owner.startswith(_AGENTS):
        return None
    return lease_owner.removeprefix(_AGENTS)


# Built once: every build, and every scan, executes them. The columns that they set are parameters.
_OF = operations.c.id == sa.bindparam("of")
_ADVANCE = operations.update().where(
    _OF,
    operations.c.attempt == sa.bindparam("tried"),
    operations.c.lease_owner == sa.bindparam("owner"),
)
_CONFIRM = _ADVANCE.where(operations.c.state.in_(OPEN_STATES))
_ADVANCE_HOLDING = _ADVANCE.where(
    sa.exists().where(ITS_SERVER, servers.c.operation_id == operations.c.id)
)
_REACH = operations.update().where(
    _OF,
    operations.c.attempt == sa.bindparam("tried"),
    operations.c.state == sa.bindparam("read_state"),
    operations.c.stage.is_not_distinct_from(sa.bindparam("read_stage")),
)
_REACH_OWNED = _REACH.values(state=_state(OperationState.QUEUED, OperationState.RUNNING))
_TAKE = (
    operations.update()
    .where(_OF)
    .values(state=_state(OperationState.QUEUED, OperationState.RUNNING))
)
_RENEW = operations.update().where(
    operations.c.id.in_(sa.bindparam("ids", expanding=True)),
    operations.c.state.in_(OPEN_STATES),
    operations.c.lease_owner.like(f"{_AGENTS}%"),
    operations.c.deadline > sa.bindparam("ended"),
)


@functools.cache
def _due(actions: frozenset[str]) -> sa.Select[int]:
    """Which operations of these actions are due: all that never changes is in the statement, as
    every scan executes it."""
    columns = operations.c
    return (
        sa.select(columns.id)
        .where(
            columns.action.in_(map(_constant, sorted(actions))),
            columns.state.in_(map(_constant, sorted(OPEN_STATES))),
            columns.lease_expires_at.is_(None) | (columns.lease_expires_at < sa.bindparam("now")),
            columns.not_before.is_(None) | (columns.not_before <= sa.bindparam("now")),
            ~sa.exists().where(ITS_SERVER, servers.c.held, servers.c.deleted_at.is_(None)),
        )
        .order_by(sa.func.coalesce(columns.lease_expires_at, columns.not_before), columns.id)
        .limit(sa.bindparam("most", type_=sa.Integer))
        .with_for_update(skip_locked=True)
    )


def _constant(name: str) -> sa.ColumnElement[str]:
    """A name of a table of this package's, as it stands in a statement."""
    return sa.literal_column(f"'{name}'", sa.String)


def due(
    connection: sa.Connection,
    owner: str,
    lease_seconds: float,
    limit: int,
    actions: Collection[str],
    held: Sequence[int] = (),
) -> list[Operation]:
    """Take over operations of these actions whose lease has run out and whose wait is over.

    The longest wait comes first, so that repeated failures don't delay others. ``held`` are left
    out: this process still works on them, late as it is. Two conductors never get the same one:
    rows locked by another one are skipped. Operations of held servers stay as they are.
    """
    now, columns = clock.utcnow(), operations.c
    query = _due(frozenset(actions))
    if held:
        query = query.where(columns.id.not_in(held))
    ids = list(connection.scalars(query, {"now": now, "most": limit}))
    if not ids:
        return []
    connection.execute(
        operations.update()
        .where(columns.id.in_(ids))
        .values(updated_at=now, **owned(owner, lease_seconds))
    )
    rows = connection.execute(
        sa.select(*ledger.FIELDS).where(columns.id.in_(ids)).order_by(columns.id)
    )
    found, unreadable = ledger.readable(rows)
    if unreadable:
        # A newer conductor began them; that one, or another one, gets them.
        LOG.warning("Operations %s are of a newer release; they are left to it.", unreadable)
        later = unowned(now + datetime.timedelta(seconds=UNREADABLE_SECONDS))
        connection.execute(operations.update().where(columns.id.in_(unreadable)).values(**later))
    return found


def confirm(
    connection: sa.Connection,
    operation_id: int,
    attempt: int,
    owner: str,
    lease_seconds: float,
) -> bool:
    """Renew the owner's lease; return False when another process has taken it, or at its end."""
    return _confirm(connection, operation_id, attempt, owner, lease_seconds)


def may_run(
    connection: sa.Connection, working: Sequence[Working], owner: str, lease_seconds: float
) -> list[Working]:
    """Record that the VMs of these attempts may run from now on; renew their leases.

    Return those that the owner still holds, and that advance; nothing is recorded of others.
    """
    return [
        one
        for one in sorted(working, key=lambda one: one.operation_id)
        if _confirm(
            connection,
            *(one.operation_id, one.attempt, owner, lease_seconds),
            may_run=one.attempt,
        )
    ]


def _confirm(
    connection: sa.Connection,
    operation_id: int,
    attempt: int,
    owner: str,
    lease_seconds: float,
    **values: Any,
) -> bool:
    renewed = connection.execute(
        _CONFIRM,
        {
            "of": operation_id,
            "tried": attempt,
            "owner": owner,
            "lease_expires_at": clock.after(lease_seconds),
            **values,
        },
    )
    return renewed.rowcount == 1


def advance(
    connection: sa.Connection,
    operation: Operation,
    plan: Plan,
    stage: str | None,
    owner: str,
    *,
    holding: bool = False,
    **values: Any,
) -> None:
    """Store what was decided, and the stage that follows, if the lease is the owner's.

    With ``holding`` also only if no later operation has the server. ``values`` are further
    columns, such as another owner. Raises StaleTransition when another process has taken the
    operation over: what that one decides counts, and it may have released what ``plan`` names.
    """
    changed = connection.execute(
        _ADVANCE_HOLDING if holding else _ADVANCE,
        {
            "of": operation.id,
            "tried": operation.attempt,
            "owner": owner,
            "updated_at": clock.utcnow(),
            "plan": plan,
            "stage": stage,
            **values,
        },
    )
    if changed.rowcount != 1:
        raise StaleTransition(operation_id=operation.id)


@dataclass(frozen=True)
class Advance:
    """What was decided for an operation, and the stage that follows; see ``advance``."""

    operation: Operation
    plan: Plan
    stage: str | None
    values: Mapping[str, Any]
    """Further columns."""


def advance_all(connection: sa.Connection, decided: Sequence[Advance], owner: str) -> None:
    """Do as ``advance`` for several: a statement for all that set the same columns.

    Raises StaleTransition when one of them isn't the owner's; the transaction must be given up
    then.
    """
    now, alike = clock.utcnow(), collections.defaultdict(list)
    for one in decided:
        alike[frozenset(one.values)].append(
            {
                "of": one.operation.id,
                "tried": one.operation.attempt,
                "owner": owner,
                "updated_at": now,
                "plan": one.plan,
                "stage": one.stage,
                **one.values,
            }
        )
    for rows in alike.values():
        if connection.execute(_ADVANCE, rows).rowcount != len(rows):
            raise StaleTransition(operations=[row["of"] for row in rows])


def reach(connection: sa.Connection, operation: Operation, plan: Plan, stage: str) -> None:
    """Store the stage, or undo, that follows the stage read, and what was decided.

    By compare-and-set on the stage read: the lease may be an agent's. Raises StaleTransition if
    another process has advanced the operation already, or it has ended.
    """
    _reach(connection, _REACH, operation, plan, stage)


def reach_owned(
    connection: sa.Connection,
    operation: Operation,
    plan: Plan,
    stage: str,
    owner: str,
    lease_seconds: float,
) -> None:
    """Do as ``reach``, and give the lease to ``owner``, even if an agent holds it."""
    lease = owned(owner, lease_seconds)
    del lease["state"]  # set by the statement
    _reach(connection, _REACH_OWNED, operation, plan, stage, **lease)


def _reach(
    connection: sa.Connection,
    statement: sa.Update,
    operation: Operation,
    plan: Plan,
    stage: str,
    **values: Any,
) -> None:
    changed = connection.execute(
        statement,
        {
            "of": operation.id,
            "tried": operation.attempt,
            "read_state": operation.state,
            "read_stage": operation.stage,
            "updated_at": clock.utcnow(),
            "plan": plan,
            "stage": stage,
            **values,
        },
    )
    if changed.rowcount != 1:
        raise StaleTransition(operation_id=operation.id)


@dataclass(frozen=True)
class Read:
    """What must still hold for an operation that was read, for it to unwind."""

    stages: Collection[str]
    """It is at one of these stages, at the stage read, or at none."""
    owner: str | None
    """The holder of the lease; None: any."""


def unwind(
    connection: sa.Connection, operation: Operation, read: Read, seconds: float, **values: Any
) -> None:
    """Store that the operation unwinds, without lease, due after that time.

    By compare-and-set on what was read. ``values`` are further columns. Raises StaleTransition
    if another process has advanced the operation already, or it has ended.
    """
    columns = operations.c
    onward = (OperationState.QUEUED, OperationState.RUNNING)
    states = onward if operation.state in onward else (operation.state,)
    ours = sa.true() if read.owner is None else columns.lease_owner == read.owner
    changed = connection.execute(
        operations.update()
        .where(
            columns.id == operation.id,
            columns.attempt == operation.attempt,
            columns.state.in_(states),
            columns.stage.is_(None) | columns.stage.in_([*read.stages, operation.stage]),
            ours,
        )
        .values(
            {
                **unowned(clock.after(seconds)),
                "state": OperationState.UNWINDING,
                "updated_at": clock.utcnow(),
                **values,
            }
        )
    )
    if changed.rowcount != 1:
        raise StaleTransition(operation_id=operation.id)


def next_attempt(
    connection: sa.Connection, operation: Operation, *, unstarted: bool = False
) -> Operation:
    """Begin the next attempt, by compare-and-set on the old one. Raises StaleTransition.

    Later reports of the old attempt don't count. ``unstarted``: only if its agent was not allowed
    to start the VM.
    """
    columns = operations.c
    old = (columns.id == operation.id) & (columns.attempt == operation.attempt)
    if unstarted:
        old &= columns.may_run != operation.attempt
    changed = connection.execute(
        operations.update().where(old).values(attempt=operation.attempt + 1)
    )
    if changed.rowcount != 1:
        raise StaleTransition(operation_id=operation.id)
    ledger_metrics.retry(connection, operation.action)
    return dataclasses.replace(operation, attempt=operation.attempt + 1)


def hand_over(
    connection: sa.Connection, operation: Operation, worker: str, lease_seconds: float
) -> None:
    """Pass the lease to an agent's worker, until that is silent for that long.

    The stage that the agent is given is stored with it.
    """
    now = clock.utcnow()
    connection.execute(
        _TAKE,
        {
            "of": operation.id,
            "stage": operation.stage,
            "lease_owner": of_worker(worker),
            "lease_expires_at": now + datetime.timedelta(seconds=lease_seconds),
            "not_before": None,
            "updated_at": now,
        },
    )


def postpone(connection: sa.Connection, operation_id: int, seconds: float) -> None:
    """Release the operation, due after that time."""
    ledger.save(connection, operation_id, **unowned(clock.after(seconds)))
    ledger_metrics.pause(connection, seconds)


def make_due(connection: sa.Connection, operation_id: int) -> None:
    """Make an operation that waits for its next attempt due now; others are left alone."""
    columns = operations.c
    mine = (columns.id == operation_id) & columns.state.in_(OPEN_STATES)
    connection.execute(operations.update().where(mine).values(not_before=None))


def pause(
    connection: sa.Connection,
    operation_id: int,
    owner: str,
    seconds: float,
    why: str | None = None,
) -> None:
    """Release the operation, due after that time, unless another conductor has taken it.

    ``why`` is stored unless a failure is stored already.
    """
    columns = operations.c
    ours = columns.lease_owner.is_(None) | (columns.lease_owner == owner)
    connection.execute(
        operations.update()
        .where(
            columns.id == operation_id,
            columns.state.in_(OPEN_STATES),
            ours | columns.lease_owner.like(f"{_AGENTS}%"),
        )
        .values(
            updated_at=clock.utcnow(),
            **unowned(clock.after(seconds)),
            **({"message": sa.func.coalesce(columns.message, why)} if why else {}),
        )
    )


def renew(connection: sa.Connection, working: Sequence[Working], lease_seconds: float) -> None:
    """Renew agents' leases, in one statement. Leases of conductors are left alone.

    An agent ends its work soon after the deadline. If it hangs, its lease runs out.
    """
    ids = sorted({item.operation_id for item in working})
    if not ids:
        return
    connection.execute(
        _RENEW,
        {
            "ids": ids,
            "ended": clock.after(-AGENT_ENDS_SECONDS),
            "lease_expires_at": clock.after(lease_seconds),
        },
    )


def end_of_worker(connection: sa.Connection, worker: str) -> None:
    """End the leases of an agent's worker that does nothing more: what it worked on is due."""
    columns = operations.c
    mine = (columns.lease_owner == of_worker(worker)) & columns.state.in_(OPEN_STATES)
    connection.execute(operations.update().where(mine).values(**unowned(clock.utcnow())))


def give_back(connection: sa.Connection, owner: str) -> None:
    """Release all operations of a conductor that stops."""
    connection.execute(
        operations.update()
        .where(operations.c.lease_owner == owner, operations.c.state.in_(OPEN_STATES))
        .values(**unowned(clock.utcnow()))
    )
