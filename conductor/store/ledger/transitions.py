"""The one function that moves a server to its next state.

A transition is one UPDATE that names the old state and the operation that may change it, plus a
history row, in the caller's transaction. A stale writer gets an error.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import StaleTransition
from common.resources.states import ACTIONS, TaskState, VmState
from conductor.store import change_events
from conductor.store.change_events import Moved
from conductor.store.ledger import group_news
from conductor.store.records import Operation, Server
from db.schema import servers, transitions

# Built once; the columns that it sets are parameters.
_MOVE = servers.update().where(
    servers.c.id == sa.bindparam("of"),
    servers.c.vm_state == sa.bindparam("from_vm_state"),
    servers.c.task_state.is_not_distinct_from(sa.bindparam("from_task_state")),
    servers.c.deleted_at.is_(None),
    servers.c.operation_id.is_not_distinct_from(sa.bindparam("from_operation_id")),
)
_MOVED = transitions.insert()


@dataclass(frozen=True)
class Move:
    """A server's move by the operation that the record names; see ``move``."""

    server: Server
    operation_id: int
    vm_state: VmState
    task_state: TaskState | None
    values: Mapping[str, Any]
    """Further columns."""
    takes_over: bool = False
    """Whether the operation begins: the record may name another one."""


def move(
    connection: sa.Connection,
    server: Server,
    *,
    operation_id: int,
    vm_state: VmState,
    task_state: TaskState | None,
    takes_over: bool = False,
    **values: Any,
) -> Server:
    """Move a server from the state in ``server`` to another one.

    ``operation_id`` must be the record's, unless it ``takes_over`` (begins). Further columns may
    be set with it. Return the server's new record. Raises StaleTransition when the record has
    changed since it was read.
    """
    if not takes_over and server.operation_id != operation_id:
        raise StaleTransition(server_uuid=server.uuid, operation_id=operation_id)
    made = Move(server, operation_id, vm_state, task_state, values)
    now = clock.utcnow()
    result = connection.execute(_MOVE, _update(made, now))
    if result.rowcount != 1:
        raise StaleTransition(server_uuid=server.uuid, operation_id=operation_id)
    connection.execute(_MOVED, _history(made, now))
    change_events.note(connection, [_notice(made)])
    _notify_groups(connection, [made])
    return server.replace(**_columns(made))


@dataclass(frozen=True)
class Walk:
    """A server's moves through several states, one after the other."""

    server: Server
    operation_id: int
    states: Sequence[tuple[VmState, TaskState | None]]
    values: Mapping[str, Any]
    """Further columns."""


def move_through(connection: sa.Connection, walks: Sequence[Walk]) -> None:
    """Move each server through several states at once: one update to the last, a history of all.

    A statement for all servers that get values of the same columns, and one for the history.
    Raises StaleTransition when one of them is no longer as it was read; the transaction must be
    given up then.
    """
    now, alike = clock.utcnow(), collections.defaultdict(list)
    history = []
    # In one order, so that two conductors don't wait for each other.
    for walk in sorted(walks, key=lambda one: one.server.id):
        server, operation_id = walk.server, walk.operation_id
        if server.operation_id != operation_id:
            raise StaleTransition(server_uuid=server.uuid, operation_id=operation_id)
        last = Move(server, operation_id, *walk.states[-1], walk.values)
        alike[frozenset(walk.values)].append(_update(last, now))
        for vm_state, task_state in walk.states:
            made = Move(server, operation_id, vm_state, task_state, {})
            history.append(_history(made, now))
            notice = _notice(dataclasses.replace(made, values=walk.values))
            change_events.note(connection, [notice])
            server = server.replace(vm_state=vm_state, task_state=task_state)
    for rows in alike.values():
        if connection.execute(_MOVE, rows).rowcount != len(rows):
            raise StaleTransition(servers=[row["of"] for row in rows])
    connection.execute(_MOVED, history)
    _notify_groups(
        connection,
        [Move(one.server, one.operation_id, *one.states[-1], one.values) for one in walks],
    )


def record_begun(
    connection: sa.Connection,
    begun: Sequence[Operation],
    vm_state: VmState,
    task_state: TaskState,
) -> None:
    """Store the first move of servers that are inserted in these states: one statement."""
    now = clock.utcnow()
    rows = [
        {
            "server_uuid": operation.server_uuid,
            "operation_id": operation.id,
            "from_vm_state": vm_state,
            "from_task_state": None,
            "to_vm_state": vm_state,
            "to_task_state": task_state,
            "at": now,
        }
        for operation in begun
    ]
    connection.execute(_MOVED, rows)


def move_all(connection: sa.Connection, moves: Sequence[Move]) -> list[Server]:
    """Move several servers, which all get values of the same columns: two statements.

    Return what each is now, in the order of ``moves``. Raises StaleTransition when one of them is
    no longer as it was read; the transaction must be given up then.
    """
    now = clock.utcnow()
    # In one order, so that two conductors don't wait for each other.
    ordered = sorted(moves, key=lambda one: one.server.id)
    for one in ordered:
        if not one.takes_over and one.server.operation_id != one.operation_id:
            raise StaleTransition(server_uuid=one.server.uuid, operation_id=one.operation_id)
    result = connection.execute(_MOVE, [_update(one, now) for one in ordered])
    if result.rowcount != len(ordered):
        raise StaleTransition(servers=len(ordered), moved=result.rowcount)
    connection.execute(_MOVED, [_history(one, now) for one in ordered])
    change_events.note(connection, [_notice(one) for one in ordered])
    _notify_groups(connection, ordered)
    return [one.server.replace(**_columns(one)) for one in moves]


#: at rest; and a deletion that has begun, as that of a server on a lost host does not end
_NOTED = (None, TaskState.DELETING)


def _notify_groups(connection: sa.Connection, moves: Sequence[Move]) -> None:
    """Have groups look at members of theirs that come to rest, or are something else now."""
    group_news.note(
        connection,
        [
            one.server
            for one in moves
            if one.task_state in _NOTED or one.vm_state != one.server.vm_state
        ],
    )


def _columns(made: Move) -> dict[str, Any]:
    return {
        **made.values,
        "vm_state": made.vm_state,
        "task_state": made.task_state,
        "operation_id": made.operation_id,
    }


def _notice(made: Move) -> Moved:
    return Moved(made.server, made.operation_id, _columns(made))


def _update(made: Move, now: datetime.datetime) -> dict[str, Any]:
    """Return the parameters of the UPDATE, which name what the server was read as."""
    server = made.server
    read = {
        "of": server.id,
        "from_vm_state": server.vm_state,
        "from_task_state": server.task_state,
        "from_operation_id": server.operation_id,
    }
    return {**read, "updated_at": now, **_columns(made)}


def _history(made: Move, now: datetime.datetime) -> dict[str, Any]:
    server = made.server
    return {
        "server_uuid": server.uuid,
        "operation_id": made.operation_id,
        "from_vm_state": server.vm_state,
        "from_task_state": server.task_state,
        "to_vm_state": made.vm_state,
        "to_task_state": made.task_state,
        "at": now,
    }


def next_task(action: str, task_state: str | None) -> TaskState | None:
    """Return the task_state that follows in the action's walk; None after the last."""
    walk = ACTIONS[action].walk
    if task_state is None:
        return walk[0]
    position = walk.index(TaskState(task_state)) + 1
    return walk[position] if position < len(walk) else None
