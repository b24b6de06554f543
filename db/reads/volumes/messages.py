"""Messages about volumes: the last fault of each failed operation on a volume.

They last as long as faults in the ledger, unless they are deleted before.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common.messages.reports import Category
from common.resources.states import OperationState, ResourceType
from common.story import volume_messages as words
from db.reads.volumes.block_storage import Filter, Listing, each
from db.schema import deleted_volume_messages, faults, operations, servers

_O, _F = operations.c, faults.c
_OF_SERVER = _O.resource_type == ResourceType.SERVER


@dataclass(frozen=True)
class Message:
    """One message."""

    operation_id: int
    project_id: str
    request_id: str
    action: str
    category: str
    message: str
    owner_message: str | None
    created_at: datetime.datetime
    event_id: str
    resource_type: str
    resource_uuid: str


def _case(column: sa.ColumnElement[str], table: Mapping[str, str], other: str) -> sa.Case[str]:
    return sa.case(*((column == key, value) for key, value in table.items()), else_=other)


_RESOURCE = _case(_O.resource_type, words.RESOURCES, "VOLUME")
_UNPLACED = (_O.action == "create-volume") & (_F.category == Category.NO_VALID_HOST)
_ACTION = sa.case(
    (_UNPLACED, words.SCHEDULE.action),
    else_=_case(_O.action, {k: e.action for k, e in words.EVENTS.items()}, words.OTHER.action),
)
_DETAIL = sa.case(
    (_UNPLACED, words.SCHEDULE.detail),
    else_=_case(_O.action, {k: e.detail for k, e in words.EVENTS.items()}, words.OTHER.detail),
)
_EVENT: sa.ColumnElement[str] = sa.literal("VOLUME_") + _RESOURCE + "_" + _ACTION + "_" + _DETAIL
_UUID: sa.ColumnElement[str] = sa.case(
    (_OF_SERVER, _O.plan["command", "volume_id"].as_string()), else_=_O.resource_id
)
#: what a list may be filtered by → its expression
FILTERS: Mapping[str, sa.ColumnElement[Any]] = {
    "resource_uuid": _UUID,
    "resource_type": _RESOURCE,
    "event_id": _EVENT,
    "request_id": _O.request_id,
}
#: what a list may be sorted by → its expression, which is never null
SORTABLE: Mapping[str, sa.ColumnElement[Any]] = {
    "id": _O.id,
    "created_at": _F.created_at,
    "guaranteed_until": _F.created_at,
    "expires_at": _F.created_at,
    "request_id": _O.request_id,
    "resource_type": _RESOURCE,
    "resource_uuid": _UUID,
    "event_id": _EVENT,
}
_FROM = faults.join(operations, _O.id == _F.operation_id)
_COLUMNS = (
    *(_O.id, _O.project_id, _O.request_id, _O.action),
    *(_F.category, _F.message, _F.owner_message, _F.created_at),
    *(_EVENT, _RESOURCE, _UUID),
)


def _visible(project_id: str | None) -> list[sa.ColumnElement[bool]]:
    """Return the conditions of the faults that are messages: by the index on their servers."""
    later, gone = faults.alias("later_faults"), deleted_volume_messages.c
    of_servers = _F.server_uuid != ""
    found: list[sa.ColumnElement[bool]] = []
    if project_id is not None:
        mine = sa.select(servers.c.uuid).where(servers.c.project_id == project_id)
        of_servers = _F.server_uuid.in_(mine)
        found.append(_O.project_id == project_id)
    about = _O.resource_type.in_([one for one in words.RESOURCES if one != ResourceType.SERVER])
    return [
        *found,
        sa.or_(
            (_F.server_uuid == "") & about,
            of_servers & _OF_SERVER & _O.action.in_(words.OF_SERVERS),
        ),
        _O.state == OperationState.FAILED,
        ~sa.exists().where(later.c.operation_id == _F.operation_id, later.c.id > _F.id),
        ~sa.exists().where(gone.operation_id == _O.id),
    ]


_READ: Listing[Message, Filter] = Listing(
    sa.select(*_COLUMNS).select_from(_FROM), SORTABLE, each(Message), FILTERS, visible=_visible
)
listing, get = _READ.page, _READ.get
