"""The resource of an operation in SQL, also of rows that the previous release writes.

That one knows ``operations.server_uuid`` only, so an operation about a server is found by it, and
one about anything else has it empty. Once no conductor of that release runs any more, the column
can be dropped, and only ``resource_id`` is needed here.
"""

from __future__ import annotations

import sqlalchemy as sa

from common.states import ResourceType
from db.schema import operations

_T = operations.c

#: the UUID of the server that an operation is about, to join with; of no server otherwise
SERVER_UUID: sa.Column[str] = _T.server_uuid
#: the id of the resource, whichever release wrote it
RESOURCE_ID: sa.Label[str] = sa.func.coalesce(_T.resource_id, _T.server_uuid).label("resource_id")


def about(resource_type: str, resource_id: str) -> sa.ColumnElement[bool]:
    """Return the condition that an operation is about this resource."""
    if resource_type == ResourceType.SERVER:
        return _T.server_uuid == resource_id
    return (_T.resource_type == resource_type) & (_T.resource_id == resource_id)


def columns(resource_type: str, resource_id: str) -> dict[str, str]:
    """Return the columns of a new row that name the resource."""
    server_uuid = resource_id if resource_type == ResourceType.SERVER else ""
    return {
        "server_uuid": server_uuid,
        "resource_type": resource_type,
        "resource_id": resource_id,
    }
