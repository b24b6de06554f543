"""Rows of moves and resizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common import clock, ids
from common.errors import StaleTransition
from common.messages.reports import Report
from common.resources.migrations import MigrationStatus, MigrationType
from conductor.store.records import Operation, Server
from db.schema import flavors, migrations

_C = migrations.c
_NUMBER = sa.select(flavors.c.id).where(flavors.c.flavorid == sa.bindparam("flavorid"))
#: a server has at most one of these
OPEN = frozenset(
    {
        MigrationStatus.ACCEPTED,
        MigrationStatus.QUEUED,
        MigrationStatus.PREPARING,
        MigrationStatus.RUNNING,
        MigrationStatus.PRE_MIGRATING,
        MigrationStatus.MIGRATING,
        MigrationStatus.POST_MIGRATING,
        MigrationStatus.FINISHED,
        MigrationStatus.CONFIRMING,
        MigrationStatus.REVERTING,
    }
)
#: of moves whose server is on the target: there it holds what it takes, and the migration holds
#: the source for a reversion
SETTLED = frozenset(
    {MigrationStatus.FINISHED, MigrationStatus.CONFIRMING, MigrationStatus.REVERTING}
)

# Built once; the columns that it sets are parameters.
_UPDATE = migrations.update().where(_C.id == sa.bindparam("of"), _C.status.in_(sorted(OPEN)))
_OPEN_OF = sa.and_(_C.server_uuid == sa.bindparam("server"), _C.status.in_(sorted(OPEN)))
_FIND_OPEN = sa.select(_C.uuid, _C.source_host, _C.dest_host).where(_OPEN_OF)
_CLAIM = sa.select(_C.claim).where(_OPEN_OF).order_by(_C.id.desc()).limit(1)
_FINISHED = (
    sa.select(
        *(_C.id, _C.old_flavor, _C.new_flavor, _C.old_vm_state),
        *(_C.uuid, _C.source_host, _C.dest_host),
    )
    .where(_C.server_uuid == sa.bindparam("server"), _C.status == MigrationStatus.FINISHED)
    .order_by(_C.id.desc())
    .limit(1)
)

#: the step in which an agent copies
LIVE_STEP = "compute_live_migration"


@dataclass(frozen=True)
class Resize:
    """A resize that waits to be confirmed or reverted."""

    id: int
    old_flavor: Mapping[str, Any]
    new_flavor: Mapping[str, Any]
    old_vm_state: str
    uuid: str
    source_host: str
    dest_host: str

    @property
    def moved(self) -> bool:
        """Return whether the server changed its host."""
        return self.source_host != self.dest_host


@dataclass(frozen=True)
class New:
    """The row of a migration that begins."""

    id: int
    uuid: str


@dataclass(frozen=True)
class Holder:
    """A migration whose UUID may hold resources of a host, and a place in a server group."""

    uuid: str
    server_uuid: str
    open: bool
    host: str | None
    """What it holds is on this one."""
    flavor: Mapping[str, Any]
    """Its size."""


def insert(
    connection: sa.Connection,
    user_id: str,
    server: Server,
    new: Mapping[str, Any],
    *,
    kind: MigrationType,
    status: MigrationStatus = MigrationStatus.PRE_MIGRATING,
    dest_host: str | None = None,
    dest_node: str | None = None,
    claim: Mapping[str, int] | None = None,
) -> New:
    """Write a new migration.

    ``new``: the server's flavor after it; ``claim``: what the server holds of its host during it,
    None: what its size says.
    """
    uuid = ids.new_uuid()
    old, same = _number(connection, server.flavor), new.get("id") == server.flavor.get("id")
    result = connection.execute(
        migrations.insert(),
        {
            "uuid": uuid,
            "server_uuid": server.uuid,
            "project_id": server.project_id,
            "user_id": user_id,
            "type": kind,
            "status": status,
            "source_host": server.host,
            "source_node": server.node,
            "dest_host": dest_host,
            "dest_node": dest_node,
            "old_flavor_number": old,
            "new_flavor_number": old if same else _number(connection, new),
            "old_flavor": dict(server.flavor),
            "new_flavor": dict(new),
            "old_vm_state": server.vm_state,
            "claim": None if claim is None else dict(claim),
            "created_at": clock.utcnow(),
        },
    )
    (number,) = result.inserted_primary_key or (0,)
    return New(int(number), uuid)


def finished(connection: sa.Connection, server_uuid: str) -> Resize | None:
    """Return the server's resize that waits to be confirmed or reverted."""
    row = connection.execute(_FINISHED, {"server": server_uuid}).first()
    return None if row is None else Resize(*row)


