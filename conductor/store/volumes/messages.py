"""Which messages about volumes were deleted. The messages are the ledger's failed operations."""

from __future__ import annotations

import sqlalchemy as sa

from common import clock
from db.schema import deleted_volume_messages

_C = deleted_volume_messages.c


def delete(connection: sa.Connection, operation_id: int) -> None:
    """Hide the message of an operation; it may be deleted already."""
    query = sa.select(_C.operation_id).where(_C.operation_id == operation_id)
    if connection.execute(query).first() is None:
        values = {"operation_id": operation_id, "deleted_at": clock.utcnow()}
        connection.execute(deleted_volume_messages.insert(), values)
