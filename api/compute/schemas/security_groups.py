"""Bodies of security groups; facts from nova's schemas/security_groups.py."""

from __future__ import annotations

from api.compute.schemas.types import Schema, query

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
