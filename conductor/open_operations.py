"""Whether the operations that are under way can be continued by conductors of this release."""

from __future__ import annotations

from sqlalchemy import Connection

from conductor.store.ledger import operations


def unreadable(connection: Connection) -> tuple[int, list[tuple[int, str]]]:
    """Return how many operations are open, and (ID, action) of those that could not be."""
    return operations.unreadable(connection)
