"""Operations about groups, as actions and events of the clustering API."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import sqlalchemy as sa

from common.resources.states import ResourceType
from db.reads.groups import shown
from db.reads.volumes.block_storage import Filter, Listing, each
from db.records import columns
from db.schema import operations

_C = operations.c


@dataclass(frozen=True)
class Action:
    """An operation about a group or a member, in the words of the clustering API."""

    id: int
    resource_type: str
    resource_id: str
    project_id: str
    user_id: str
    request_id: str
    action: str
    lease_owner: str | None
    deadline: datetime.datetime | None
    message: str | None
    started_at: datetime.datetime
    updated_at: datetime.datetime
    finished_at: datetime.datetime | None
    name: str
    action_name: str
    status: str
    level: str
    target: str
    """The group, or the member; where a member has another server now, the former one."""
    target_name: str
    target_type: str
    cluster_id: str
    """Empty: of no group."""


_SHOWN = {
    "name": shown.NAME,
    "action_name": shown.ACTION_NAME,
    "status": shown.STATUS,
    "level": shown.LEVEL,
    "target": shown.TARGET,
    "target_name": shown.TARGET_NAME,
    "target_type": shown.TARGET_TYPE,
    "cluster_id": shown.CLUSTER,
}
_QUERY = sa.select(*columns(operations, Action, **_SHOWN)).select_from(shown.ACTION_ROWS)
#: what lists are filtered and sorted by
_COLUMNS = {
    **_SHOWN,
    "id": _C.id,
    "action": shown.ACTION_NAME,
    "project_id": _C.project_id,
    "created_at": _C.started_at,
    "timestamp": _C.started_at,
    "oid": shown.TARGET,
    "oname": shown.TARGET_NAME,
    "otype": shown.TARGET_TYPE,
}
SORTABLE = frozenset(_COLUMNS) - {"project_id", *("action_name", "target_name", "target_type")}
_LISTING: Listing[Action, Filter] = Listing(
    _QUERY, _COLUMNS, each(Action), _COLUMNS, conditions=lambda _: (shown.LISTED,)
)
listing = _LISTING.page


def get(connection: sa.Connection, number: int, project_id: str | None) -> Action | None:
    """Return an operation about a group, or about a server as a delete of a node begins it."""
    kinds = (ResourceType.GROUP, ResourceType.SERVER)
    query = _QUERY.where(_C.id == number, _C.resource_type.in_(kinds))
    if project_id is not None:
        query = query.where(_C.project_id == project_id)
    row = connection.execute(query).first()
    return None if row is None else Action(*tuple(row))


def last_of_server(connection: sa.Connection, server_uuid: str) -> int | None:
    """Return the last operation about a server."""
    mine = (_C.resource_type == ResourceType.SERVER) & (_C.resource_id == server_uuid)
    found: int | None = connection.scalar(sa.select(sa.func.max(_C.id)).where(mine))
    return found


def last(connection: sa.Connection, group_id: str, limit: int) -> list[Action]:
    """Return the last operations about a group, the newest first."""
    mine = (_C.resource_type == ResourceType.GROUP) & (_C.resource_id == group_id)
    rows = connection.execute(_QUERY.where(mine).order_by(_C.id.desc()).limit(limit))
    return [Action(*tuple(row)) for row in rows]
