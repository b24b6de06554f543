"""Bodies and queries of bulk migrations."""

from __future__ import annotations

from api.compute.schemas import types
from api.compute.schemas.types import Schema, one, query, record

#: the most moves of one bulk migration that are under way
MAX_AT_ONCE = 100
#: the most moves of one rebalance
MAX_MOVES = 100

_AT_ONCE: Schema = {"type": "integer", "minimum": 1, "maximum": MAX_AT_ONCE}
#: a year; an option bounds how long a drain really waits
_WAIT: Schema = {"type": "integer", "minimum": 0, "maximum": 365 * 86_400}
_DRAIN: Schema = record(
    {
        "host": types.FQDN,
        "at_once": _AT_ONCE,
        "live_only": {"type": "boolean"},
        "wait_seconds": _WAIT,
    },
    ["host"],
)
_REBALANCE: Schema = record(
    {"limit": {"type": "integer", "minimum": 1, "maximum": MAX_MOVES}, "at_once": _AT_ONCE}
)
CREATE = {
    "2.1": record(
        {
            "bulk_migration": {
                **record({"drain": _DRAIN, "rebalance": _REBALANCE}),
                "minProperties": 1,
                "maxProperties": 1,
            }
        },
        ["bulk_migration"],
    )
}
LIST = {
    "2.1": query(
        {"limit": one(types.LIMIT), "host": one({"type": "array", "items": types.FQDN})},
        more=False,
    )
}
_BOOLEANS: Schema = {"type": "array", "items": types.BOOLEAN}
PLAN = {"2.1": query({"live_only": one(_BOOLEANS)}, more=False)}


def steering(action: str) -> dict[str, Schema]:
    """Return the body of an action without parameters."""
    return {"2.1": record({action: {"type": "null"}}, [action])}
