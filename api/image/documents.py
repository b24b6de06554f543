"""What users send of images: new ones, and changes to them (pure), in Glance's words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from common import ids
from common.errors import Forbidden, Invalid
from common.resources.image_attributes import require_writable
from conductor.rpc.images import ImageEdit, NewImage

#: content type of a change → how it is written: ``{"op", "path"}``, or ``{op: path}``
PATCHES: Mapping[str, bool] = {
    "application/openstack-images-v2.1-json-patch": True,
    "application/openstack-images-v2.0-json-patch": False,
}
VISIBILITIES = ("community", "public", "private", "shared")
#: what clusters make disks of; others are refused before their data are sent
DISK_FORMATS = ("qcow2", "raw", "vmdk", "iso")
CONTAINER_FORMATS = ("bare",)

_LONGEST = 255
_MOST = 2**31 - 1
_OPERATIONS = ("add", "remove", "replace")


def new_image(body: Any, project_id: str) -> NewImage:
    """Return the image that a body describes. Raises Invalid, Forbidden."""
    if not isinstance(body, dict):
        raise Invalid("Provided object does not match schema 'image': it is no object")
    said = dict(body)
    image_id = said.pop("id", None)
    for name, value in said.items():
        _require_writable(name)
        _require_valid(name, value)
    given = {name: _stored(name, said.pop(name)) for name in _ATTRIBUTES if name in said}
    return NewImage(
        project_id=given.get("owner", project_id),
        id=_id(image_id) if "id" in body else None,
        name=given.get("name", ""),
        visibility=given.get("visibility", "shared"),
        disk_format=given.get("disk_format", ""),
        container_format=given.get("container_format", ""),
        min_disk_gib=given.get("min_disk", 0),
        min_ram_mib=given.get("min_ram", 0),
        protected=given.get("protected", False),
        hidden=given.get("os_hidden", False),
        tags=tuple(given.get("tags", ())),
        properties=said,
    )


def edits(body: Any, *, by_path: bool) -> list[ImageEdit]:
    """Return the steps of a change. Raises Invalid, Forbidden."""
    if not isinstance(body, list):
        raise Invalid("Request body must be a JSON array of operation objects.")
    return [_edit(step, by_path) for step in body]


def metadata_edits(had: Mapping[str, str], wanted: Mapping[str, str]) -> list[ImageEdit]:
    """Return the steps of a change after which an image has these properties and no others.

    As ``edits`` of a PATCH that says the same: names of attributes are attributes, too.
    """
    removed = [{"op": "remove", "path": _pointer(name)} for name in had if name not in wanted]
    added = [
        {"op": "add", "path": _pointer(name), "value": value}
        for name, value in wanted.items()
        if had.get(name) != value
    ]
    return edits([*removed, *added], by_path=True)


def _pointer(name: str) -> str:
    return "/" + name.replace("~", "~0").replace("/", "~1")


def require_tag(tag: str) -> None:
    """Raise Invalid for a tag that is too long, or can't be stored."""
    if len(tag) > _LONGEST or "\x00" in tag:
        raise Invalid(f"Could not update image: a tag has at most {_LONGEST} characters.")


# --- changes


def _edit(step: Any, by_path: bool) -> ImageEdit:
    if not isinstance(step, dict):
        raise Invalid("Operations must be JSON objects.")
    op, pointer = _operation_and_path(step) if by_path else _named(step)
    name = _name(pointer)
    _require_writable(name)
    if op == "remove":
        return ImageEdit(op, name)
    if "value" not in step:
        raise Invalid(f'Operation "{op}" requires a member named "value".')
    _require_valid(name, step["value"])
    return ImageEdit(op, name, _stored(name, step["value"]))


def _operation_and_path(step: Mapping[str, Any]) -> tuple[str, Any]:
    known = ", ".join(_OPERATIONS)
    op = step.get("op")
    if op is None:
        raise Invalid(
            f"Unable to find `op` in JSON Schema change. It must be one of the following: {known}."
        )
    if op not in _OPERATIONS:
        raise Invalid(f"Invalid operation: `{op}`. It must be one of the following: {known}.")
    if "path" not in step:
        raise Invalid("Unable to find 'path' in JSON Schema change")
    return str(op), step["path"]


def _named(step: Mapping[str, Any]) -> tuple[str, Any]:
    ops = [op for op in _OPERATIONS if op in step]
    if len(ops) != 1:
        raise Invalid(
            "Operation objects must contain exactly one member named "
            '"add", "remove", or "replace".'
        )
    return ops[0], step[ops[0]]


def _name(pointer: Any) -> str:
    """Return the attribute that a JSON pointer names."""
    if not isinstance(pointer, str) or not pointer.startswith("/"):
        raise Invalid(f'Pointer `{pointer}` does not start with "/".')
    if re.search("~([^01]|$)", pointer):
        raise Invalid(
            f'Pointer `{pointer}` contains "~" not part of a recognized escape sequence.'
        )
    parts = [part.replace("~1", "/").replace("~0", "~").strip() for part in pointer.split("/")]
    if parts[1] == "locations":
        raise Forbidden("It's not allowed to change locations if locations are invisible.")
    if len(parts) != 2 or not parts[1]:
        raise Invalid(f"Invalid JSON pointer for this resource: '{pointer}'")
    return parts[1]


# --- attributes


def _require_writable(name: str) -> None:
    require_writable(name)
    if len(name) > _LONGEST:
        raise Invalid("Custom property should not be greater than 255 characters.")


def _require_valid(name: str, value: Any) -> None:
    reason = _ATTRIBUTES.get(name, _text)(value)
    if reason is not None:
        raise Invalid(f"Provided object does not match schema 'image': {name} {reason}")


def _id(value: Any) -> str:
    if not isinstance(value, str) or len(value) != 36 or not ids.is_uuid(value):
        raise Invalid("Provided object does not match schema 'image': id is no UUID")
    return value.lower()


def _stored(name: str, value: Any) -> Any:
    """Return the value to store: "" for None; tags sorted and without duplicates."""
    if name == "tags":
        return sorted(set(value))
    return "" if value is None else value


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) else "is no string"


def _short(value: Any) -> str | None:
    return _text(value) or (f"is longer than {_LONGEST}" if len(value) > _LONGEST else None)


def _maybe_short(value: Any) -> str | None:
    return None if value is None else _short(value)


def _owner(value: Any) -> str | None:
    # Images without an owner are the operators', on the clusters' storages.
    return "is no project" if value in (None, "") else _short(value)


def _truth(value: Any) -> str | None:
    return None if isinstance(value, bool) else "is no boolean"


def _size(value: Any) -> str | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return "is no integer"
    return None if 0 <= value <= _MOST else f"is not from 0 to {_MOST}"


def _tags(value: Any) -> str | None:
    if not isinstance(value, list):
        return "is no array"
    return next((reason for reason in map(_short, value) if reason), None)


def _one_of(values: Sequence[str | None]) -> Callable[[Any], str | None]:
    known: Iterable[str] = (str(value) for value in values if value is not None)
    reason = f"is not one of {', '.join(known)}"
    return lambda value: None if value in values else reason


#: attribute → why a value is refused, or None
_ATTRIBUTES: Mapping[str, Callable[[Any], str | None]] = {
    "name": _maybe_short,
    "visibility": _one_of(VISIBILITIES),
    "protected": _truth,
    "os_hidden": _truth,
    "owner": _owner,
    "tags": _tags,
    "min_disk": _size,
    "min_ram": _size,
    "disk_format": _one_of((None, *DISK_FORMATS)),
    "container_format": _one_of((None, *CONTAINER_FORMATS)),
}
