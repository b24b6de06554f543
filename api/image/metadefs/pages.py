"""Which metadata definitions a list shows: filters, order and pages (pure)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from common import digits
from common.errors import Invalid, NotFound
from db.reads.images.metadefs import Namespace

_MOST, _DEFAULT = 1000, 25
_SORT_KEYS = ("created_at", "updated_at", "namespace", "display_name", "visibility")


def filtered(found: Sequence[Namespace], given: Mapping[str, str]) -> list[Namespace]:
    """Return those that the query asks for. Raises Invalid."""
    visibility = given.get("visibility")
    if visibility not in (None, "", "public", "private"):
        raise Invalid(f"Invalid visibility value: {visibility}")
    types = {one for one in given.get("resource_types", "").split(",") if one}
    return [
        one
        for one in found
        if visibility in (None, "", one.visibility)
        and (not types or types & {each.name for each in one.of("resource_type")})
    ]


def in_order(found: Sequence[Namespace], given: Mapping[str, str]) -> list[Namespace]:
    """Return them as the query sorts them, the newest first by default. Raises Invalid."""
    key, direction = given.get("sort_key", "created_at"), given.get("sort_dir", "desc")
    if direction not in ("asc", "desc"):
        raise Invalid(f"Invalid sort direction: {direction}")
    if key not in _SORT_KEYS:
        raise Invalid(f"Invalid sort key: {key}")
    attribute = "name" if key == "namespace" else key
    named = sorted(found, key=lambda one: one.name)
    return sorted(
        named, key=lambda one: str(getattr(one, attribute) or ""), reverse=direction == "desc"
    )


def page(
    found: Sequence[Any], given: Mapping[str, str], name_of: Callable[[Any], str]
) -> tuple[list[Any], int]:
    """Return a page, and how many it may have. Raises Invalid, NotFound for its marker."""
    limit = digits.integer(given.get("limit", str(_DEFAULT)), _MOST)
    if limit is None:
        raise Invalid("limit param must be an integer")
    if limit < 0:
        raise Invalid("limit param must be positive")
    names, first = [name_of(one) for one in found], 0
    marker = given.get("marker")
    if marker is not None:
        if marker not in names:
            raise NotFound(f"Metadata definition {marker} was not found.")
        first = names.index(marker) + 1
    return list(found[first : first + limit]), limit
