"""The details of operations, and their deletion after some time.

Events, decisions, transitions and faults grow with every operation. Rows of operations, of servers
and of the journal of VMIDs stay: they prove who owns a VM.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import sqlalchemy as sa

from common import clock
from common.resources.states import OPEN_STATES
from db.schema import decisions, faults, operation_events, operations, servers, transitions

#: each has an index that begins with ``operation_id``
_TABLES = (decisions, operation_events, transitions, faults)


def delete_old(
    connection: sa.Connection,
    before: datetime.datetime | None,
    newest: int | None,
    batch: int,
) -> int:
    """Delete the details of operations that ended ``before``, and of all but the ``newest``.

    None: no such bound. Of at most ``batch`` operations per table; returns of how many. They are
    marked. Open operations keep everything, and servers their last fault, which they show.
    """
    crowded = _crowded_out(connection, newest) if newest else 0
    old = _last_started(connection, before) if before else 0
    if not max(crowded, old):
        return 0
    ended = operations.c.state.not_in(OPEN_STATES)
    bounds = [operations.c.id <= crowded]
    if before is not None:
        bounds.append(operations.c.finished_at < before)
    forgotten: set[int] = set()
    most = 0
    for table in _TABLES:
        key = table.c.operation_id
        of_those = (
            sa.select(key)
            .distinct()
            .join(operations, operations.c.id == key)
            .where(key <= max(crowded, old), ended, sa.or_(*bounds), *_spared(table))
            .order_by(key)
            .limit(batch)
        )
        ids: Sequence[int] = connection.execute(of_those).scalars().all()
        if ids:
            connection.execute(table.delete().where(key.in_(ids), *_spared(table)))
        forgotten.update(ids)
        most = max(most, len(ids))
    if forgotten:
        mine = operations.c.id.in_(sorted(forgotten)) & operations.c.forgotten_at.is_(None)
        connection.execute(operations.update().where(mine).values(forgotten_at=clock.utcnow()))
    return most


def _spared(table: sa.Table) -> list[sa.ColumnElement[bool]]:
    """Return the condition of a table's rows that may be deleted."""
    if table is not faults:
        return []
    later = faults.alias("later_faults")
    is_last = ~sa.exists().where(
        later.c.server_uuid == faults.c.server_uuid, later.c.id > faults.c.id
    )
    there = sa.exists().where(
        servers.c.uuid == faults.c.server_uuid, servers.c.deleted_at.is_(None)
    )
    return [~(is_last & there)]


def _crowded_out(connection: sa.Connection, newest: int) -> int:
    """Return the last operation beyond the newest: by id, so with gaps fewer remain."""
    last = connection.execute(sa.select(sa.func.max(operations.c.id))).scalar()
    return max(0, (last or 0) - newest)


def _last_started(connection: sa.Connection, before: datetime.datetime) -> int:
    """Return the last operation started before, by bisection: ids grow with time."""
    low, high = connection.execute(
        sa.select(sa.func.min(operations.c.id), sa.func.max(operations.c.id))
    ).one()
    found = 0
    while low is not None and low <= high:
        middle = (low + high) // 2
        number, started = connection.execute(
            sa.select(operations.c.id, operations.c.started_at)
            .where(operations.c.id >= middle)
            .order_by(operations.c.id)
            .limit(1)
        ).one()
        if started < before:
            found, low = number, number + 1
        else:
            high = middle - 1
    return int(found)
