"""Queries of the whole cloud's capacity."""

from __future__ import annotations

from api.compute.schemas.types import query

NOTHING = {"2.1": query({}, more=False)}
