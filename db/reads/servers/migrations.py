"""Moves and resizes of servers."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy as sa

from common.resources.migrations import IN_PROGRESS, MigrationType
from db import schema
from db.reads.keyset import MarkerNotFound
from db.records import columns
from db.types import ShownTime, UtcDateTime

_T = schema.migrations.c


class Migration(NamedTuple):
    """One move or resize, as far as it is shown. A tuple, as one answer has thousands."""

    id: int
    uuid: str
    server_uuid: str
    project_id: str
    user_id: str
    type: str
    status: str
    source_host: str | None
    source_node: str | None
    dest_host: str | None
    dest_node: str | None
    dest_address: str | None
    old_flavor_number: int | None
    new_flavor_number: int | None
    created_at: str
    """As answers show it."""
    updated_at: str | None


@dataclass(slots=True)
class Progress:
    """Progress of a live migration's copies, in bytes."""

    memory_total: int | None
    memory_processed: int | None
    memory_remaining: int | None
    disk_total: int | None
    disk_processed: int | None
    disk_remaining: int | None


@dataclass(frozen=True)
class Filters:
    """Which migrations are listed; None: any."""

    project_id: str | None = None
    user_id: str | None = None
    host: str | None = None
    """Source or destination."""
    source_host: str | None = None
    server_uuid: str | None = None
    type: str | None = None
    statuses: tuple[str, ...] = field(default=())
    changed_since: datetime.datetime | None = None
    changed_before: datetime.datetime | None = None


_COLUMNS = [
    sa.type_coerce(column, ShownTime) if isinstance(column.type, UtcDateTime) else column
    for column in (_T[name] for name in Migration._fields)
]
_PROGRESS = columns(schema.migrations, Progress)


def list_migrations(connection: sa.Connection, filters: Filters) -> list[Migration]:
    """Return all that fit, the oldest first; hidden ones are never shown. One query."""
    statement = sa.select(*_COLUMNS).where(*_conditions(filters)).order_by(_T.id)
    return list(map(Migration._make, connection.execute(statement)))


def page(
    connection: sa.Connection, filters: Filters, limit: int, marker: str | None
) -> list[Migration]:
    """Return a page, the newest first. One query, and one more where nothing is left.

    ``marker`` is the UUID of a migration of the project that is listed. Raises MarkerNotFound.
    """
    if limit == 0:
        return []
    statement = sa.select(*_COLUMNS).where(*_conditions(filters))
    if marker is not None:
        marked = sa.select(_T.id).where(*_visible(filters), _T.uuid == marker)
        statement = statement.where(_T.id < marked.scalar_subquery())
    rows = connection.execute(statement.order_by(_T.id.desc()).limit(limit)).all()
    if not rows and marker is not None and connection.execute(marked).first() is None:
        raise MarkerNotFound
    return list(map(Migration._make, rows))


def in_progress(connection: sa.Connection, server_uuid: str) -> list[tuple[Migration, Progress]]:
    """Return a server's live migrations in progress."""
    statement = sa.select(*_COLUMNS, *_PROGRESS).where(
        _T.server_uuid == server_uuid,
        _T.type == MigrationType.LIVE,
        _T.status.in_(sorted(IN_PROGRESS)),
    )
    return [_with_progress(row) for row in connection.execute(statement.order_by(_T.id))]


def find(
    connection: sa.Connection, server_uuid: str, number: int
) -> tuple[Migration, Progress] | None:
    """Return a server's migration by its number, of any kind and status."""
    statement = sa.select(*_COLUMNS, *_PROGRESS).where(
        _T.server_uuid == server_uuid, _T.id == number
    )
    row = connection.execute(statement).first()
    return None if row is None else _with_progress(row)


def _with_progress(row: sa.Row[Any]) -> tuple[Migration, Progress]:
    count = len(_COLUMNS)
    return Migration(*row[:count]), Progress(*row[count:])


def _visible(filters: Filters) -> Iterator[sa.ColumnElement[bool]]:
    """Yield the conditions that a marker must fulfil too: its place would reveal it."""
    yield _T.hidden.is_(False)
    if filters.project_id is not None:
        yield _T.project_id == filters.project_id


def _conditions(filters: Filters) -> Iterator[sa.ColumnElement[bool]]:
    yield from _visible(filters)
    if filters.user_id is not None:
        yield _T.user_id == filters.user_id
    if filters.host is not None:
        yield (_T.source_host == filters.host) | (_T.dest_host == filters.host)
    elif filters.source_host is not None:
        yield _T.source_host == filters.source_host
    if filters.server_uuid is not None:
        yield _T.server_uuid == filters.server_uuid
    if filters.type is not None:
        yield _T.type == filters.type
    if filters.statuses:
        yield _T.status.in_(filters.statuses)
    if filters.changed_since is not None:
        yield _T.updated_at >= filters.changed_since
    if filters.changed_before is not None:
        yield _T.updated_at <= filters.changed_before
