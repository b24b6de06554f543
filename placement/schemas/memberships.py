"""Traits and aggregates of providers, and the lists of traits and resource classes."""

from __future__ import annotations

from placement.schemas.common import CUSTOM_NAME, Schema, Versioned, closed, text, uuid

_GENERATION: Schema = {"resource_provider_generation": {"type": "integer"}}
_UUIDS: Schema = {"type": "array", "items": uuid(), "uniqueItems": True}
_CUSTOM: Schema = {"type": "string", "pattern": CUSTOM_NAME, "maxLength": 255}

AGGREGATES: Versioned = {
    "1.1": _UUIDS,
    "1.19": closed(
        {"aggregates": _UUIDS} | _GENERATION, "aggregates", "resource_provider_generation"
    ),
}
MOST = 500
"""Providers whose traits and aggregates one request reads."""

MANY: Versioned = {
    "1.0": closed(
        {
            "resource_providers": {
                "type": "array",
                "minItems": 1,
                "maxItems": MOST,
                "items": uuid(),
            }
        },
        "resource_providers",
    )
}
TRAITS: Versioned = {
    "1.6": closed(
        {"traits": {"type": "array", "items": text()}} | _GENERATION,
        "traits",
        "resource_provider_generation",
    )
}
TRAIT_LIST: Versioned = {
    "1.6": closed({"name": {"type": "string"}, "associated": {"type": "string"}})
}
CUSTOM_TRAIT: Schema = _CUSTOM
RESOURCE_CLASS: Schema = closed({"name": _CUSTOM}, "name")
CREATE_CLASS: Versioned = {"1.2": RESOURCE_CLASS}
PUT_CLASS: Versioned = {"1.2": RESOURCE_CLASS, "1.7": None}
