"""Volumes, their attachments and types."""

from __future__ import annotations

import dataclasses
import datetime
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from common.resources.volumes import ROOT_SLOT
from db.reads.properties import having
from db.reads.volumes import block_storage
from db.reads.volumes.block_storage import Listing
from db.records import columns
from db.schema import (
    servers,
    services,
    volume_attachments,
    volume_default_types,
    volume_snapshots,
    volume_type_access,
    volume_types,
    volumes,
)

#: of the largest number that is read in what users write
_DIGITS = 10
_C = volumes.c
_A = volume_attachments.c
_T = volume_types.c
_S = volume_snapshots.c


@dataclass(frozen=True)
class Attachment:
    """A server's use of a volume."""

    id: str
    volume_id: str
    server_uuid: str
    project_id: str
    status: str
    slot: int
    """SCSI slot; 0: it is the server's root disk."""
    mode: str
    tag: str | None
    delete_on_termination: bool
    created_at: datetime.datetime
    attached_at: datetime.datetime | None
    host: str | None = None
    """The server's."""


@dataclass(frozen=True)
class Volume:
    """One volume; its size in GiB."""

    id: str
    project_id: str
    user_id: str
    name: str
    description: str | None
    status: str
    size_gib: int
    type_id: str | None
    availability_zone: str | None
    bootable: bool
    readonly: bool
    meta: Mapping[str, str]
    image_metadata: Mapping[str, str] | None
    snapshot_id: str | None
    source_volume_id: str | None
    backup_id: str | None
    host: str | None
    storage: str | None
    cluster: str | None
    fault: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    type_name: str | None = None
    service_uuid: str | None = None
    """Of the agent that looks after it."""
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True)
class VolumeType:
    """A kind of volumes: a storage."""

    id: str
    name: str
    description: str | None
    is_public: bool
    storage: str
    extra_specs: Mapping[str, str]
    created_at: datetime.datetime


@dataclass(frozen=True)
class Filter(block_storage.Filter):
    """What a list of volumes shows."""

    image_metadata: Mapping[str, str] = field(default_factory=dict)
    type_name: str | None = None
    created: Sequence[tuple[str, datetime.datetime]] = ()
    """(``gt``, ``gte``, ``lt``, ``lte``, ``eq`` or ``neq``, time)."""
    updated: Sequence[tuple[str, datetime.datetime]] = ()


#: what a list may be sorted by → its column, which is never null
SORTABLE: Mapping[str, sa.ColumnElement[Any]] = {
    "id": _C.id,
    "name": _C.name,
    "display_name": _C.name,
    "status": _C.status,
    "size": _C.size_gib,
    "bootable": _C.bootable,
    "availability_zone": sa.func.coalesce(_C.availability_zone, ""),
    "created_at": _C.created_at,
    "updated_at": sa.func.coalesce(_C.updated_at, _C.created_at),
}
SORTABLE_ATTACHMENTS: Mapping[str, sa.ColumnElement[Any]] = {
    "id": _A.id,
    "volume_id": _A.volume_id,
    "instance_uuid": _A.server_uuid,
    "attach_status": _A.status,
    "attach_mode": _A.mode,
    "attach_time": sa.func.coalesce(_A.attached_at, _A.created_at),
    "created_at": _A.created_at,
}
_OPERATORS = {
    "gt": "__gt__",
    "gte": "__ge__",
    "lt": "__lt__",
    "lte": "__le__",
    "eq": "__eq__",
    "neq": "__ne__",
}


def summary(connection: sa.Connection, project_id: str | None) -> tuple[int, int]:
    """Return (number, GiB) of volumes."""
    query = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(_C.size_gib), 0))
    number, gib = connection.execute(query.where(*_visible(project_id))).one()
    return int(number), int(gib)


def metadata_values(connection: sa.Connection, project_id: str | None) -> dict[str, list[str]]:
    """Return the keys of all volumes' metadata with their values."""
    query = sa.select(_C.meta).where(*_visible(project_id))
    found: defaultdict[str, set[str]] = defaultdict(set)
    for meta in connection.execute(query).scalars():
        for key, value in meta.items():
            found[key].add(value)
    return {key: sorted(values) for key, values in sorted(found.items())}


def of_host(connection: sa.Connection, host: str) -> dict[str, tuple[int, int, int, int]]:
    """Return project → (number, GiB) of its volumes on a host, and of their snapshots."""
    found: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    number = sa.func.count()
    mine = sa.select(_C.project_id, number, sa.func.sum(_C.size_gib)).where(_C.host == host)
    taken = (
        sa.select(_S.project_id, number, sa.func.sum(_S.size_gib))
        .join_from(volume_snapshots, volumes, _C.id == _S.volume_id)
        .where(_C.host == host)
    )
    for start, query in ((0, mine), (2, taken)):
        for project, count, gib in connection.execute(query.group_by(query.selected_columns[0])):
            found[project][start : start + 2] = int(count), int(gib)
    return {project: (one[0], one[1], one[2], one[3]) for project, one in sorted(found.items())}


def attachments(connection: sa.Connection, server_uuid: str) -> list[Attachment]:
    """Return the attachments of a server by their time."""
    query = _attached().where(_A.server_uuid == server_uuid)
    found = connection.execute(query.order_by(_A.created_at, _A.id))
    return [Attachment(*row) for row in found]


