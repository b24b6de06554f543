"""The resource of an operation, in SQL."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from common.resources.states import ResourceType
from db.schema import operations, servers

_T = operations.c

_ON_SERVERS = _T.resource_type == sa.literal_column(f"'{ResourceType.SERVER}'", sa.String)

#: joins operations with the servers that they are about
ITS_SERVER = _ON_SERVERS & (servers.c.uuid == _T.resource_id)


def about(resource_type: str, resource_id: str) -> sa.ColumnElement[bool]:
    """Return the condition that an operation is about this resource."""
    return (_T.resource_type == resource_type) & (_T.resource_id == resource_id)


def about_servers(uuids: sa.Select[str] | Sequence[str]) -> sa.ColumnElement[bool]:
    """Return the condition that an operation is about one of these servers."""
    return _ON_SERVERS & _T.resource_id.in_(uuids)
