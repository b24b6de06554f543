"""Queries of the what-if resources, and of the capacity."""

from __future__ import annotations

from api.compute.schemas import types
from api.compute.schemas.types import Schema, one, query

_WORDS: Schema = {
    "type": "array",
    "items": {"type": "string", "minLength": 1, "maxLength": 255},
}
_HOSTS: Schema = {"type": "array", "items": types.FQDN, "maxItems": 100}

SCHEDULE = {"2.1": query({"without": _HOSTS}, more=False)}
CAPACITY = {
    "2.1": query(
        {
            "flavor": one(_WORDS),
            "image": one(_WORDS),
            "network": {"type": "array", "items": types.UUID},
            "availability_zone": one(_WORDS),
            "without": _HOSTS,
        },
        more=False,
    )
    | {"required": ["flavor"]}
}
TOTAL = {"2.1": query({}, more=False)}
REBALANCE = {"2.1": query({"limit": types.LIMIT}, more=False)}
