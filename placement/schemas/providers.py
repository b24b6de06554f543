"""Resource providers."""

from __future__ import annotations

from placement.schemas.common import Schema, Versioned, closed, text, uuid

_NAME = text(200, 0)
_PARENT: Schema = {"anyOf": [uuid(), {"type": "null"}]}
_ANY: Schema = {"type": "string"}

CREATE: Versioned = {
    (1, 0): closed({"name": _NAME, "uuid": uuid()}, "name"),
    (1, 14): closed({"name": _NAME, "uuid": uuid(), "parent_provider_uuid": _PARENT}, "name"),
}
UPDATE: Versioned = {
    (1, 0): closed({"name": _NAME}, "name"),
    (1, 14): closed({"name": _NAME, "parent_provider_uuid": _PARENT}, "name"),
}
_1_0: Schema = {"name": _ANY, "uuid": uuid()}
_1_3 = _1_0 | {"member_of": _ANY}
_1_4 = _1_3 | {"resources": _ANY}
_1_14 = _1_4 | {"in_tree": uuid()}
LIST: Versioned = {
    (1, 0): closed(_1_0),
    (1, 3): closed(_1_3),
    (1, 4): closed(_1_4),
    (1, 14): closed(_1_14),
    (1, 18): closed(_1_14 | {"required": _ANY}),
}
