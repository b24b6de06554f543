"""Rows of moves and resizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common import clock, ids
from common.migrations import MigrationStatus, MigrationType
from conductor.store.operations import Operation
from conductor.store.servers import Server
from db.schema import flavors, migrations

_C = migrations.c
#: a server has at most one of these
OPEN = frozenset(
    {
        MigrationStatus.PRE_MIGRATING,
        MigrationStatus.MIGRATING,
        MigrationStatus.FINISHED,
        MigrationStatus.CONFIRMING,
        MigrationStatus.REVERTING,
    }
)


@dataclass(frozen=True)
class Resize:
    """A resize that waits to be confirmed or reverted."""

    id: int
    old_flavor: Mapping[str, Any]
    new_flavor: Mapping[str, Any]
    old_vm_state: str


def insert_resize(
    connection: sa.Connection,
    user_id: str,
    server: Server,
    new: Mapping[str, Any],
    claim: Mapping[str, int],
) -> int:
    """Write a resize on the server's own host; ``claim`` is what it holds of that meanwhile."""
    result = connection.execute(
        migrations.insert(),
        {
            "uuid": ids.new_uuid(),
            "server_uuid": server.uuid,
            "project_id": server.project_id,
            "user_id": user_id,
            "type": MigrationType.RESIZE,
            "status": MigrationStatus.PRE_MIGRATING,
            "source_host": server.host,
            "source_node": server.node,
            "dest_host": server.host,
            "dest_node": server.node,
            "old_flavor_number": _number(connection, server.flavor),
            "new_flavor_number": _number(connection, new),
            "old_flavor": dict(server.flavor),
            "new_flavor": dict(new),
            "old_vm_state": server.vm_state,
            "claim": dict(claim),
            "created_at": clock.utcnow(),
        },
    )
    (number,) = result.inserted_primary_key or (0,)
    return int(number)


def finished(connection: sa.Connection, server_uuid: str) -> Resize | None:
    """Return the server's resize that waits to be confirmed or reverted."""
    row = connection.execute(
        sa.select(_C.id, _C.old_flavor, _C.new_flavor, _C.old_vm_state)
        .where(_C.server_uuid == server_uuid, _C.status == MigrationStatus.FINISHED)
        .order_by(_C.id.desc())
        .limit(1)
    ).first()
    return None if row is None else Resize(*row)


def set_status(
    connection: sa.Connection, number: int, status: MigrationStatus, operation: Operation
) -> None:
    """Store how far it is, and which operation works on it."""
    values = {"status": status, "operation_id": operation.id, "updated_at": clock.utcnow()}
    connection.execute(migrations.update().where(_C.id == number).values(values))


def end_open(connection: sa.Connection, server_uuid: str) -> None:
    """End what is open of a server that is deleted or reset: a finished resize is confirmed."""
    confirmed = sa.case(
        (_C.status == MigrationStatus.FINISHED, MigrationStatus.CONFIRMED),
        else_=MigrationStatus.ERROR,
    )
    connection.execute(
        migrations.update()
        .where(_C.server_uuid == server_uuid, _C.status.in_(sorted(OPEN)))
        .values(status=confirmed, updated_at=clock.utcnow())
    )


def claims(connection: sa.Connection) -> dict[str, Mapping[str, int]]:
    """Return {server: what it holds in placement} while a resize of it is open."""
    rows = connection.execute(
        sa.select(_C.server_uuid, _C.claim).where(_C.status.in_(sorted(OPEN))).order_by(_C.id)
    )
    return {row.server_uuid: row.claim for row in rows if row.claim}


def claim_of(connection: sa.Connection, server_uuid: str) -> Mapping[str, int] | None:
    """Return what a server holds in placement while a resize of it is open; None: as usual."""
    row = connection.execute(
        sa.select(_C.claim)
        .where(_C.server_uuid == server_uuid, _C.status.in_(sorted(OPEN)))
        .order_by(_C.id.desc())
        .limit(1)
    ).first()
    return None if row is None else row.claim


def _number(connection: sa.Connection, flavor: Mapping[str, Any]) -> int | None:
    """Return the number of a flavor, unless it was deleted meanwhile."""
    query = sa.select(flavors.c.id).where(flavors.c.flavorid == str(flavor.get("id")))
    return connection.execute(query).scalar()
