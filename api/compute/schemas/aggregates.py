"""Bodies of `/os-aggregates`; facts from nova/api/openstack/compute/schemas/aggregates.py."""

from __future__ import annotations

from api.compute.schemas import types
from api.compute.schemas.types import Schema, body, record

_ZONE: Schema = {
    "oneOf": [
        {"type": "string", "format": "az_name", "minLength": 1, "maxLength": 255},
        {"type": "null"},
    ]
}
CREATE = {
    "2.1": body("aggregate", record({"name": types.NAME, "availability_zone": _ZONE}, ["name"]))
}
UPDATE = {
    "2.1": body(
        "aggregate",
        {
            **record({"name": types.SPACED_NAME, "availability_zone": _ZONE}),
            "anyOf": [{"required": ["name"]}, {"required": ["availability_zone"]}],
        },
    )
}
_HOST = record({"host": types.FQDN}, ["host"])
ADD_HOST = {"2.1": body("add_host", _HOST)}
REMOVE_HOST = {"2.1": body("remove_host", _HOST)}
_METADATA: Schema = {
    "type": "object",
    "patternProperties": {types.METADATA_KEY: {"type": ["string", "null"], "maxLength": 255}},
    "additionalProperties": False,
}
SET_METADATA = {"2.1": body("set_metadata", record({"metadata": _METADATA}, ["metadata"]))}
CACHE_IMAGES = {
    "2.81": body(
        "cache",
        {"type": "array", "minItems": 1, "items": record({"id": types.UUID}, ["id"])},
    )
}
