"""Resource providers."""

from __future__ import annotations

from placement.schemas.common import Schema, Versioned, closed, text, uuid
from placement.schemas.inventories import ALL

_NAME = text(200, 0)
_PARENT: Schema = {"anyOf": [uuid(), {"type": "null"}]}
_ANY: Schema = {"type": "string"}

CREATE: Versioned = {
    "1.0": closed({"name": _NAME, "uuid": uuid()}, "name"),
    "1.14": closed({"name": _NAME, "uuid": uuid(), "parent_provider_uuid": _PARENT}, "name"),
}
MOST = 500
"""Providers that one request may create."""

_NEW = closed(
    {
        "uuid": uuid(),
        "name": text(200),
        "inventories": ALL | {"additionalProperties": False},
        "traits": {"type": "array", "items": text()},
    },
    "uuid",
    "name",
    "inventories",
    "traits",
)
CREATE_MANY: Versioned = {
    "1.0": closed(
        {
            "resource_providers": {
                "type": "array",
                "minItems": 1,
                "maxItems": MOST,
                "items": _NEW,
            }
        },
        "resource_providers",
    )
}
UPDATE: Versioned = {
    "1.0": closed({"name": _NAME}, "name"),
    "1.14": closed({"name": _NAME, "parent_provider_uuid": _PARENT}, "name"),
}
_1_0: Schema = {"name": _ANY, "uuid": uuid()}
_1_3 = _1_0 | {"member_of": _ANY}
_1_4 = _1_3 | {"resources": _ANY}
_1_14 = _1_4 | {"in_tree": uuid()}
LIST: Versioned = {
    "1.0": closed(_1_0),
    "1.3": closed(_1_3),
    "1.4": closed(_1_4),
    "1.14": closed(_1_14),
    "1.18": closed(_1_14 | {"required": _ANY}),
}
