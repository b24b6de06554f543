"""JSON schemas of metadata definitions: what users may send, and clients ask for.

Facts from glance's api/v2/metadef_*.py.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import jsonschema

from common.errors import Forbidden, Invalid

_Schema = dict[str, Any]

_TYPES = ["array", "boolean", "integer", "number", "object", "string", None]
_POSITIVE: _Schema = {"type": "integer", "minimum": 0}
_POSITIVE_0: _Schema = {"allOf": [{"$ref": "#/definitions/positiveInteger"}, {"default": 0}]}
_STRINGS: _Schema = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
_NAME: _Schema = {"type": "string", "maxLength": 80}
_TIME: _Schema = {"type": "string", "readOnly": True, "format": "date-time"}
_TIMES: Mapping[str, _Schema] = {"created_at": _TIME, "updated_at": _TIME}
_LINK: _Schema = {"type": "string", "readOnly": True}
_LINKS: Mapping[str, _Schema] = {"self": _LINK, "schema": _LINK}

_PROPERTY: Mapping[str, _Schema] = {
    "name": _NAME,
    "title": {"type": "string"},
    "description": {"type": "string"},
    "operators": {"type": "array", "items": {"type": "string"}},
    "type": {"type": "string", "enum": _TYPES},
    "required": {"$ref": "#/definitions/stringArray"},
    "minimum": {"type": "number"},
    "maximum": {"type": "number"},
    "maxLength": {"$ref": "#/definitions/positiveInteger"},
    "minLength": {"$ref": "#/definitions/positiveIntegerDefault0"},
    "pattern": {"type": "string", "format": "regex"},
    "enum": {"type": "array"},
    "readonly": {"type": "boolean"},
    "default": {},
    "items": {
        "type": "object",
        "properties": {"type": {"type": "string", "enum": _TYPES}, "enum": {"type": "array"}},
    },
    "maxItems": {"$ref": "#/definitions/positiveInteger"},
    "minItems": {"$ref": "#/definitions/positiveIntegerDefault0"},
    "uniqueItems": {"type": "boolean", "default": False},
    "additionalItems": {"type": "boolean"},
}
_DEFINITIONS: Mapping[str, _Schema] = {
    "positiveInteger": _POSITIVE,
    "positiveIntegerDefault0": _POSITIVE_0,
    "stringArray": _STRINGS,
    "property": {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "required": ["title", "type"],
            "properties": dict(_PROPERTY),
        },
    },
}


def _schema(
    name: str, properties: Mapping[str, _Schema], required: list[str], **more: Any
) -> _Schema:
    return {
        "name": name,
        "properties": dict(properties),
        "additionalProperties": False,
        "required": required,
        **more,
    }


def _collection(name: str, item: _Schema) -> _Schema:
    page = {each: {"type": "string"} for each in ("first", "next", "schema")}
    links = [
        {"rel": "first", "href": "{first}"},
        {"rel": "next", "href": "{next}"},
        {"rel": "describedby", "href": "{schema}"},
    ]
    items = {key: value for key, value in item.items() if key != "definitions"}
    made = {"name": name, "properties": {name: {"type": "array", "items": items}, **page}}
    if "definitions" in item:
        made["definitions"] = item["definitions"]
    return {**made, "links": links}


_ASSOCIATION: Mapping[str, _Schema] = {
    "name": _NAME,
    "prefix": _NAME,
    "properties_target": _NAME,
}
_OBJECT: Mapping[str, _Schema] = {
    "name": _NAME,
    "description": {"type": "string"},
    "required": {"$ref": "#/definitions/stringArray"},
    "properties": {"$ref": "#/definitions/property"},
}
NAMESPACE = _schema(
    "namespace",
    {
        "namespace": {**_NAME, "description": "The unique namespace text."},
        "display_name": {**_NAME, "description": "Name of the namespace for people."},
        "description": {"type": "string", "maxLength": 500},
        "visibility": {"type": "string", "enum": ["public", "private"]},
        "protected": {"type": "boolean"},
        "owner": {"type": "string", "maxLength": 255},
        **_TIMES,
        **_LINKS,
        "resource_type_associations": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {name: {"type": "string"} for name in _ASSOCIATION},
            },
        },
        "properties": {"$ref": "#/definitions/property"},
        "objects": {
            "type": "array",
            "items": {"type": "object", "properties": dict(_OBJECT)},
        },
        "tags": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
    },
    ["namespace"],
    definitions=dict(_DEFINITIONS),
)
RESOURCE_TYPE = _schema("resource_type_association", {**_ASSOCIATION, **_TIMES}, ["name"])
PROPERTY = _schema(
    "property",
    {**_PROPERTY, **_TIMES},
    ["type", "title", "name"],
    definitions={name: one for name, one in _DEFINITIONS.items() if name != "property"},
)
OBJECT = _schema(
    "object", {**_OBJECT, **_TIMES, **_LINKS}, ["name"], definitions=dict(_DEFINITIONS)
)
TAG = _schema("tag", {"name": _NAME, **_TIMES}, ["name"])
TAGS = _schema(
    "tags",
    {
        "tags": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": _NAME},
                "required": ["name"],
                "additionalProperties": False,
            },
        }
    },
    [],
)

#: by the last part of its path, below ``/v2/schemas/metadefs``
SCHEMAS: Mapping[str, _Schema] = {
    "namespace": NAMESPACE,
    "namespaces": _collection("namespaces", NAMESPACE),
    "resource_type": RESOURCE_TYPE,
    "resource_types": _collection("resource_type_associations", RESOURCE_TYPE),
    "property": PROPERTY,
    "properties": {
        "name": "properties",
        "properties": {
            "properties": {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "required": ["type", "title"],
                    "properties": dict(_PROPERTY),
                },
            },
            **{each: {"type": "string"} for each in ("first", "next", "schema")},
        },
        "definitions": {name: one for name, one in _DEFINITIONS.items() if name != "property"},
        "links": [
            {"rel": "first", "href": "{first}"},
            {"rel": "next", "href": "{next}"},
            {"rel": "describedby", "href": "{schema}"},
        ],
    },
    "object": OBJECT,
    "objects": _collection("objects", OBJECT),
    "tag": TAG,
    "tags": _collection("tags", TAG),
}

_READ_ONLY = ("self", "schema", "created_at", "updated_at")


def validated(body: Any, schema: _Schema) -> dict[str, Any]:
    """Return the body. Raises Invalid, and Forbidden for read-only fields."""
    if not isinstance(body, dict):
        raise Invalid("Body expected in request.")
    for name in _READ_ONLY:
        if name in body:
            raise Forbidden(f"Attribute '{name}' is read-only.")
    checked = copy.copy(schema) | {"type": "object"}
    checked.pop("name")
    found = jsonschema.Draft4Validator(checked, format_checker=_FORMATS).iter_errors(body)
    error = next(found, None)
    if error is not None:
        raise Invalid(
            f"Provided object does not match schema '{schema['name']}': {error.message[:500]}"
        )
    return body


_FORMATS = jsonschema.FormatChecker(formats=("regex",))
