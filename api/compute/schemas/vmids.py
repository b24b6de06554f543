"""Queries of VMIDs."""

from __future__ import annotations

from api.compute.schemas import types
from api.compute.schemas.types import one, query

LIST = {
    "2.1": query(
        {"limit": one(types.LIMIT), "state": one(types.TEXT), "cluster": one(types.TEXT)},
        more=False,
    )
}