def set_status(
    connection: sa.Connection,
    number: int,
    status: MigrationStatus,
    operation: Operation,
    **values: Any,
) -> None:
    """Store how far it is, and which operation works on it; ``values`` are further columns.

    Raises StaleTransition if it is ended: what has overtaken its operation has ended it.
    """
    now = {"status": status, "operation_id": operation.id, "updated_at": clock.utcnow()}
    if connection.execute(_UPDATE, {"of": number, **now, **values}).rowcount != 1:
        raise StaleTransition(f"Migration {number} is ended.")


@dataclass(frozen=True)
class Live:
    """A live migration, as far as its end is concerned."""

    status: str
    operation_id: int


def live(connection: sa.Connection, server_uuid: str, number: int) -> Live | None:
    """Return a server's live migration by its number."""
    row = connection.execute(
        sa.select(_C.status, _C.operation_id).where(
            _C.id == number, _C.server_uuid == server_uuid, _C.type == MigrationType.LIVE
        )
    ).first()
    return None if row is None else Live(*row)


def record_progress(connection: sa.Connection, reports: Sequence[Report]) -> None:
    """Store how much of the live migrations is copied, where agents report it; else no query."""
    for report in reports:
        for step in report.steps:
            progress = step.detail.get("progress") if step.name == LIVE_STEP else None
            if isinstance(progress, Mapping):
                connection.execute(
                    migrations.update()
                    .where(_C.operation_id == report.operation_id, _C.type == MigrationType.LIVE)
                    .values(**_bytes(progress), updated_at=clock.utcnow())
                )


def _bytes(progress: Mapping[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for what in ("memory", "disk"):
        done = int(progress.get(f"{what}_bytes", 0))
        total = int(progress.get(f"{what}_total_bytes", 0))
        found |= {
            f"{what}_total": total,
            f"{what}_processed": done,
            f"{what}_remaining": max(0, total - done),
        }
    return found


def open_holders(connection: sa.Connection) -> list[Holder]:
    """Return the open migrations to another host."""
    return _holders(connection, _C.status.in_(sorted(OPEN)) & (_C.dest_host != _C.source_host))


def holders(connection: sa.Connection, uuids: Sequence[str]) -> list[Holder]:
    """Return those of these UUIDs that are migrations, ended ones included."""
    return _holders(connection, _C.uuid.in_(uuids)) if uuids else []


def _holders(connection: sa.Connection, which: sa.ColumnElement[bool]) -> list[Holder]:
    query = sa.select(
        *(_C.uuid, _C.server_uuid, _C.status, _C.source_host, _C.dest_host),
        *(_C.old_flavor, _C.new_flavor),
    ).where(which)
    found = []
    for row in connection.execute(query):
        settled = row.status in SETTLED
        host, flavor = (
            (row.source_host, row.old_flavor) if settled else (row.dest_host, row.new_flavor)
        )
        found.append(Holder(row.uuid, row.server_uuid, row.status in OPEN, host, flavor or {}))
    return found


def end_open(connection: sa.Connection, server_uuid: str) -> tuple[str, ...]:
    """End what is open of a server that is deleted or reset: a finished resize is confirmed.

    Return the UUIDs of those that may hold something on another host.
    """
    found = connection.execute(_FIND_OPEN, {"server": server_uuid}).all()
    if not found:
        return ()
    confirmed = sa.case(
        (_C.status == MigrationStatus.FINISHED, MigrationStatus.CONFIRMED),
        else_=MigrationStatus.ERROR,
    )
    mine = (_C.server_uuid == server_uuid) & _C.status.in_(sorted(OPEN))
    connection.execute(
        migrations.update().where(mine).values(status=confirmed, updated_at=clock.utcnow())
    )
    return tuple(row.uuid for row in found if row.dest_host != row.source_host)


def claims(connection: sa.Connection) -> dict[str, Mapping[str, int]]:
    """Return {server: what it holds in placement} while a resize of it is open."""
    rows = connection.execute(
        sa.select(_C.server_uuid, _C.claim).where(_C.status.in_(sorted(OPEN))).order_by(_C.id)
    )
    return {row.server_uuid: row.claim for row in rows if row.claim}


def claim_of(connection: sa.Connection, server_uuid: str) -> Mapping[str, int] | None:
    """Return what a server holds in placement while a resize of it is open; None: as usual."""
    row = connection.execute(_CLAIM, {"server": server_uuid}).first()
    return None if row is None else row.claim


def _number(connection: sa.Connection, flavor: Mapping[str, Any]) -> int | None:
    """Return the number of a flavor; None if it has been deleted."""
    return connection.execute(_NUMBER, {"flavorid": str(flavor.get("id"))}).scalar()
