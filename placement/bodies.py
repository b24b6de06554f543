"""Bodies of placement's REST API, as its client sends and compares them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placement.messages import Resources


def allocations(
    by_provider: Mapping[str, Resources], project_id: str, user_id: str, generation: int | None
) -> dict[str, Any]:
    """Return a consumer's allocations as the API takes them."""
    return {
        "allocations": {
            uuid: {"resources": dict(resources)} for uuid, resources in by_provider.items()
        },
        "project_id": project_id,
        "user_id": user_id,
        "consumer_generation": generation,
    }


def same_inventories(
    there: Mapping[str, Mapping[str, Any]], wanted: Mapping[str, Mapping[str, Any]]
) -> bool:
    """Return whether inventories match; `wanted` may have a part of each one's fields."""
    return there.keys() == wanted.keys() and all(
        there[name].get(key) == value
        for name, values in wanted.items()
        for key, value in values.items()
    )
