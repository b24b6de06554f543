"""The one function that moves a server to its next state.

A transition is one UPDATE that names the old state and the operation that may change it, plus a
history row, in the caller's transaction. A stale writer gets an error.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import StaleTransition
from common.states import ACTIONS, TaskState, VmState
from conductor.store.servers import Server
from db.schema import servers, transitions

# Built once; the columns that it sets are parameters.
_MOVE = servers.update().where(
    servers.c.id == sa.bindparam("of"),
    servers.c.vm_state == sa.bindparam("from_vm_state"),
    servers.c.task_state.is_not_distinct_from(sa.bindparam("from_task_state")),
    servers.c.deleted_at.is_(None),
    servers.c.operation_id.is_not_distinct_from(sa.bindparam("from_operation_id")),
)


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
    now = clock.utcnow()
    if not takes_over and server.operation_id != operation_id:
        raise StaleTransition(server_uuid=server.uuid, operation_id=operation_id)
    values |= {"vm_state": vm_state, "task_state": task_state, "operation_id": operation_id}
    read = {
        "of": server.id,
        "from_vm_state": server.vm_state,
        "from_task_state": server.task_state,
        "from_operation_id": server.operation_id,
    }
    result = connection.execute(_MOVE, {**read, "updated_at": now, **values})
    if result.rowcount != 1:
        raise StaleTransition(server_uuid=server.uuid, operation_id=operation_id)
    connection.execute(
        transitions.insert(),
        {
            "server_uuid": server.uuid,
            "operation_id": operation_id,
            "from_vm_state": server.vm_state,
            "from_task_state": server.task_state,
            "to_vm_state": vm_state,
            "to_task_state": task_state,
            "at": now,
        },
    )
    return server.replace(**values)


def next_task(action: str, task_state: str | None) -> TaskState | None:
    """Return the task_state that follows in the action's walk; None after the last."""
    walk = ACTIONS[action].walk
    if task_state is None:
        return walk[0]
    position = walk.index(TaskState(task_state)) + 1
    return walk[position] if position < len(walk) else None
