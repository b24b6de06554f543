"""Bodies and queries of images; facts from nova's schemas/images.py and image_metadata.py."""

from __future__ import annotations

from api.compute.schemas import types
from api.compute.schemas.types import Schema, body, one, query

_PAGES: dict[str, Schema] = {
    "limit": one(types.LIMIT),
    "page_size": one(types.LIMIT),
    "offset": one(types.LIMIT),
}
LIST = {"2.1": query(_PAGES, more=True)}
SET_METADATA = {"2.1": body("metadata", types.METADATA)}
SET_ITEM = {"2.1": body("meta", {**types.METADATA, "minProperties": 1, "maxProperties": 1})}
