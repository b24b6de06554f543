"""Operations about groups, as actions and events of the clustering API."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common.resources.states import ResourceType
from db.reads.volumes.block_storage import Filter, Listing, each
from db.records import columns
from db.schema import operations, scaling_groups

_C = operations.c


@dataclass(frozen=True)
class Action:
    """An operation about a group."""

    id: int
    resource_type: str
    resource_id: str
    project_id: str
    user_id: str
    request_id: str
    action: str
    state: str
    lease_owner: str | None
    deadline: datetime.datetime | None
    message: str | None
    started_at: datetime.datetime
    updated_at: datetime.datetime
    finished_at: datetime.datetime | None


_SORTABLE: Mapping[str, sa.ColumnElement[Any]] = {
    "id": _C.id,
    "created_at": _C.started_at,
    "action": _C.action,
    "status": _C.state,
    "timestamp": _C.started_at,
}
SORTABLE = frozenset(_SORTABLE)
_QUERY = sa.select(*columns(operations, Action))


def _of_groups(_: Filter) -> list[sa.ColumnElement[bool]]:
    return [_C.resource_type == ResourceType.GROUP]


listing = Listing(
    _QUERY, _SORTABLE, each(Action), {**dict(_C), "created_at": _C.started_at}, _of_groups
).page


def get(connection: sa.Connection, number: int, project_id: str | None) -> Action | None:
    """Return an operation about a group, or about a server as a delete of a node begins it."""
    kinds = (ResourceType.GROUP, ResourceType.SERVER)
    query = _QUERY.where(_C.id == number, _C.resource_type.in_(kinds))
    if project_id is not None:
        query = query.where(_C.project_id == project_id)
    row = connection.execute(query).first()
    return None if row is None else Action(*tuple(row))


def last(connection: sa.Connection, group_id: str, limit: int) -> list[Action]:
    """Return the last operations about a group, the newest first."""
    mine = (_C.resource_type == ResourceType.GROUP) & (_C.resource_id == group_id)
    rows = connection.execute(_QUERY.where(mine).order_by(_C.id.desc()).limit(limit))
    return [Action(*tuple(row)) for row in rows]


def names(connection: sa.Connection, group_ids: list[str]) -> dict[str, str]:
    """Return group → its name, of those that there are."""
    of = scaling_groups.c
    rows = connection.execute(sa.select(of.id, of.name).where(of.id.in_(set(group_ids))))
    return {row.id: row.name for row in rows}
