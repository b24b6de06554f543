"""Parts that several schemas share; facts from nova/api/validation/parameter_types.py."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

Schema = dict[str, Any]

MAX_INT = 0x7FFFFFFF

NAME: Schema = {"type": "string", "format": "name", "minLength": 1, "maxLength": 255}
NAME_OR_NONE: Schema = {"oneOf": [NAME, {"type": "null"}]}
SPACED_NAME: Schema = {**NAME, "format": "spaced_name"}
DESCRIPTION: Schema = {
    "type": ["string", "null"],
    "format": "description",
    "minLength": 0,
    "maxLength": 255,
}
BOOLEAN: Schema = {
    "type": ["boolean", "string"],
    "enum": [
        *(True, "True", "TRUE", "true", "1", "ON", "On", "on", "YES", "Yes", "yes"),
        *(False, "False", "FALSE", "false", "0", "OFF", "Off", "off", "NO", "No", "no"),
    ],
}
POSITIVE: Schema = {
    "type": ["integer", "string"],
    "pattern": "^[0-9]*$",
    "minimum": 1,
    "minLength": 1,
}
NOT_NEGATIVE: Schema = {**POSITIVE, "minimum": 0}
SIZE: Schema = {
    "type": ["integer", "string"],
    "pattern": "^[0-9]+$",
    "minimum": 1,
    "maximum": MAX_INT,
}
SIZE_OR_ZERO: Schema = {**SIZE, "minimum": 0}
UUID: Schema = {"type": "string", "format": "uuid"}
UUID_OR_EMPTY: Schema = {
    "oneOf": [{"type": "string", "format": "uuid"}, {"type": "string", "maxLength": 0}]
}
HOSTNAME: Schema = {
    "type": "string",
    "pattern": "^[a-zA-Z0-9]+[a-zA-Z0-9-]*[a-zA-Z0-9]+$",
    "minLength": 2,
    "maxLength": 63,
}
FQDN: Schema = {
    "type": "string",
    "pattern": "^[a-zA-Z0-9-._]*$",
    "minLength": 1,
    "maxLength": 255,
}
IP_ADDRESS: Schema = {"type": "string", "oneOf": [{"format": "ipv4"}, {"format": "ipv6"}]}
TAG: Schema = {"type": "string", "pattern": "^[^,/]*$", "minLength": 1, "maxLength": 60}
MAX_TAGS = 50
METADATA_KEY = "^[a-zA-Z0-9-_:. ]{1,255}$"
METADATA: Schema = {
    "type": "object",
    "patternProperties": {METADATA_KEY: {"type": "string", "maxLength": 255}},
    "additionalProperties": False,
}

# --- query strings: each parameter is the list of its values

TEXT: Schema = {"type": "array", "items": {"type": "string"}}
REGEX: Schema = {"type": "array", "items": {"type": "string", "format": "regex"}}
MOMENT: Schema = {"type": "array", "items": {"type": "string", "format": "date-time"}}
LIMIT: Schema = {"type": "array", "items": NOT_NEGATIVE}
PAGING: Mapping[str, Schema] = {"limit": LIMIT, "marker": TEXT}


def one(schema: Schema) -> Schema:
    """Return a query parameter that may not be repeated."""
    return {**schema, "maxItems": 1}


def choice(*values: str) -> Schema:
    """Return a query parameter whose values are among these."""
    return {"type": "array", "items": {"type": "string", "enum": list(values)}}


def query(parameters: Mapping[str, Schema], *, more: bool) -> Schema:
    """Return a query string of these parameters; whether others are ignored or refused."""
    return {"type": "object", "properties": dict(parameters), "additionalProperties": more}


def body(key: str, inside: Schema) -> Schema:
    """Return a body of one key."""
    return {
        "type": "object",
        "properties": {key: inside},
        "required": [key],
        "additionalProperties": False,
    }


def record(properties: Mapping[str, Schema], required: Sequence[str] = ()) -> Schema:
    """Return an object of these properties and no others."""
    # `required` first: of several faults the message names the first.
    needed = {"required": list(required)} if required else {}
    return {
        "type": "object",
        "properties": dict(properties),
        **needed,
        "additionalProperties": False,
    }


def changed(schema: Schema, path: str, **properties: Schema | None) -> Schema:
    """Return a copy with properties added, or dropped (None), where `path` (`a.b`) leads.

    Names with dashes are written with underscores doubled (`changes__since`).
    """
    copied = copy.deepcopy(schema)
    place = copied
    for step in path.split("."):
        place = place["properties"][step]
        place = place.get("items", place)
    for name, value in properties.items():
        if value is None:
            place["properties"].pop(name)
        else:
            place["properties"][name] = value
    return copied
