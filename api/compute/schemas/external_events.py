"""Bodies of external events; facts from nova's schemas/server_external_events.py."""

from __future__ import annotations

from api.compute.schemas import types
from api.compute.schemas.types import Schema, body, record

_NAMES = (
    *("network-changed", "network-vif-plugged", "network-vif-unplugged"),
    "network-vif-deleted",
)
#: version → the event that it brought
_LATER = {
    "2.51": "volume-extended",
    "2.76": "power-update",
    "2.82": "accelerator-request-bound",
    "2.93": "volume-reimaged",
}
#: events that need a tag
TAGGED = frozenset({"volume-extended", "power-update", "accelerator-request-bound"})


def _events(*names: str) -> Schema:
    event = record(
        {
            "name": {"type": "string", "enum": list(names)},
            "server_uuid": types.UUID,
            "status": {"type": "string", "enum": ["failed", "completed", "in-progress"]},
            "tag": {"type": "string", "maxLength": 255},
        },
        ["name", "server_uuid"],
    )
    return body("events", {"type": "array", "minItems": 1, "items": event})


CREATE = {"2.1": _events(*_NAMES)}
for _number, _since in enumerate(_LATER):
    CREATE[_since] = _events(*_NAMES, *list(_LATER.values())[: _number + 1])
