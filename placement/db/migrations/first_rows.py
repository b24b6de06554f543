"""The rows of a new placement database: the change sequence."""

from __future__ import annotations

import sqlalchemy as sa

_CHANGES = sa.table("changes", *map(sa.column, ("id", "value", "names_at", "pruned_at")))
_ROWS = (
    {"id": 1, "value": 1, "names_at": 1, "pruned_at": 0},
    # It never changes: another value means a restored database.
    {"id": 2, "value": 0, "names_at": 0, "pruned_at": 0},
)


def insert(connection: sa.Connection) -> None:
    """Insert them."""
    connection.execute(_CHANGES.insert(), list(_ROWS))
