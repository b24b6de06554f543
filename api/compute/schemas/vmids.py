"""Queries of VMIDs."""

from __future__ import annotations

from api.compute.schemas import types
from api.compute.schemas.types import Schema, one, query

_VMID: Schema = {"type": "array", "items": {"type": "string", "pattern": "^[0-9]{1,9}$"}}

LIST = {
    "2.1": query(
        {
            "limit": one(types.LIMIT),
            "state": one(types.TEXT),
            "cluster": one(types.TEXT),
            "vmid": one(_VMID),
        },
        more=False,
    )
}
