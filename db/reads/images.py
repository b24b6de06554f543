"""Images on the clusters' import storages."""

from __future__ import annotations

import datetime
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common import clock
from db.reads import keyset
from db.schema import images


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
    min_disk_gib: int
    min_ram_mib: int
    properties: Mapping[str, str]
    created_at: datetime.datetime
    updated_at: datetime.datetime
    project_id: str | None = None
    """Its owner, who alone sees it; None: everybody does."""
    home: Mapping[str, Any] | None = None
    """Of a server's image: ``common.messages.scheduling.ImageHome``."""


@dataclass(frozen=True)
class Condition:
    """A condition on a field: `operator` is one of OPERATORS, `value` a sequence for `in`, whether
    it is null for `null`."""

    field: str
    operator: str
    value: Any


_COLUMNS: tuple[sa.Column[Any], ...] = (
    images.c.id,
    images.c.name,
    images.c.status,
    images.c.size_bytes,
    images.c.virtual_size_bytes,
    images.c.disk_format,
    images.c.checksum,
    images.c.min_disk_gib,
    images.c.min_ram_mib,
    images.c.properties,
    images.c.created_at,
    images.c.updated_at,
    images.c.project_id,
    images.c.home,
)
_FIELDS: Mapping[str, sa.Column[Any]] = {column.key: column for column in _COLUMNS}

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

_TIMES = frozenset({"created_at", "updated_at"})

#: operators of times, each of which stands for the whole second that it names
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

_GET = sa.select(*_COLUMNS).where(_SHOWN, images.c.id == sa.bindparam("id"))
_GET_OWN = _GET.where(
    images.c.project_id.is_(None) | (images.c.project_id == sa.bindparam("project"))
)

#: no image has a key that a JSON path can't name
_PROPERTY = re.compile(r'[^"\\\x00]+')


def get(connection: sa.Connection, image_id: str, project: str | None) -> Image | None:
    """Return the image with this ID, or None; only if this project sees it (None: all do)."""
    if project is None:
        row = connection.execute(_GET, {"id": image_id}).first()
    else:
        row = connection.execute(_GET_OWN, {"id": image_id, "project": project}).first()
    return None if row is None else _image(row)


def listing(
    connection: sa.Connection,
    conditions: Sequence[Condition] = (),
    properties: Mapping[str, str] | None = None,
    order: Sequence[tuple[str, bool]] = (),
    page: keyset.Page = keyset.Page(),  # noqa: B008 - frozen
    project: str | None = None,
) -> list[Image]:
    """Return images that satisfy all `conditions` and have these `properties`.

    Only those that the `project` sees, None: all. `order` is (field, descending); ties are broken
    by the newest, then by ID. Raises MarkerNotFound.
    """
    wanted = properties or {}
    if not all(_PROPERTY.fullmatch(name) for name in wanted):
        return []
    statement = sa.select(*_COLUMNS).where(
        *(_holds(condition) for condition in conditions),
        *(images.c.properties[name].as_string() == value for name, value in wanted.items()),
    )
    visible = [_SHOWN]
    if project is not None:
        own = images.c.project_id == project
        visible.append(images.c.project_id.is_(None) | own)
    rows = keyset.read(connection, statement, _order(order), page, images.c.id, visible=visible)
    return [_image(row) for row in rows]


def _holds(condition: Condition) -> sa.ColumnElement[bool]:
    operators = _TIME_OPERATORS if condition.field in _TIMES else OPERATORS
    return operators[condition.operator](_FIELDS[condition.field], condition.value)


def _order(order: Sequence[tuple[str, bool]]) -> list[keyset.Sort]:
    sorts = [keyset.Sort(_FIELDS[field], descending) for field, descending in order]
    named = {field for field, _ in order}
    ties = (("created_at", True), ("id", True))
    return sorts + [keyset.Sort(_FIELDS[name], down) for name, down in ties if name not in named]


def _image(row: sa.Row[Any]) -> Image:
    return Image(**row._mapping)
