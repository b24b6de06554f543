"""Whether a conductor was running all the time, and which deadlines passed while none was.

Each conductor stores a sign every few seconds, in a row of its own: clocks differ, and a conductor
whose own last sign is young has seen everything itself. If all rows are old, no conductor ran: all
were stopped or frozen, or an older copy of the database was restored. The record of open
operations may then be outdated, and a deadline that passed in that time proves nothing: such an
operation has ``overslept``, and its commands only look from then on.

So does one whose deadline passed while one of several conductors stood still, or had just died:
what agents reported may have been delivered to that one, and be unread. The bus delivers it to
another one only when it closes the silent connection.
"""

from __future__ import annotations

import datetime
import hashlib

import sqlalchemy as sa

from common import clock
from common.log import logger
from common.resources.states import OperationState
from db.reads.cloud import ENDED, SIGN
from db.schema import leases, operations

LOG = logger(__name__)

#: seconds between two signs of a conductor
SECONDS = 3.0
#: seconds without a sign after which no conductor counts as having worked
GAP_SECONDS = 10.0
#: seconds for which the bus may leave what was delivered to a silent process with it: RabbitMQ
#: closes a connection when two heartbeats are missing, of 15 s each (``common.rpc``), and others
#: have to read it then
HELD_SECONDS = 90.0
#: seconds that an operation which overslept gets for its look
LOOK_SECONDS = 300.0

#: seconds after which the row of a conductor that has ended is deleted
KEPT_SECONDS = 86_400.0

#: rows of ``leases``: the last signs, by conductor, and the end of the last gap
AWAKE = "awake since"
_LONGEST = 64 - len(SIGN)
_SIGNS = leases.c.name.like(f"{SIGN}%")
_RENEW = leases.update().where(
    leases.c.name == sa.bindparam("mine"),
    sa.bindparam("from_") <= leases.c.expires_at,
    sa.bindparam("to") >= leases.c.expires_at,
)


def sign(connection: sa.Connection, owner: str) -> bool:
    """Store that ``owner`` works on the ledger; mark operations as overslept after a gap.

    Return whether no conductor ran for some time.

    One statement, unless there was a gap. A sign of the future is of a clock that is ahead, or
    was put back: a conductor has run, or deadlines are of that clock, too. After a gap of this
    conductor alone, what was delivered to it has still to be read.
    """
    now = clock.utcnow()
    gap = datetime.timedelta(seconds=GAP_SECONDS)
    mine = _row(owner)
    renewed = connection.execute(
        _RENEW,
        {"mine": mine, "from_": now - gap, "to": now + gap, "owner": owner, "expires_at": now},
    )
    if renewed.rowcount == 1:
        return False
    held = _silent(connection, now, leases.c.name == mine)
    rows = connection.execute(
        sa.select(leases.c.name, leases.c.expires_at).where(_SIGNS).with_for_update()
    )
    signs = {row.name: row.expires_at for row in rows}
    _store(connection, mine, owner, now, known=mine in signs)
    old = now - datetime.timedelta(seconds=KEPT_SECONDS)
    connection.execute(leases.delete().where(_SIGNS, leases.c.expires_at < old))
    last = max(signs.values(), default=None)
    if last is None or last > now - gap:
        if held is not None:
            _say_held(owner, held, now, _mark(connection, held, now))
        return last is None
    _store(connection, AWAKE, owner, now, known=awake_since(connection) is not None)
    marked = _mark(connection, last, now)
    LOG.warning(
        "No conductor worked from %s to %s: the deadlines of %d operations passed unseen; they are"
        " checked again, and nothing is removed because of that.",
        *(last.isoformat(timespec="seconds"), now.isoformat(timespec="seconds"), marked),
    )
    return True


def others_run(connection: sa.Connection, owner: str) -> bool:
    """Return whether another conductor runs, by its last sign."""
    now, gap = clock.utcnow(), datetime.timedelta(seconds=GAP_SECONDS)
    query = sa.select(leases.c.name).where(
        _SIGNS,
        leases.c.name != _row(owner),
        leases.c.owner != ENDED,
        leases.c.expires_at.between(now - gap, now + gap),
    )
    return connection.execute(query.limit(1)).first() is not None


def end(connection: sa.Connection, owner: str) -> None:
    """Store that ``owner`` has stopped in order: it has read all that was delivered to it."""
    connection.execute(leases.update().where(leases.c.name == _row(owner)).values(owner=ENDED))


def mark_held(connection: sa.Connection, operation_id: int) -> None:
    """Mark an operation as overslept, if its deadline passed since a conductor fell silent which
    may have its outcome, unread."""
    now = clock.utcnow()
    since = _silent(connection, now)
    if since is not None:
        _mark(connection, since, now, operations.c.id == operation_id)


def _silent(
    connection: sa.Connection, now: datetime.datetime, *which: sa.ColumnElement[bool]
) -> datetime.datetime | None:
    """Return the oldest last sign of the conductors that are silent, and which the bus may still
    wait for; None: there is none."""
    since: datetime.datetime | None = connection.scalar(
        sa.select(sa.func.min(leases.c.expires_at)).where(
            _SIGNS,
            leases.c.owner != ENDED,
            leases.c.expires_at < now - datetime.timedelta(seconds=GAP_SECONDS),
            leases.c.expires_at > now - datetime.timedelta(seconds=HELD_SECONDS),
            *which,
        )
    )
    return since


def _say_held(owner: str, since: datetime.datetime, now: datetime.datetime, marked: int) -> None:
    LOG.warning(
        "Conductor %s stood still from %s to %s: %d operations passed their deadlines then; "
        "they are checked again, as their outcomes may not have been read.",
        *(owner, since.isoformat(timespec="seconds"), now.isoformat(timespec="seconds"), marked),
    )


def _row(owner: str) -> str:
    """Return the name of a conductor's row: 64 characters, of a long name its digest."""
    short = owner if len(owner) <= _LONGEST else hashlib.sha256(owner.encode()).hexdigest()
    return f"{SIGN}{short[:_LONGEST]}"


def awake_since(connection: sa.Connection) -> datetime.datetime | None:
    """Return the end of the last gap; None: there was none.

    What is removed after a time of waiting waits for all of it from then on.
    """
    ended: datetime.datetime | None = connection.scalar(
        sa.select(leases.c.expires_at).where(leases.c.name == AWAKE)
    )
    return ended


def _store(
    connection: sa.Connection, name: str, owner: str, at: datetime.datetime, *, known: bool
) -> None:
    values = {"owner": owner, "expires_at": at}
    if known:
        connection.execute(leases.update().where(leases.c.name == name).values(values))
    else:
        connection.execute(leases.insert().values(name=name, **values))


def _mark(
    connection: sa.Connection,
    last: datetime.datetime,
    now: datetime.datetime,
    *which: sa.ColumnElement[bool],
) -> int:
    """Mark open operations whose deadline passed in the gap, or will before they can be carried
    out; return how many. Unwinding was decided while a conductor ran."""
    columns = operations.c
    until = now + datetime.timedelta(seconds=LOOK_SECONDS)
    marked = connection.execute(
        operations.update()
        .where(
            columns.state.in_((OperationState.QUEUED, OperationState.RUNNING)),
            columns.deadline > last,
            columns.deadline <= now + datetime.timedelta(seconds=GAP_SECONDS),
            *which,
        )
        .values(overslept=True, deadline=until, not_before=None, updated_at=now)
    )
    return marked.rowcount
