"""The bodies of metadata definitions: Glance's schemas, without references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.image.metadefs import schemas

_REFERENCE = "#/definitions/"


def _whole(schema: Mapping[str, Any]) -> Any:
    """Return a schema with what its references mean, and without what nobody may send."""
    definitions = schema.get("definitions", {})

    def resolved(part: Any) -> Any:
        if isinstance(part, list):
            return [resolved(each) for each in part]
        if not isinstance(part, Mapping):
            return part
        if "$ref" in part:
            return resolved(definitions[part["$ref"].removeprefix(_REFERENCE)])
        return {
            name: resolved(each)
            for name, each in part.items()
            if name != "definitions" and not (isinstance(each, Mapping) and each.get("readOnly"))
        }

    return resolved(schema)


_ONE: Mapping[str, Any] = {
    "namespaces": _whole(schemas.NAMESPACE),
    "properties": _whole(schemas.PROPERTY),
    "objects": _whole(schemas.OBJECT),
    "tags": _whole(schemas.TAG),
    "resource_types": _whole(schemas.RESOURCE_TYPE),
}
_MANY: Mapping[str, Any] = {**_ONE, "tags": _whole(schemas.TAGS)}


def bodies_at(path: str) -> tuple[Any, ...]:
    """Return the schemas of what is sent to a path below ``/v2/metadefs``."""
    *_, kind, last = path.split("/")
    return (_ONE[kind],) if last.startswith("{") else (_MANY[last],)
