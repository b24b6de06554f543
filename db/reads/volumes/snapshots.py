"""Snapshots of volumes."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from db.reads.volumes import block_storage
from db.reads.volumes.block_storage import Listing
from db.records import columns
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
class Filter(block_storage.Filter):
    """What a list of snapshots shows."""

    availability_zone: str | None = None
    """The volume's."""


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


def _in_zone(wanted: Filter) -> list[sa.ColumnElement[bool]]:
    if wanted.availability_zone is None:
        return []
    there = volumes.c.availability_zone == wanted.availability_zone
    return [_C.volume_id.in_(sa.select(volumes.c.id).where(there))]


_READ: Listing[Snapshot, Filter] = Listing(
    sa.select(*columns(volume_snapshots, Snapshot)),
    SORTABLE,
    block_storage.each(Snapshot),
    dict(_C),
    conditions=_in_zone,
)
listing, count, get = _READ.page, _READ.count, _READ.get
