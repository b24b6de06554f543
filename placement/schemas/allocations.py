"""Allocations, candidates and usages."""

from __future__ import annotations

from placement.schemas.common import (
    NAME,
    NAMED,
    NUMBERED,
    UUID,
    Schema,
    Versioned,
    closed,
    dictionary,
    text,
    uuid,
)
from placement.schemas.inventories import REPLACEMENT

_RESOURCES = dictionary(NAME, {"type": "integer", "minimum": 1}, least=1)
_LIST: Schema = {
    "type": "array",
    "minItems": 1,
    "items": closed(
        {"resource_provider": closed({"uuid": uuid()}, "uuid"), "resources": _RESOURCES},
        "resource_provider",
        "resources",
    ),
}
_OWNER: Schema = {"project_id": text(), "user_id": text()}
_PER_PROVIDER = closed({"generation": {"type": "integer"}, "resources": _RESOURCES}, "resources")
_GENERATION: Schema = {"consumer_generation": {"type": ["integer", "null"]}}
_MAPPINGS: Schema = {
    "mappings": {
        "type": "object",
        "minProperties": 1,
        "patternProperties": {NAMED: {"type": "array", "minItems": 1, "items": uuid()}},
    }
}
_TYPE: Schema = {"consumer_type": {**text(), "pattern": NAME}}


def _consumer(least: int, *more: Schema, required: tuple[str, ...] = ()) -> Schema:
    properties: Schema = {"allocations": dictionary(UUID, _PER_PROVIDER, least=least), **_OWNER}
    for some in more:
        properties |= some
    return closed(properties, "allocations", "project_id", "user_id", *required)


_1_13 = _consumer(0)
_1_28 = _consumer(0, _GENERATION, required=("consumer_generation",))
_1_34 = _consumer(0, _GENERATION, _MAPPINGS, required=("consumer_generation",))
_1_38 = _consumer(
    0, _GENERATION, _MAPPINGS, _TYPE, required=("consumer_generation", "consumer_type")
)
PUT: Versioned = {
    "1.0": closed({"allocations": _LIST}, "allocations"),
    "1.8": closed({"allocations": _LIST, **_OWNER}, "allocations", "project_id", "user_id"),
    "1.12": _consumer(1),
    "1.28": _1_28,
    "1.34": _1_34,
    "1.38": _1_38,
}
POST: Versioned = {
    since: dictionary(UUID, one, least=1)
    for since, one in {"1.13": _1_13, "1.28": _1_28, "1.34": _1_34, "1.38": _1_38}.items()
}

_PER_REQUEST = {"1.30": _1_28, "1.34": _1_34, "1.38": _1_38}
RESHAPE: Versioned = {
    since: closed(
        {
            "inventories": dictionary(UUID, REPLACEMENT, least=1),
            "allocations": dictionary(UUID, one),
        },
        "inventories",
        "allocations",
    )
    for since, one in _PER_REQUEST.items()
}

_ANY: Schema = {"type": "string"}
_1_10: Schema = {"resources": _ANY}
_1_16 = _1_10 | {"limit": {"type": "string", "pattern": r"^[1-9][0-9]*$"}}
_1_17 = _1_16 | {"required": _ANY}
_1_25: Schema = {
    "limit": _1_16["limit"],
    "group_policy": {"type": "string", "enum": ["none", "isolate"]},
}
_1_35 = _1_25 | {"root_required": _ANY}


def _grouped(properties: Schema, names: tuple[str, ...], suffix: str) -> Schema:
    patterns = {rf"^{name}({suffix})?$": _ANY for name in names}
    return closed(properties, patternProperties=patterns)


_GROUP = ("resources", "required", "member_of")
_TREE = (*_GROUP, "in_tree")
CANDIDATES: Versioned = {
    "1.10": closed(_1_10, "resources"),
    "1.16": closed(_1_16, "resources"),
    "1.17": closed(_1_17, "resources"),
    "1.21": closed(_1_17 | {"member_of": _ANY}, "resources"),
    "1.25": _grouped(_1_25, _GROUP, NUMBERED),
    "1.31": _grouped(_1_25, _TREE, NUMBERED),
    "1.33": _grouped(_1_25, _TREE, NAMED),
    "1.35": _grouped(_1_35, _TREE, NAMED),
    "1.36": _grouped(_1_35 | {"same_subtree": _ANY}, _TREE, NAMED),
}
MOST_RELEASED = 100
"""Consumers that one request deletes."""

RELEASE: Versioned = {
    "1.0": closed(
        {
            "release": {
                "type": "array",
                "minItems": 1,
                "maxItems": MOST_RELEASED,
                "items": uuid(),
            }
        },
        "release",
    )
}
MOST_RANKED = 100
"""Providers of one ranked claim."""

RANKED: Versioned = {
    "1.0": closed(
        {
            "providers": {
                "type": "array",
                "minItems": 1,
                "maxItems": MOST_RANKED,
                "items": uuid(),
            },
            "resources": _RESOURCES,
            **_OWNER,
        },
        "providers",
        "resources",
        "project_id",
        "user_id",
    )
}
LIST_ALL: Versioned = {"1.0": closed({"marker": uuid()})}
USAGES: Versioned = {
    "1.9": closed(_OWNER, "project_id"),
    "1.38": closed(
        _OWNER | {"consumer_type": {**text(), "pattern": NAME + r"|^all$|^unknown$"}},
        "project_id",
    ),
}
