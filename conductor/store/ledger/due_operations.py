"""Operations that wait for their next attempt, and what makes them due early.

Held ones are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from common import clock
from common.resources.states import OPEN_STATES, ResourceType, VmState
from db.resources import ITS_SERVER, about
from db.schema import operations, servers

#: operations that one message may make due; the others wait to the end
MOST = 1000


def due_now(connection: sa.Connection, ids: Sequence[int], seconds: float) -> None:
    """Make these due now, with at least so much time left.

    Operations in progress are left alone.
    """
    mine = operations.c.id.in_(ids) & operations.c.state.in_(OPEN_STATES)
    late = operations.c.deadline < clock.after(seconds)
    connection.execute(operations.update().where(mine, late).values(deadline=clock.after(seconds)))
    connection.execute(operations.update().where(mine).values(not_before=None))


def of_server(connection: sa.Connection, server_uuid: str) -> list[int]:
    """Return the ids of a server's operations that wait for their time."""
    query = sa.select(operations.c.id).where(about(ResourceType.SERVER, server_uuid), _waiting())
    return list(connection.execute(query.order_by(operations.c.id)).scalars())


def hasten(
    connection: sa.Connection, cluster: str, vmids: Sequence[int], nodes: Sequence[str]
) -> int:
    """Make operations due that waited for these VMs' locks or nodes; return how many.

    Builds that wait for any host count as well.
    """
    columns = servers.c
    there = (columns.cluster == cluster) & (
        columns.vmid.in_(list(vmids)) | columns.node.in_(list(nodes))
    )
    if nodes:
        there |= columns.cluster.is_(None) & (columns.vm_state == VmState.BUILDING)
    found = sa.select(operations.c.id).select_from(operations.join(servers, ITS_SERVER))
    ids = list(
        connection.execute(found.where(_waiting(), there, ~columns.held).limit(MOST)).scalars()
    )
    if ids:
        due = operations.update().where(operations.c.id.in_(ids), _waiting())
        connection.execute(due.values(not_before=None))
    return len(ids)


def _waiting() -> sa.ColumnElement[bool]:
    columns = operations.c
    return (
        columns.state.in_(OPEN_STATES)
        & columns.lease_owner.is_(None)
        & (columns.not_before > clock.utcnow())
    )
