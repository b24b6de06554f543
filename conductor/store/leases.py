"""Who works on what, and what happens when they die.

An operation that somebody works on has a lease: an owner and an expiry. A conductor takes it with
the row; an agent's lease is renewed by its reports. When it runs out, whoever looks first takes it
over and goes on from what the record says, be the old owner dead, deaf or only slow. One without
a lease is ``queued``; one that unwinds says so whether anybody works on it or not, as nothing else
in its row says that it may not go on.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import StaleTransition
from common.messages.facts import Heartbeat
from common.messages.reports import Working
from common.states import OPEN_STATES, OperationState
from conductor import plans
from conductor.plans import Plan
from conductor.store import operations as ledger
from conductor.store.operations import Operation
from db.resources import SERVER_UUID
from db.schema import operations, servers

#: after its deadline an agent may still remove what it made, for not quite so long
AGENT_ENDS_SECONDS = 300.0


def _state(before: OperationState, after: OperationState) -> sa.Case[str]:
    """``after`` for what is ``before``; any other state, ``unwinding`` above all, stays."""
    column = operations.c.state
    return sa.case((column == before, after), else_=column)


def unowned(not_before: datetime.datetime | None) -> dict[str, Any]:
    """Columns of an open operation that nobody works on, and that is due then; None: now."""
    return {
        "state": _state(OperationState.RUNNING, OperationState.QUEUED),
        "lease_owner": None,
        "lease_expires_at": None,
        "not_before": not_before,
    }


def owned(owner: str, lease_seconds: float) -> dict[str, Any]:
    """Columns of an open operation that ``owner`` works on from now on."""
    return {
        "state": _state(OperationState.QUEUED, OperationState.RUNNING),
        "lease_owner": owner,
        "lease_expires_at": clock.after(lease_seconds),
        "not_before": None,
    }


# Built once: every build executes them. The columns that they set are their parameters'.
_OF = operations.c.id == sa.bindparam("of")
_ADVANCE = operations.update().where(
    _OF,
    operations.c.attempt == sa.bindparam("tried"),
    operations.c.lease_owner == sa.bindparam("owner"),
)
_TAKE = (
    operations.update()
    .where(_OF)
    .values(state=_state(OperationState.QUEUED, OperationState.RUNNING))
)
_RENEW = operations.update().where(
    operations.c.id.in_(sa.bindparam("ids", expanding=True)),
    operations.c.state.in_(OPEN_STATES),
    operations.c.lease_owner.like("compute:%"),
    operations.c.deadline > sa.bindparam("ended"),
)


def due(
    connection: sa.Connection,
    owner: str,
    lease_seconds: float,
    limit: int,
    actions: Collection[str],
    held: Sequence[int] = (),
) -> list[Operation]:
    """Take over operations of these actions whose lease has run out and whose pause is over.

    What has waited longest comes first, so that what is tried again and again keeps nothing
    from its turn. ``held`` are left out: their owner has them in hand, late as it is. Two
    conductors never get the same one: rows that another one looks at are skipped. What is under
    way for a held server stays where it is.
    """
    now = clock.utcnow()
    columns = operations.c
    found = connection.execute(
        sa.select(columns.id)
        .where(
            columns.action.in_(sorted(actions)),
            columns.id.not_in(held),
            columns.state.in_(OPEN_STATES),
            columns.lease_expires_at.is_(None) | (columns.lease_expires_at < now),
            columns.not_before.is_(None) | (columns.not_before <= now),
            ~sa.exists().where(
                servers.c.uuid == SERVER_UUID,
                servers.c.held,
                servers.c.deleted_at.is_(None),
            ),
        )
        .order_by(sa.func.coalesce(columns.lease_expires_at, columns.not_before), columns.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).scalars()
    ids = list(found)
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
    return [ledger.from_row(row._mapping) for row in rows]


def confirm(
    connection: sa.Connection, operation: Operation, owner: str, lease_seconds: float
) -> bool:
    """Renew our own lease; False when somebody else has taken it meanwhile."""
    renewed = connection.execute(
        operations.update()
        .where(
            operations.c.id == operation.id,
            operations.c.lease_owner == owner,
            operations.c.attempt == operation.attempt,
        )
        .values(lease_expires_at=clock.after(lease_seconds))
    )
    return renewed.rowcount == 1


def advance(connection: sa.Connection, operation: Operation, plan: Plan, owner: str) -> None:
    """Write down what was decided, as long as the lease is the owner's.

    Raises StaleTransition when another one has taken the operation over: what that one decides
    counts, and it may have given back already what ``plan`` was made of.
    """
    changed = connection.execute(
        _ADVANCE,
        {
            "of": operation.id,
            "tried": operation.attempt,
            "owner": owner,
            "updated_at": clock.utcnow(),
            "plan": plans.dump_plan(plan),
        },
    )
    if changed.rowcount != 1:
        raise StaleTransition(operation_id=operation.id)


def next_attempt(connection: sa.Connection, operation: Operation) -> Operation:
    """Begin the next attempt, by compare-and-set on the old one. Raises StaleTransition.

    What an agent still reports of the old attempt no longer counts.
    """
    changed = connection.execute(
        operations.update()
        .where(operations.c.id == operation.id, operations.c.attempt == operation.attempt)
        .values(attempt=operation.attempt + 1)
    )
    if changed.rowcount != 1:
        raise StaleTransition(operation_id=operation.id)
    return dataclasses.replace(operation, attempt=operation.attempt + 1)


def hand_over(
    connection: sa.Connection, operation_id: int, worker: str, lease_seconds: float
) -> None:
    """The lease goes to an agent's worker, until it is silent for that long."""
    now = clock.utcnow()
    connection.execute(
        _TAKE,
        {
            "of": operation_id,
            "lease_owner": f"compute:{worker}",
            "lease_expires_at": now + datetime.timedelta(seconds=lease_seconds),
            "not_before": None,
            "updated_at": now,
        },
    )


