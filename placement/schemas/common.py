"""Patterns that several schemas use, and what checks a value against a schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import fastjsonschema
import jsonschema

from common import wording
from common.errors import Invalid
from common.ids import is_uuid
from placement.microversions import Version

Schema = dict[str, Any]
#: a schema by the oldest microversion it counts for
Versioned = Mapping[Version, Schema | None]

UUID = r"^[0-9a-fA-F-]{36}$"
NAME = r"^[A-Z0-9_]+$"
CUSTOM_NAME = r"^CUSTOM_[A-Z0-9_]+$"
NUMBERED = r"[1-9][0-9]*"
NAMED = r"[a-zA-Z0-9_-]{1,64}"
LARGEST = 0x7FFFFFFF
"""The largest amount: what an INTEGER column holds."""

_formats = jsonschema.FormatChecker(formats=())


@_formats.checks("uuid")
def _uuid_format(value: object) -> bool:
    return not isinstance(value, str) or is_uuid(value)


def uuid() -> Schema:
    """A UUID, dashes optional."""
    return {"type": "string", "format": "uuid"}


def text(longest: int = 255, shortest: int = 1) -> Schema:
    """A string of bounded length."""
    return {"type": "string", "minLength": shortest, "maxLength": longest}


def closed(properties: Schema, *required: str, **more: Any) -> Schema:
    """An object with these properties and no others."""
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": list(required)} if required else {}) | more


def dictionary(pattern: str, values: Schema, *, least: int = 0) -> Schema:
    """An object whose keys match a pattern."""
    return {
        "type": "object",
        "patternProperties": {pattern: values},
        "additionalProperties": False,
        "minProperties": least,
    }


def at(versioned: Versioned, version: Version) -> Schema | None:
    """Return the schema that counts at a version; None: there is no body then."""
    return versioned[max(since for since in versioned if since <= version)]


class Validator:
    """A compiled schema. The words of a refusal come from jsonschema, which clients know."""

    def __init__(self, schema: Schema) -> None:
        self._accepts = fastjsonschema.compile(
            schema, formats={"uuid": is_uuid}, use_default=False
        )
        self._schema = schema

    def check(self, value: Any, complaint: str) -> None:
        """Raise Invalid, the text begins with `complaint`, unless the value is as it must be."""
        try:
            self._accepts(value)
        except fastjsonschema.JsonSchemaException as refusal:
            try:
                jsonschema.validate(value, self._schema, format_checker=_formats)
            except jsonschema.ValidationError as worded:
                raise Invalid(f"{complaint}: {_described(worded)}") from worded
            raise Invalid(f"{complaint}: {refusal}") from refusal


def _described(error: jsonschema.ValidationError) -> str:
    """What is wrong, by which rule, and where: like jsonschema's text, without the values."""
    rule = _index("schema", list(error.relative_schema_path)[:-1])
    where = _index("instance", error.absolute_path)
    said = wording.sentence(error)
    return f"{said}\n\nFailed validating {error.validator!r} in {rule}\n\nOn {where}"


def _index(name: str, path: Iterable[object]) -> str:
    return name + "".join(f"[{part!r}]" for part in path)


@cache
def _compiled(key: int) -> Validator:
    return Validator(_SCHEMAS[key])


_SCHEMAS: dict[int, Schema] = {}


def check(value: Any, schema: Schema, complaint: str) -> None:
    """Raise Invalid unless `value` fits `schema`, a constant: it is compiled once."""
    _SCHEMAS.setdefault(id(schema), schema)
    _compiled(id(schema)).check(value, complaint)
