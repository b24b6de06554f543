"""Queries of queues."""

from __future__ import annotations

from api.compute.schemas import types
from api.compute.schemas.types import Schema, one, query

UP, DOWN = "up", "down"
_STATE: Schema = {"type": "array", "items": {"type": "string", "enum": [UP, DOWN]}}

LIST = {
    "2.1": query(
        {
            "limit": one(types.LIMIT),
            "marker": one(types.TEXT),
            "host": one(types.TEXT),
            "name": one(types.TEXT),
            "unwell": one(types.TEXT),
            "state": one(_STATE),
        },
        more=False,
    )
}
