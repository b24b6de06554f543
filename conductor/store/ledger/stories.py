"""What the ledger has of operations, for traces; nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from db.reads.ledger import operations as reads
from db.reads.ledger.operations import Event, OperationFault, Story, Transition
from db.schema import operations

__all__ = ["Event", "OperationFault", "Story", "Traced", "Transition", "traced"]


@dataclass(frozen=True)
class Traced:
    """An operation with all its details, and the span that its request belongs to."""

    story: Story
    traceparent: str | None


def traced(connection: sa.Connection, ids: Sequence[int]) -> list[Traced]:
    """Return those of these operations that exist: seven statements at most."""
    query = sa.select(operations.c.id, operations.c.context).where(operations.c.id.in_(ids))
    parents = {row.id: (row.context or {}).get("traceparent") for row in connection.execute(query)}
    stories = reads.stories_of(connection, ids)
    return [Traced(story, parents.get(story.operation.id)) for story in stories]
