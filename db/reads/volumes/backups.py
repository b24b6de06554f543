"""Backups of volumes."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from db.reads.volumes.block_storage import Filter, Listing, each
from db.records import columns
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

_READ: Listing[Backup, Filter] = Listing(
    sa.select(*columns(volume_backups, Backup)),
    SORTABLE,
    each(Backup),
    dict(_C),
)
listing, count, get = _READ.page, _READ.count, _READ.get
