"""Images: those on the clusters' import storages, and those that users made."""

from __future__ import annotations

import datetime
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common import clock
from common.resources.states import InternalAction, OperationState, ResourceType
from db.reads import keyset
from db.reads.patterns import holds
from db.records import columns
from db.schema import image_members, images, operations


@dataclass(frozen=True)
class Image:
    """One image; sizes in bytes, GiB and MiB as the names say."""

    id: str
    name: str
    status: str
    size_bytes: int
    virtual_size_bytes: int | None
    disk_format: str
    checksum: str | None
    md5: str | None
    min_disk_gib: int
    min_ram_mib: int
    properties: Mapping[str, str]
    created_at: datetime.datetime
    updated_at: datetime.datetime
    project_id: str | None = None
    """Its owner; None: the operators'."""
    home: Mapping[str, Any] | None = None
    """Of a server's image: ``common.messages.scheduling.ImageHome``."""
    visibility: str = "public"
    """``public`` and ``community``: all see it, the latter if they ask for it; ``shared``: its
    members do too; ``private``."""
    protected: bool = False
    hidden: bool = False
    tags: Sequence[str] | None = None
    server_uuid: str | None = None
    """The server of whose disk it is a copy."""
    container_format: str = "bare"
    """Empty: not set yet, as with ``name`` and ``disk_format``."""
    import_task: Mapping[str, Any] | None = None
    """``conductor.rpc.images.ImportTask``; None: there was no import."""


@dataclass(frozen=True)
class Reach:
    """The part of the visible images that a list includes."""

    visibility: str | None = None
    """Only images of this visibility, or ``all``; None: all but other projects' ``community``
    images."""
    member_status: str = "accepted"
    """Images shared with the project are listed only with this member status; ``all``: any."""
    project: str | None = None
    """The caller's project."""
    hidden: bool = False
    """Only images that are hidden from ordinary lists; or only others."""


@dataclass(frozen=True)
class Member:
    """A project that an image is shared with."""

    image_id: str
    member: str
    status: str
    """``pending``, ``accepted`` or ``rejected``: the project's decision."""
    created_at: datetime.datetime
    updated_at: datetime.datetime


@dataclass(frozen=True)
class Condition:
    """A condition on a field: `operator` is one of OPERATORS, `value` a sequence for `in`, whether
    it is null for `null`."""

    field: str
    operator: str
    value: Any


def visibility_of(said: str | None, project_id: str | None) -> str:
    """Return who sees an image, by its row."""
    return said or ("public" if project_id is None else "private")


_VISIBILITY: sa.ColumnElement[str] = sa.func.coalesce(
    images.c.visibility, sa.case((images.c.project_id.is_(None), "public"), else_="private")
)
_PROTECTED: sa.ColumnElement[bool] = sa.case(
    (images.c.protected.is_not(None), images.c.protected),
    (images.c.project_id.is_(None), sa.true()),
    else_=sa.false(),
)
_COLUMNS = columns(images, Image, visibility=_VISIBILITY, protected=_PROTECTED)
_FIELDS: Mapping[str, sa.ColumnElement[Any]] = {
    **{column.key: column for column in images.c},
    "protected": _PROTECTED,
}

OPERATORS: Mapping[str, Callable[[Any, Any], sa.ColumnElement[bool]]] = {
    "eq": operator.eq,
    "neq": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "in": lambda column, values: column.in_(values),
    "null": lambda column, null: column.is_(None) if null else column.is_not(None),
}

#: statuses of images that have data
_USABLE = ("active", "deactivated")
_TIMES = frozenset({"created_at", "updated_at"})

#: operators of times; a given time stands for its whole second
_TIME_OPERATORS: Mapping[str, Callable[[Any, Any], sa.ColumnElement[bool]]] = {
    "eq": lambda column, at: column.between(at, clock.end_of(at)),
    "neq": lambda column, at: ~column.between(at, clock.end_of(at)),
    "gt": lambda column, at: column > clock.end_of(at),
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": lambda column, at: column <= clock.end_of(at),
}

#: deleted images are kept for the servers built from them, and never shown
_SHOWN = images.c.status != "deleted"

_M = image_members.c


def _member(project: Any) -> sa.ColumnElement[bool]:
    return sa.and_(_M.image_id == images.c.id, _M.member == project)


def _seen(project: Any) -> sa.ColumnElement[bool]:
    """What a project may see, by id at least."""
    return sa.or_(
        _VISIBILITY.in_(("public", "community")),
        images.c.project_id == project,
        (_VISIBILITY == "shared") & sa.exists().where(_member(project)),
    )


