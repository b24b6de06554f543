"""The names of an image's attributes: what no property of an image may be named. Pure.

Facts from glance's api/v2/images.py.
"""

from __future__ import annotations

from common.errors import Forbidden, Invalid

#: those that users give
GIVEN = (
    *("name", "visibility", "protected", "os_hidden", "owner", "tags", "min_disk", "min_ram"),
    *("disk_format", "container_format"),
)
_READ_ONLY = frozenset(
    {
        *("id", "status", "size", "virtual_size", "checksum", "os_hash_algo", "os_hash_value"),
        *("created_at", "updated_at", "self", "file", "schema", "direct_url", "stores"),
    }
)
_RESERVED = frozenset({"location", "deleted", "deleted_at", "locations"})
_RESERVED_PREFIX = "os_glance"


def require_writable(name: str) -> None:
    """Raise Forbidden for what nobody sets by its name."""
    if name in _READ_ONLY:
        raise Forbidden(f"Attribute '{name}' is read-only.")
    if name in _RESERVED or name.startswith(_RESERVED_PREFIX):
        raise Forbidden(f"Attribute '{name}' is reserved.")


def require_property(name: str) -> None:
    """Raise Forbidden, or Invalid, for a name that no property can have."""
    require_writable(name)
    if name in GIVEN:
        raise Invalid(f"{name} is an attribute of images: it can't be among an image's metadata.")


def is_property(name: str) -> bool:
    """Return whether an image may have a property of this name."""
    taken = name in _READ_ONLY or name in _RESERVED or name in GIVEN
    return not taken and not name.startswith(_RESERVED_PREFIX)
