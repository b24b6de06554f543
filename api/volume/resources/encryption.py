"""`/types/{type_id}/encryption`: no type encrypts its volumes."""

from __future__ import annotations

from typing import Any

from api.volume.call import Call, operation
from api.volume.resources.types import find_type
from common.errors import Invalid, NotFound

_RULE = "volume_extension:volume_type_encryption"


class Encryption:
    """How volumes of a type are encrypted."""

    @operation(f"{_RULE}:get")
    def index(self, call: Call, type_id: str) -> Any:
        """Show that they aren't, by an empty object."""
        find_type(call, type_id)
        return {}

    @operation(f"{_RULE}:create")
    def create(self, call: Call, type_id: str) -> Any:
        """Refuse to encrypt."""
        find_type(call, type_id)
        raise Invalid("Volumes are not encrypted here.")

    @operation(f"{_RULE}:get")
    def item(self, call: Call, type_id: str, key: str) -> Any:
        """Find nothing."""
        raise _none(find_type(call, type_id).id)

    @operation(f"{_RULE}:update")
    def update(self, call: Call, type_id: str, key: str) -> Any:
        """Find nothing to change."""
        raise _none(find_type(call, type_id).id)

    @operation(f"{_RULE}:delete")
    def delete(self, call: Call, type_id: str, key: str) -> Any:
        """Find nothing to delete."""
        raise _none(find_type(call, type_id).id)


def _none(type_id: str) -> NotFound:
    return NotFound(f"Volume type encryption for type {type_id} does not exist.")
