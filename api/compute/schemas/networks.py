"""Bodies of floating addresses; facts from nova's schemas/floating_ips.py."""

from __future__ import annotations

from api.compute.schemas.types import Schema

_POOL: Schema = {"type": ["object", "null"], "properties": {"pool": {"type": ["string", "null"]}}}
NEW_FLOATING_IP = {"2.1": _POOL}
