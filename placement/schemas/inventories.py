"""Inventories."""

from __future__ import annotations

from placement.schemas.common import LARGEST, NAME, Schema, Versioned, closed


def _amount(least: int) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": LARGEST}


_GENERATION: Schema = {"resource_provider_generation": {"type": "integer"}}
_VALUES: Schema = {
    "total": _amount(1),
    "reserved": _amount(0),
    "min_unit": _amount(1),
    "max_unit": _amount(1),
    "step_size": _amount(1),
    "allocation_ratio": {"type": "number", "maximum": 3.40282e38},
}
_ONE = closed(_GENERATION | _VALUES, "total")
_NAMED: Schema = {"resource_class": {"type": "string", "pattern": NAME}}

CREATE: Versioned = {"1.0": closed(_GENERATION | _VALUES | _NAMED, "total", "resource_class")}
CHANGE: Versioned = {"1.0": closed(_GENERATION | _VALUES, "total", "resource_provider_generation")}
#: of a name that no resource class can have too: that it is unknown is said of right values
ALL: Schema = {
    "type": "object",
    "patternProperties": {NAME: _ONE},
    "additionalProperties": _ONE,
}
REPLACEMENT = closed(
    _GENERATION | {"inventories": ALL},
    "resource_provider_generation",
    "inventories",
)
REPLACE: Versioned = {"1.0": REPLACEMENT}