_GET = sa.select(*_COLUMNS).where(_SHOWN, images.c.id == sa.bindparam("id"))
_GET_SEEN = _GET.where(_seen(sa.bindparam("project")))

#: no image has a key that a JSON path can't name
_PROPERTY = re.compile(r'[^"\\\x00]+')


def get(connection: sa.Connection, image_id: str, project: str | None) -> Image | None:
    """Return the image with this ID, or None; only if this project sees it (None: all do)."""
    if project is None:
        row = connection.execute(_GET, {"id": image_id}).first()
    else:
        row = connection.execute(_GET_SEEN, {"id": image_id, "project": project}).first()
    return None if row is None else _image(row)


def listing(
    connection: sa.Connection,
    conditions: Sequence[Condition] = (),
    properties: Mapping[str, str] | None = None,
    order: Sequence[tuple[str, bool]] = (),
    page: keyset.Page = keyset.Page(),  # noqa: B008 - frozen
    project: str | None = None,
    reach: Reach | None = None,
    tags: Sequence[str] = (),
) -> list[Image]:
    """Return images that satisfy all `conditions` and have these `properties` and `tags`.

    Only those that the `project` sees, None: all; of these what is within `reach`, None: all.
    `order` is (field, descending); ties are broken by the newest, then by ID.
    Raises MarkerNotFound.
    """
    wanted = properties or {}
    if not all(_PROPERTY.fullmatch(name) for name in wanted):
        return []
    statement = sa.select(*_COLUMNS).where(
        *(_holds(condition) for condition in conditions),
        *(images.c.properties[name].as_string() == value for name, value in wanted.items()),
        *(images.c.tags.is_not(None) & holds(connection, images.c.tags, tag) for tag in tags),
        *([] if reach is None else _within(reach, project)),
    )
    visible = [_SHOWN]
    if project is not None:
        visible.append(_seen(project))
    rows = keyset.read(connection, statement, _order(order), page, images.c.id, visible=visible)
    return [_image(row) for row in rows]


def members(connection: sa.Connection, image_id: str) -> list[Member]:
    """Return the projects that an image is shared with, the first first."""
    query = sa.select(image_members).where(_M.image_id == image_id)
    rows = connection.execute(query.order_by(_M.created_at, _M.member))
    return [Member(**row._mapping) for row in rows]


def being_stored(
    connection: sa.Connection, image_ids: Collection[str], *, kept: bool = False
) -> frozenset[str]:
    """Return those of these images whose data a cluster, or an import, still waits for.

    Nobody waits for those of a deleted image: what is at work on it finds it gone.
    ``kept``: those too that can be used.
    """
    o = operations.c
    query = sa.select(o.resource_id).where(
        o.resource_type == ResourceType.IMAGE,
        o.resource_id.in_(list(image_ids)),
        o.action == InternalAction.STORE_IMAGE,
        o.state.not_in((OperationState.DONE, OperationState.FAILED)),
        sa.exists().where(images.c.id == o.resource_id, _SHOWN),
    )
    staged = sa.select(images.c.id).where(
        images.c.id.in_(list(image_ids)),
        images.c.status.in_(("uploading", *(_USABLE if kept else ()))),
    )
    return frozenset(connection.execute(query.union(staged)).scalars())


def _within(reach: Reach, project: str | None) -> Iterator[sa.ColumnElement[bool]]:
    yield images.c.hidden == reach.hidden
    if reach.visibility is None:
        yield sa.or_(_VISIBILITY != "community", images.c.project_id == reach.project)
    elif reach.visibility != "all":
        yield _VISIBILITY.in_((reach.visibility,))
    if project is not None and reach.member_status != "all":
        said = _member(project) & (_M.status == reach.member_status)
        yield sa.or_(
            _VISIBILITY != "shared", images.c.project_id == project, sa.exists().where(said)
        )


def _holds(condition: Condition) -> sa.ColumnElement[bool]:
    operators = _TIME_OPERATORS if condition.field in _TIMES else OPERATORS
    return operators[condition.operator](_FIELDS[condition.field], condition.value)


def _order(order: Sequence[tuple[str, bool]]) -> list[keyset.Sort]:
    sorts = [keyset.Sort(_FIELDS[field], descending) for field, descending in order]
    named = {field for field, _ in order}
    ties = (("created_at", True), ("id", True))
    return sorts + [keyset.Sort(_FIELDS[name], down) for name, down in ties if name not in named]


def _image(row: sa.Row[Any]) -> Image:
    return Image(**{**row._mapping, "protected": bool(row.protected)})
