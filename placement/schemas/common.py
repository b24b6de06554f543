"""Parts that several schemas share, and how refusals are worded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jsonschema.exceptions import best_match

from web import wording
from web.schemas import Refusal, Words

Schema = dict[str, Any]
#: microversion → the schema that it brought; None: no body is expected
Versioned = Mapping[str, Schema | None]

UUID = r"^[0-9a-fA-F-]{36}$"
NAME = r"^[A-Z0-9_]+$"
CUSTOM_NAME = r"^CUSTOM_[A-Z0-9_]+$"
NUMBERED = r"[1-9][0-9]*"
NAMED = r"[a-zA-Z0-9_-]{1,64}"
LARGEST = 0x7FFFFFFF
"""The largest amount: what an INTEGER column holds."""


def uuid() -> Schema:
    """Return a UUID, dashes optional."""
    return {"type": "string", "format": "uuid"}


def text(longest: int = 255, shortest: int = 1) -> Schema:
    """Return a string of bounded length."""
    return {"type": "string", "minLength": shortest, "maxLength": longest}


def closed(properties: Schema, *required: str, **more: Any) -> Schema:
    """Return an object with these properties and no others."""
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": list(required)} if required else {}) | more


def dictionary(pattern: str, values: Schema, *, least: int = 0) -> Schema:
    """Return an object whose keys match a pattern."""
    return {
        "type": "object",
        "patternProperties": {pattern: values},
        "additionalProperties": False,
        "minProperties": least,
    }


def _described(error: Refusal) -> str:
    """Return the error, its rule, and its place: jsonschema's text without the values."""
    rule = _index("schema", list(error.relative_schema_path)[:-1])
    where = _index("instance", error.absolute_path)
    said = wording.sentence(error)
    return f"{said}\n\nFailed validating {error.validator!r} in {rule}\n\nOn {where}"


def _index(name: str, path: Iterable[object]) -> str:
    return name + "".join(f"[{part!r}]" for part in path)


BODY = Words(_described, best_match, complaint="JSON does not validate")
QUERY = Words(_described, best_match, complaint="Invalid query string parameters")
