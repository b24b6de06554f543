"""Queries of measurements."""

from __future__ import annotations

from api.compute.schemas.types import Schema, one, query
from common.messages.measurements import Period

_PERIOD: Schema = {
    "type": "array",
    "items": {"type": "string", "enum": [one.value for one in Period]},
}
_STORAGE: Schema = {
    "type": "array",
    "items": {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_.-]{0,99}$"},
}
OF_SERVER = {"2.1": query({"period": one(_PERIOD)}, more=False)}
OF_HOST = {"2.1": query({"period": one(_PERIOD), "storage": one(_STORAGE)}, more=False)}
