"""Transfers of volumes to other projects; never their keys."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from db.reads import keyset
from db.reads.keyset import Page, Sort
from db.schema import volume_transfers, volumes

_C = volume_transfers.c


@dataclass(frozen=True)
class Transfer:
    """One transfer."""

    id: str
    volume_id: str
    name: str | None
    no_snapshots: bool
    source_project_id: str
    destination_project_id: str | None
    accepted: bool
    created_at: datetime.datetime
    ended_at: datetime.datetime | None
    """When it was accepted or deleted; clients see it until then."""


@dataclass(frozen=True)
class Filter:
    """What a list shows."""

    project_id: str | None = None
    """Whose volumes; None: all projects'."""
    equal: Mapping[str, Any] = field(default_factory=dict)
    """Column → value."""


#: what a list may be sorted by → its column, which is never null
SORTABLE: Mapping[str, sa.ColumnElement[Any]] = {
    "id": _C.id,
    "name": sa.func.coalesce(_C.name, ""),
    "display_name": sa.func.coalesce(_C.name, ""),
    "volume_id": _C.volume_id,
    "created_at": _C.created_at,
}
_COLUMNS = [_C[name] for name in Transfer.__dataclass_fields__]


def listing(
    connection: sa.Connection,
    wanted: Filter,
    order: Sequence[tuple[str, bool]],
    page: Page,
    offset: int = 0,
) -> list[Transfer]:
    """Return transfers that have not ended; at most two queries.

    ``order``: (name in SORTABLE, descending). Raises MarkerNotFound.
    """
    sorts = [Sort(SORTABLE[name], descending) for name, descending in order]
    if not any(name == "id" for name, _ in order):
        sorts.append(Sort(_C.id, order[-1][1]))
    query = sa.select(*_COLUMNS).where(*(_C[name] == one for name, one in wanted.equal.items()))
    if offset:
        query = query.offset(offset)
    visible = [_C.ended_at.is_(None), *_of(wanted.project_id)]
    rows = keyset.read(connection, query, sorts, page, _C.id, visible=visible)
    return [Transfer(*tuple(row)) for row in rows]


def get(connection: sa.Connection, transfer_id: str, project_id: str | None) -> Transfer | None:
    """Return a transfer that has not ended; ``project_id``: whose volume it must be of."""
    query = sa.select(*_COLUMNS).where(_C.id == transfer_id, _C.ended_at.is_(None))
    row = connection.execute(query.where(*_of(project_id))).first()
    return None if row is None else Transfer(*tuple(row))


def known(connection: sa.Connection, transfer_id: str, project_id: str | None) -> Transfer | None:
    """Return a transfer also after its end; ``project_id``: either of its projects."""
    query = sa.select(*_COLUMNS).where(_C.id == transfer_id)
    if project_id is not None:
        query = query.where(
            (_C.source_project_id == project_id) | (_C.destination_project_id == project_id)
        )
    row = connection.execute(query).first()
    return None if row is None else Transfer(*tuple(row))


def _of(project_id: str | None) -> list[sa.ColumnElement[bool]]:
    if project_id is None:
        return []
    mine = sa.select(volumes.c.id).where(volumes.c.project_id == project_id)
    return [_C.volume_id.in_(mine)]