def postpone(connection: sa.Connection, operation_id: int, seconds: float) -> None:
    """Nobody's until that time."""
    ledger.save(connection, operation_id, **unowned(clock.after(seconds)))


def hurry(connection: sa.Connection, operation_id: int) -> None:
    """What waits for its next try is due now; what somebody works on is left alone."""
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
    """Nobody's until that time, unless another conductor has taken it over meanwhile.

    ``why`` is kept, unless it is known already how the operation failed.
    """
    columns = operations.c
    ours = columns.lease_owner.is_(None) | (columns.lease_owner == owner)
    connection.execute(
        operations.update()
        .where(
            columns.id == operation_id,
            columns.state.in_(OPEN_STATES),
            ours | columns.lease_owner.like("compute:%"),
        )
        .values(
            updated_at=clock.utcnow(),
            **unowned(clock.after(seconds)),
            **({"message": sa.func.coalesce(columns.message, why)} if why else {}),
        )
    )


def renew(connection: sa.Connection, working: Sequence[Working], lease_seconds: float) -> None:
    """Agents still work on these: one statement. A lease that a conductor holds is left alone.

    An agent ends its work soon after the deadline. One that does not hangs: its lease runs out.
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


def begun_anew(connection: sa.Connection, heartbeat: Heartbeat, lease_seconds: float) -> bool:
    """End the leases of a worker that were renewed last before its process began; whether any.

    The process that held them stopped, in order or not; the one that began since has nothing of
    it in hand, whatever else it works on. What is sent to it again meanwhile does no harm.
    """
    up = heartbeat.up_seconds
    if up is None or up > lease_seconds:
        return False
    columns = operations.c
    ended = connection.execute(
        operations.update()
        .where(
            columns.lease_owner == f"compute:{heartbeat.worker}",
            columns.state.in_(OPEN_STATES),
            columns.id.not_in([item.operation_id for item in heartbeat.working]),
            columns.lease_expires_at < clock.after(lease_seconds - up),
        )
        .values(**unowned(clock.utcnow()))
    )
    return ended.rowcount > 0


def give_back(connection: sa.Connection, owner: str) -> None:
    """A conductor that stops has nothing in hand any more."""
    connection.execute(
        operations.update()
        .where(operations.c.lease_owner == owner, operations.c.state.in_(OPEN_STATES))
        .values(**unowned(clock.utcnow()))
    )
