"""What an image is after a change (pure). Refusals are Glance's (glance/api/v2/images.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from common.errors import Conflict, Forbidden, TooLarge
from common.resources.image_attributes import require_writable
from conductor.rpc.images import ImageEdit

#: attribute of the API → column
COLUMNS: Mapping[str, str] = {
    "name": "name",
    "visibility": "visibility",
    "protected": "protected",
    "os_hidden": "hidden",
    "tags": "tags",
    "owner": "project_id",
    "min_disk": "min_disk_gib",
    "min_ram": "min_ram_mib",
    "disk_format": "disk_format",
    "container_format": "container_format",
}
#: those of an operator's image that its storage and the configuration don't say
_OPERATORS = frozenset({"visibility", "os_hidden", "tags"})
_FORMATS = frozenset({"disk_format", "container_format"})

#: Glance's ``image_property_quota`` and ``image_tag_quota``
MOST_PROPERTIES, MOST_TAGS = 128, 128


@dataclass
class _Draft:
    columns: dict[str, Any] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)


def after(row: Any, edits: Sequence[ImageEdit]) -> dict[str, Any]:
    """Return the columns that change.

    Raises Conflict for a property that doesn't exist, TooLarge, Forbidden.
    """
    draft = _Draft(properties=dict(row.properties))
    for edit in edits:
        require_writable(edit.name)
        _require_own(row, edit.name)
        if edit.name in COLUMNS:
            _attribute(draft, row, edit)
        else:
            _property(draft, edit)
    if draft.properties != dict(row.properties):
        draft.columns["properties"] = draft.properties
        require_few("properties", len(draft.properties), MOST_PROPERTIES, len(row.properties))
    if "tags" in draft.columns:
        require_few("tags", len(draft.columns["tags"]), MOST_TAGS)
    return draft.columns


def require_few(what: str, number: int, most: int, before: int = 0) -> None:
    """Raise TooLarge if there are more than ``most``, unless there are no more than before."""
    if number > max(most, before):
        raise TooLarge(
            f"The limit has been exceeded on the number of allowed image {what}. "
            f"Attempted: {number}, Maximum: {most}"
        )


def _require_own(row: Any, name: str) -> None:
    if row.project_id is None and name not in _OPERATORS:
        raise Forbidden(
            f"Image {row.id} is the operators': the {name} of it is what the import storages and "
            "the configuration say."
        )


def _attribute(draft: _Draft, row: Any, edit: ImageEdit) -> None:
    if edit.op == "remove":
        raise Forbidden(f"Property {edit.name} may not be removed.")
    column = COLUMNS[edit.name]
    now = draft.columns.get(column, getattr(row, column))
    if edit.name in _FORMATS and edit.value != now and row.status != "queued":
        raise Forbidden(f"Attribute {edit.name} can be only replaced for a queued image.")
    draft.columns[column] = edit.value


def _property(draft: _Draft, edit: ImageEdit) -> None:
    if edit.op != "add" and edit.name not in draft.properties:
        raise Conflict(f"Property {edit.name} does not exist.")
    if edit.op == "remove":
        del draft.properties[edit.name]
    else:
        draft.properties[edit.name] = edit.value
