"""Bodies of security groups; facts from nova's schemas/security_groups.py."""

from __future__ import annotations

from api.compute.schemas import types
from api.compute.schemas.types import Schema, one, query

_NAME: Schema = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1, "pattern": r"\S"}},
    "required": ["name"],
    "additionalProperties": True,
}


def _action(name: str) -> Schema:
    return {
        "type": "object",
        "properties": {name: _NAME},
        "required": [name],
        "additionalProperties": True,
    }


ADD = {"2.1": _action("addSecurityGroup")}
REMOVE = {"2.1": _action("removeSecurityGroup")}

LIST = {"2.1": query({}, more=True), "2.102": query({}, more=False)}

_TEXT: Schema = {"type": "string", "minLength": 0, "maxLength": 255}


def _noun(name: str, properties: dict[str, Schema], required: list[str]) -> Schema:
    return {
        "type": "object",
        "properties": {
            name: {"type": "object", "properties": properties, "required": required},
        },
        "required": [name],
    }


CREATE_GROUP = {
    "2.1": _noun("security_group", {"name": _TEXT, "description": _TEXT}, ["name", "description"])
}
CREATE_RULE = {
    "2.1": _noun(
        "security_group_rule",
        {"parent_group_id": types.UUID, "group_id": {**types.UUID, "type": ["string", "null"]}},
        ["parent_group_id"],
    )
}
LIST_GROUPS = {"2.1": query({"limit": one(types.LIMIT), "offset": one(types.LIMIT)}, more=True)}
