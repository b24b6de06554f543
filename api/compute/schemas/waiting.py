"""Queries of servers that wait."""

from __future__ import annotations

from api.compute.schemas import types
from api.compute.schemas.types import one, query
from common.errors import Invalid

LIST = {"2.1": query({"limit": one(types.LIMIT), "marker": one(types.TEXT)}, more=False)}
HOSTS = {"2.1": query({}, more=False)}


def place(marker: str | None) -> int:
    """Return the place that a marker names; 0: none. Raises Invalid."""
    if marker is None:
        return 0
    if not (marker.isascii() and marker.isdigit() and len(marker) <= 9):
        raise Invalid(f"The marker {marker[:40]!r} is no place in the queue.")
    return int(marker)
