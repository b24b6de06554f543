"""Transfers of volumes to other projects; never their keys."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from db.reads.volumes.block_storage import Filter, Listing, each
from db.records import columns
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


#: what a list may be sorted by → its column, which is never null
SORTABLE: Mapping[str, sa.ColumnElement[Any]] = {
    "id": _C.id,
    "name": sa.func.coalesce(_C.name, ""),
    "display_name": sa.func.coalesce(_C.name, ""),
    "volume_id": _C.volume_id,
    "created_at": _C.created_at,
}
_QUERY = sa.select(*columns(volume_transfers, Transfer))


def known(connection: sa.Connection, transfer_id: str, project_id: str | None) -> Transfer | None:
    """Return a transfer also after its end; ``project_id``: either of its projects."""
    query = _QUERY.where(_C.id == transfer_id)
    if project_id is not None:
        query = query.where(
            (_C.source_project_id == project_id) | (_C.destination_project_id == project_id)
        )
    row = connection.execute(query).first()
    return None if row is None else Transfer(*tuple(row))


def _visible(project_id: str | None) -> list[sa.ColumnElement[bool]]:
    """Return the conditions of transfers that have not ended, of the project's volumes."""
    found: list[sa.ColumnElement[bool]] = [_C.ended_at.is_(None)]
    if project_id is not None:
        mine = sa.select(volumes.c.id).where(volumes.c.project_id == project_id)
        found.append(_C.volume_id.in_(mine))
    return found


_READ: Listing[Transfer, Filter] = Listing(
    _QUERY, SORTABLE, each(Transfer), dict(_C), visible=_visible
)
listing, get = _READ.page, _READ.get
