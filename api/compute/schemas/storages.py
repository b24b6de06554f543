"""Queries of storages, and of the tasks of nodes."""

from __future__ import annotations

from api.compute.schemas import types
from api.compute.schemas.types import one, query

LIST = {
    "2.1": query(
        {"limit": one(types.LIMIT), "marker": one(types.TEXT), "host": one(types.TEXT)},
        more=False,
    )
}
TASKS = {"2.1": query({"limit": one(types.LIMIT)}, more=False)}