def root_image(connection: sa.Connection, server_uuid: str) -> str | None:
    """Return the image that the root volume of a server has in it, or is a copy of."""
    found = root_metadata(connection, server_uuid).get("image_id")
    return None if found is None else str(found)


def root_metadata(connection: sa.Connection, server_uuid: str) -> Mapping[str, Any]:
    """Return the image metadata of a server's root volume; empty: none, or no root volume."""
    mine = (_A.server_uuid == server_uuid) & (_A.slot == ROOT_SLOT)
    query = sa.select(_C.image_metadata).join(volume_attachments, _A.volume_id == _C.id)
    return connection.execute(query.where(mine)).scalar() or {}


def least_memory_mib(image_metadata: Mapping[str, Any] | None) -> int:
    """Return the memory that a volume's image needs; users may write anything there. Pure."""
    text = str((image_metadata or {}).get("min_ram", "0"))
    return int(text) if text.isascii() and text.isdigit() and len(text) < _DIGITS else 0


def root_size(connection: sa.Connection, server_uuid: str) -> int | None:
    """Return the size of a server's root volume, GiB; None: it has a disk of its own."""
    mine = (_A.server_uuid == server_uuid) & (_A.slot == ROOT_SLOT)
    query = sa.select(_C.size_gib).join(volume_attachments, _A.volume_id == _C.id).where(mine)
    return connection.execute(query).scalar()


def types(
    connection: sa.Connection, project_id: str | None, *, public: bool | None = None
) -> list[VolumeType]:
    """Return the types that a project may use, by name; None: all of them."""
    query = sa.select(*columns(volume_types, VolumeType)).order_by(_T.name)
    if project_id is not None:
        query = query.where(_T.is_public | _allowed(project_id))
    if public is not None:
        query = query.where(_T.is_public == public)
    return [VolumeType(*row) for row in connection.execute(query)]


def type_access(connection: sa.Connection, type_id: str) -> list[str]:
    """Return the projects that may use a type that isn't public."""
    access = volume_type_access.c
    query = sa.select(access.project_id).where(access.type_id == type_id)
    return list(connection.execute(query.order_by(access.project_id)).scalars())


def default_types(connection: sa.Connection, project_id: str | None = None) -> dict[str, str]:
    """Return project → the id of its own default type; only of one project if given."""
    columns = volume_default_types.c
    query = sa.select(columns.project_id, columns.type_id).order_by(columns.project_id)
    if project_id is not None:
        query = query.where(columns.project_id == project_id)
    return {row.project_id: row.type_id for row in connection.execute(query)}


_FROM = volumes.outerjoin(volume_types, _T.id == _C.type_id)


def _query() -> sa.Select[Any]:
    agents = services.c
    service = sa.select(agents.uuid).where(agents.host == _C.host, agents.binary == "nova-compute")
    read = columns(
        *(volumes, Volume), type_name=_T.name, service_uuid=service.limit(1).scalar_subquery()
    )
    return sa.select(*read).select_from(_FROM)


def _visible(project_id: str | None) -> list[sa.ColumnElement[bool]]:
    return [] if project_id is None else [_C.project_id == project_id]


def _conditions(wanted: Filter) -> list[sa.ColumnElement[bool]]:
    found = list(having(_C.image_metadata, wanted.image_metadata))
    if wanted.type_name is not None:
        found.append(_T.name == wanted.type_name)
    for column, times in ((_C.created_at, wanted.created), (_C.updated_at, wanted.updated)):
        found += [getattr(column, _OPERATORS[how])(when) for how, when in times]
    return found


def _with_attachments(connection: sa.Connection, rows: Sequence[sa.Row[Any]]) -> list[Volume]:
    ids = [row.id for row in rows]
    by_volume: defaultdict[str, list[Attachment]] = defaultdict(list)
    if ids:
        for row in connection.execute(_attached().where(_A.volume_id.in_(ids))):
            one = Attachment(*row)
            by_volume[one.volume_id].append(one)
    found = block_storage.each(Volume)(connection, rows)
    return [dataclasses.replace(one, attachments=tuple(by_volume[one.id])) for one in found]


def _attached() -> sa.Select[Any]:
    joined = volume_attachments.outerjoin(servers, servers.c.uuid == _A.server_uuid)
    read = columns(volume_attachments, Attachment, host=servers.c.host)
    return sa.select(*read).select_from(joined)


def _allowed(project_id: str) -> sa.ColumnElement[bool]:
    access = volume_type_access.c
    return sa.exists().where(access.type_id == _T.id, access.project_id == project_id)


_VOLUMES: Listing[Volume, Filter] = Listing(
    _query(), SORTABLE, _with_attachments, dict(_C), _conditions
)
_ATTACHMENTS: Listing[Attachment, block_storage.Filter] = Listing(
    _attached(), SORTABLE_ATTACHMENTS, block_storage.each(Attachment), dict(_A)
)
listing, count, get = _VOLUMES.page, _VOLUMES.count, _VOLUMES.get
attachment_listing, attachment = _ATTACHMENTS.page, _ATTACHMENTS.get
