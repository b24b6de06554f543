"""Snapshots of volumes."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from db.reads import keyset
from db.reads.keyset import Page, Sort
from db.reads.properties import having
from db.schema import volume_snapshots, volumes

_C = volume_snapshots.c


@dataclass(frozen=True)
class Snapshot:
    """One snapshot; its size in GiB."""

    id: str
    volume_id: str
    project_id: str
    user_id: str
    name: str
    description: str | None
    status: str
    size_gib: int
    meta: Mapping[str, str]
    fault: str | None
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
    availability_zone: str | None = None
    """The volume's."""
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
_COLUMNS = [_C[name] for name in Snapshot.__dataclass_fields__]


def listing(
    connection: sa.Connection,
    wanted: Filter,
    order: Sequence[tuple[str, bool]] = (),
    page: Page | None = None,
    offset: int = 0,
) -> list[Snapshot]:
    """Return snapshots; two queries at the most. ``order``: (name in SORTABLE, descending).

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
    return [_snapshot(row) for row in rows]


def count(connection: sa.Connection, wanted: Filter) -> int:
    """Return how many snapshots there are."""
    query = sa.select(sa.func.count()).where(*_conditions(wanted), *_visible(wanted.project_id))
    return int(connection.execute(query).scalar_one())


def get(connection: sa.Connection, snapshot_id: str, project_id: str | None) -> Snapshot | None:
    """Return a snapshot; ``project_id``: whose it must be, None: anybody's."""
    query = sa.select(*_COLUMNS).where(_C.id == snapshot_id, *_visible(project_id))
    row = connection.execute(query).first()
    return None if row is None else _snapshot(row)


def _visible(project_id: str | None) -> list[sa.ColumnElement[bool]]:
    return [] if project_id is None else [_C.project_id == project_id]


def _conditions(wanted: Filter) -> list[sa.ColumnElement[bool]]:
    found = [_C[name] == value for name, value in wanted.equal.items()]
    if wanted.name_part is not None:
        found.append(_C.name.contains(wanted.name_part, autoescape=True))
    found += having(_C.meta, wanted.metadata)
    if wanted.availability_zone is not None:
        there = volumes.c.availability_zone == wanted.availability_zone
        found.append(_C.volume_id.in_(sa.select(volumes.c.id).where(there)))
    if wanted.nothing:
        found.append(sa.false())
    return found


def _snapshot(row: sa.Row[Any]) -> Snapshot:
    return Snapshot(*tuple(row))
