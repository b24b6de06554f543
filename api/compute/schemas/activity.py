"""Queries of operations."""

from __future__ import annotations

from api.compute.schemas import types
from api.compute.schemas.types import Schema, one, query
from common import digits
from common.errors import Invalid
from common.resources.states import OperationState
from db.reads.ledger.activity import OPEN

NEWEST, OLDEST = "newest", "oldest"
_MAX_ID = 2**63 - 1


def _choice(*values: str) -> Schema:
    return {"type": "array", "items": {"type": "string", "enum": list(values)}}


LIST = {
    "2.1": query(
        {
            "limit": one(types.LIMIT),
            "marker": one(types.TEXT),
            "project_id": one(types.TEXT),
            "user_id": one(types.TEXT),
            "state": one(_choice(OPEN, *(one.value for one in OperationState))),
            "order": one(_choice(NEWEST, OLDEST)),
        },
        more=False,
    )
}


def number(marker: str | None) -> int | None:
    """Return the operation that a marker names; None: none. Raises Invalid."""
    if marker is None:
        return None
    found = digits.number(marker, _MAX_ID)
    if found is None:
        raise Invalid(f"The marker {marker[:40]!r} is no operation's ID.")
    return found
