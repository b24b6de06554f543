"""The outbox of notifications: what is to be sent, in order, and what is known of it."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common import clock
from db.records import columns
from db.schema import faults, notification_outbox, operations, servers, volume_attachments

_ADD = notification_outbox.insert()
_OPEN = notification_outbox.c.set_aside_at.is_(None)
_WAITING = sa.select(notification_outbox.c.id).where(_OPEN).limit(1)


@dataclass(frozen=True)
class Entry:
    """One notification that is to be sent."""

    id: int
    message_id: str
    event: str
    operation_id: int | None
    server_uuid: str | None
    body: Mapping[str, Any]
    at: datetime.datetime


def add(connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add notifications, in this order: one statement.

    A transaction that comes after another one sees its rows, and has higher ids: so what follows
    from something is sent after it.
    """
    connection.execute(_ADD, rows)


def waits(connection: sa.Connection) -> bool:
    """Return whether anything is to be sent."""
    return connection.execute(_WAITING).first() is not None


def crowded(connection: sa.Connection, most: int) -> bool:
    """Return whether more than so many are to be sent."""
    query = _WAITING.order_by(notification_outbox.c.id).offset(most)
    return connection.execute(query).first() is not None


def first(connection: sa.Connection, limit: int) -> list[Entry]:
    """Return the oldest notifications that are to be sent, in order."""
    query = (
        sa.select(*columns(notification_outbox, Entry))
        .where(_OPEN)
        .order_by(notification_outbox.c.id)
        .limit(limit)
    )
    return [Entry(**row._mapping) for row in connection.execute(query)]


def remove(connection: sa.Connection, ids: Collection[int]) -> None:
    """Remove what was sent."""
    if ids:
        those = notification_outbox.c.id.in_(sorted(ids))
        connection.execute(notification_outbox.delete().where(those))


def set_aside(connection: sa.Connection, reasons: Mapping[int, str]) -> None:
    """Keep what can't be sent, with the reason, out of the others' way."""
    for number, reason in reasons.items():
        connection.execute(
            notification_outbox.update()
            .where(notification_outbox.c.id == number)
            .values(set_aside_at=clock.utcnow(), reason=reason[:255])
        )


@dataclass(frozen=True)
class Bounds:
    """What the outbox holds."""

    pending: int
    """An upper bound: rolled back transactions leave gaps, and rows that are set aside count."""
    oldest: datetime.datetime | None


def bounds(connection: sa.Connection) -> Bounds:
    """Return how much waits, and since when: by the ends of the index."""
    column = notification_outbox.c.id
    query = sa.select(column, notification_outbox.c.at).where(_OPEN).order_by(column).limit(1)
    first_open = connection.execute(query).first()
    if first_open is None:
        return Bounds(0, None)
    highest = connection.execute(sa.select(sa.func.max(column))).scalar_one()
    return Bounds(highest - first_open.id + 1, first_open.at)


def trim(connection: sa.Connection, most: int) -> int:
    """Delete all but the newest, so many at most; return how many of them were still to be sent.

    By id, so with gaps fewer remain.
    """
    column = notification_outbox.c.id
    newest = connection.execute(sa.select(sa.func.max(column))).scalar()
    if newest is None:
        return 0
    old = column <= newest - most
    query = sa.select(sa.func.count()).select_from(notification_outbox).where(old, _OPEN)
    dropped = int(connection.execute(query).scalar_one())
    connection.execute(notification_outbox.delete().where(old))
    return dropped


# --- what the outbox doesn't hold


@dataclass(frozen=True)
class Request:
    """The part of an operation that its notifications need."""

    id: int
    action: str
    request_id: str
    global_request_id: str | None
    user_id: str
    context: Mapping[str, Any]
    plan: Mapping[str, Any]
    message: str | None


@dataclass(frozen=True)
class Fault:
    """The last fault of an operation."""

    operation_id: int
    category: str
    message: str
    host: str | None


#: columns of servers that notifications show
SERVER_COLUMNS = (
    *("id", "uuid", "project_id", "user_id", "name", "hostname", "description"),
    *("vm_state", "task_state", "power_state", "reservation_id", "flavor", "image_id"),
    *("image_properties", "key_name", "public_key", "auto_disk_config", "availability_zone"),
    *("host", "node", "meta", "tags", "addresses", "locked_by", "locked_reason"),
    *("access_ip_v4", "access_ip_v6", "created_at", "updated_at", "launched_at"),
    *("terminated_at", "deleted_at"),
)


def servers_of(connection: sa.Connection, uuids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the servers' columns that notifications show, by UUID: one query."""
    columns = [servers.c[name].label(name) for name in SERVER_COLUMNS]
    query = sa.select(*columns).where(servers.c.uuid.in_(sorted(set(uuids))))
    return {row["uuid"]: dict(row) for row in connection.execute(query).mappings()}


def requests_of(connection: sa.Connection, ids: Iterable[int]) -> dict[int, Request]:
    """Return these operations, by id: one query."""
    query = sa.select(*columns(operations, Request)).where(operations.c.id.in_(sorted(set(ids))))
    return {row.id: Request(**row._mapping) for row in connection.execute(query)}


def faults_of(connection: sa.Connection, ids: Iterable[int]) -> dict[int, Fault]:
    """Return the last fault of each of these operations that has any: one query."""
    query = (
        sa.select(*columns(faults, Fault))
        .where(faults.c.operation_id.in_(sorted(set(ids))))
        .order_by(faults.c.id)
    )
    return {row.operation_id: Fault(**row._mapping) for row in connection.execute(query)}


def volumes_of(
    connection: sa.Connection, uuids: Iterable[str]
) -> dict[str, list[Mapping[str, Any]]]:
    """Return what is attached to each of these servers, by its slot: one query."""
    columns = volume_attachments.c
    query = (
        sa.select(
            *(columns.server_uuid, columns.volume_id, columns.slot),
            *(columns.delete_on_termination, columns.tag),
        )
        .where(columns.server_uuid.in_(sorted(set(uuids))))
        .order_by(columns.server_uuid, columns.slot)
    )
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in connection.execute(query).mappings():
        found.setdefault(row["server_uuid"], []).append(dict(row))
    return found
