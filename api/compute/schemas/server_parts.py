"""Bodies and queries of a server's metadata, tags and actions."""

from __future__ import annotations

from api.compute.schemas import types
from api.compute.schemas.types import Schema, body, one, query

SET_METADATA = {"2.1": body("metadata", types.METADATA)}
SET_ITEM = {"2.1": body("meta", {**types.METADATA, "minProperties": 1, "maxProperties": 1})}

SET_TAGS = {
    "2.26": body("tags", {"type": "array", "items": types.TAG, "maxItems": types.MAX_TAGS})
}
ANY_QUERY = {"2.1": query({}, more=True)}

_PAGES: dict[str, Schema] = {
    "limit": one(types.LIMIT),
    "marker": one(types.TEXT),
    "changes-since": one(types.MOMENT),
}
LIST_ACTIONS = {
    "2.1": query({}, more=True),
    "2.58": query(_PAGES, more=False),
    "2.66": query({**_PAGES, "changes-before": one(types.MOMENT)}, more=False),
}
