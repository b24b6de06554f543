"""Backups of volumes."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from db.reads import keyset
from db.reads.keyset import Page, Sort
from db.reads.properties import having
from db.schema import volume_backups

_C = volume_backups.c


@dataclass(frozen=True)
class Backup:
    """One backup; its size in GiB."""

    id: str
    volume_id: str
    project_id: str
    user_id: str
    name: str
    description: str | None
    status: str
    size_gib: int
    meta: Mapping[str, str]
    container: str | None
    availability_zone: str | None
    snapshot_id: str | None
    storage: str | None
    fail_reason: str | None
    data_timestamp: datetime.datetime
    created_at: datetime.datetime
    updated_at: datetime.datetime | None


@dataclass(frozen=True)
class Filter:
    """What a list shows; None: everything."""

    project_id: str | None = None
    """Whose; None: all projects'."""
    equal: Mapping[str, Any] = field(default_factory=dict)
    """Column → value."""
    name_part: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    nothing: bool = False
    """Whether it is asked for what there is none of."""


#: what a list may be sorted by → its column, which is never null
SORTABLE: Mapping[str, sa.ColumnElement[Any]] = {
    "id": _C.id,
    "name": _C.name,
    "display_name": _C.name,
    "status": _C.status,
    "size": _C.size_gib,
    "volume_size": _C.size_gib,
    "volume_id": _C.volume_id,
    "created_at": _C.created_at,
    "updated_at": sa.func.coalesce(_C.updated_at, _C.created_at),
}
_COLUMNS = [_C[name] for name in Backup.__dataclass_fields__]


def listing(
    connection: sa.Connection,
    wanted: Filter,
    order: Sequence[tuple[str, bool]] = (),
    page: Page | None = None,
    offset: int = 0,
) -> list[Backup]:
    """Return backups; two queries at the most. ``order``: (name in SORTABLE, descending).

    Raises MarkerNotFound.
    """
    sorts = [Sort(SORTABLE[name], descending) for name, descending in order]
    sorts = sorts or [Sort(_C.created_at, descending=True)]
    if not any(name == "id" for name, _ in order):
        sorts.append(Sort(_C.id, descending=True))
    query = sa.select(*_COLUMNS).where(*_conditions(wanted))
    if offset:
        query = query.offset(offset)
    visible = _visible(wanted.project_id)
    rows = keyset.read(connection, query, sorts, page or Page(), _C.id, visible=visible)
    return [_backup(row) for row in rows]


def count(connection: sa.Connection, wanted: Filter) -> int:
    """Return how many backups there are."""
    query = sa.select(sa.func.count()).where(*_conditions(wanted), *_visible(wanted.project_id))
    return int(connection.execute(query).scalar_one())


def get(connection: sa.Connection, backup_id: str, project_id: str | None) -> Backup | None:
    """Return a backup; ``project_id``: whose it must be, None: anybody's."""
    query = sa.select(*_COLUMNS).where(_C.id == backup_id, *_visible(project_id))
    row = connection.execute(query).first()
    return None if row is None else _backup(row)


def _visible(project_id: str | None) -> list[sa.ColumnElement[bool]]:
    return [] if project_id is None else [_C.project_id == project_id]


def _conditions(wanted: Filter) -> list[sa.ColumnElement[bool]]:
    found = [_C[name] == value for name, value in wanted.equal.items()]
    if wanted.name_part is not None:
        found.append(_C.name.contains(wanted.name_part, autoescape=True))
    found += having(_C.meta, wanted.metadata)
    if wanted.nothing:
        found.append(sa.false())
    return found


def _backup(row: sa.Row[Any]) -> Backup:
    return Backup(*tuple(row))
