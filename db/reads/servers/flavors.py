"""Flavors and who may use the private ones."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common.errors import Invalid
from db import schema
from db.reads import keyset
from db.records import columns

_T = schema.flavors.c
_ACCESS = schema.flavor_access.c


@dataclass(frozen=True, slots=True)
class Flavor:
    """A row of `flavors`; sizes in MiB and GiB."""

    id: int
    flavorid: str
    name: str
    vcpus: int
    memory_mib: int
    disk_gib: int
    ephemeral_gib: int
    swap_mib: int
    rxtx_factor: float
    is_public: bool
    disabled: bool
    description: str | None
    extra_specs: Mapping[str, str]
    created_at: datetime.datetime


_COLUMNS = columns(schema.flavors, Flavor)

#: Nova's sort keys → our columns
SORT_KEYS = {
    "created_at": "created_at",
    "description": "description",
    "disabled": "disabled",
    "ephemeral_gb": "ephemeral_gib",
    "flavorid": "flavorid",
    "id": "id",
    "is_public": "is_public",
    "memory_mb": "memory_mib",
    "name": "name",
    "root_gb": "disk_gib",
    "rxtx_factor": "rxtx_factor",
    "swap": "swap_mib",
    "updated_at": "created_at",
    "vcpu_weight": "id",
    "vcpus": "vcpus",
}


@dataclass(frozen=True)
class Filters:
    """Conditions on flavors; None restricts nothing."""

    is_public: bool | None = None
    disabled: bool | None = None
    min_memory_mib: int | None = None
    min_disk_gib: int | None = None
    name: str | None = None


def find(connection: sa.Connection, flavorid: str, project_id: str | None = None) -> Flavor | None:
    """Return the flavor of this ID, or None; `project_id`: only if that project may use it."""
    query = sa.select(*_COLUMNS).where(_T.flavorid == flavorid)
    if project_id is not None:
        query = query.where(_usable(project_id))
    row = connection.execute(query).first()
    return None if row is None else Flavor(*row)


def list_flavors(
    connection: sa.Connection,
    filters: Filters,
    *,
    project_id: str | None = None,
    sort: tuple[str, bool] = ("flavorid", False),
    limit: int | None = None,
    marker: str | None = None,
) -> list[Flavor]:
    """Return a page of flavors that pass `filters` and that the project may use (None: all).

    `sort` is (Nova's sort key, descending). Raises Invalid for an unknown marker.
    """
    if limit == 0:
        return []
    name, descending = sort
    column = _T[SORT_KEYS[name]]
    by = sa.func.coalesce(column, "") if column.nullable else column
    order = [keyset.Sort(by, descending), keyset.Sort(_T.id)]
    statement = sa.select(*_COLUMNS).where(*_conditions(filters))
    try:
        rows: Sequence[Any] = keyset.read(
            connection,
            statement,
            order,
            keyset.Page(limit, marker),
            _T.flavorid,
            visible=() if project_id is None else [_usable(project_id)],
        )
    except keyset.MarkerNotFound as error:
        raise Invalid(f"marker [{marker}] not found") from error
    return [Flavor(*row) for row in rows]


def _conditions(filters: Filters) -> list[sa.ColumnElement[bool]]:
    conditions: list[sa.ColumnElement[bool]] = []
    if filters.is_public is not None:
        conditions.append(_T.is_public.is_(filters.is_public))
    if filters.disabled is not None:
        conditions.append(_T.disabled.is_(filters.disabled))
    if filters.min_memory_mib is not None:
        conditions.append(_T.memory_mib >= filters.min_memory_mib)
    if filters.min_disk_gib is not None:
        conditions.append(_T.disk_gib >= filters.min_disk_gib)
    if filters.name is not None:
        conditions.append(_T.name == filters.name)
    return conditions


def _usable(project_id: str) -> sa.ColumnElement[bool]:
    granted = sa.select(1).where(_ACCESS.flavor_id == _T.id, _ACCESS.project_id == project_id)
    return sa.or_(_T.is_public.is_(True), sa.exists(granted))


def projects_of(connection: sa.Connection, flavor_id: int) -> list[str]:
    """Return the projects that may use a private flavor; `flavor_id` is the row's id."""
    query = (
        sa.select(_ACCESS.project_id)
        .where(_ACCESS.flavor_id == flavor_id)
        .order_by(_ACCESS.project_id)
    )
    return list(connection.execute(query).scalars())
