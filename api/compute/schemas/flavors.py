"""Bodies and queries of `/flavors` and what is below."""

from __future__ import annotations

from api.compute.schemas import types
from api.compute.schemas.types import Schema, body, changed, query, record

_DESCRIPTION: Schema = {**types.DESCRIPTION, "maxLength": 65_535}

_CREATE = body(
    "flavor",
    record(
        {
            "name": types.NAME,
            "id": {
                "type": ["string", "number", "null"],
                "minLength": 1,
                "maxLength": 255,
                "pattern": "^(?! )[a-zA-Z0-9. _-]+(?<! )$",
            },
            "ram": types.SIZE,
            "vcpus": types.SIZE,
            "disk": types.SIZE_OR_ZERO,
            "OS-FLV-EXT-DATA:ephemeral": types.SIZE_OR_ZERO,
            "swap": types.SIZE_OR_ZERO,
            "rxtx_factor": {
                "type": ["number", "string"],
                "pattern": r"^[0-9]+(\.[0-9]+)?$",
                "exclusiveMinimum": 0,
                "maximum": 3.40282e38,
            },
            "os-flavor-access:is_public": types.BOOLEAN,
        },
        ["name", "ram", "vcpus", "disk"],
    ),
)
_CREATE_255 = changed(_CREATE, "flavor", description=_DESCRIPTION)

CREATE = {
    "2.1": _CREATE,
    "2.55": _CREATE_255,
    "2.102": changed(_CREATE_255, "flavor", rxtx_factor=None),
}
UPDATE = {"2.55": body("flavor", record({"description": _DESCRIPTION}, ["description"]))}

SORT_KEYS = (
    *("created_at", "description", "disabled", "ephemeral_gb", "flavorid", "id"),
    *("is_public", "memory_mb", "name", "root_gb", "rxtx_factor", "swap"),
    *("updated_at", "vcpu_weight", "vcpus"),
)
_FILTERS: dict[str, Schema] = {
    **types.PAGING,
    **dict.fromkeys(("is_public", "minRam", "minDisk"), types.TEXT),
    "sort_key": types.choice(*SORT_KEYS),
    "sort_dir": types.choice("asc", "desc"),
}
LIST = {
    "2.1": query(_FILTERS, more=True),
    "2.75": query(_FILTERS, more=False),
    "2.102": query(
        {
            **_FILTERS,
            "name": types.TEXT,
            "sort_key": types.choice(*(key for key in SORT_KEYS if key != "rxtx_factor")),
        },
        more=False,
    ),
}

_SPECS: Schema = {
    "type": "object",
    "patternProperties": {
        types.METADATA_KEY: {"type": ["string", "number"], "maxLength": 255},
    },
    "additionalProperties": False,
}
CREATE_SPECS = {"2.1": body("extra_specs", _SPECS)}
UPDATE_SPECS = {"2.1": {**_SPECS, "minProperties": 1, "maxProperties": 1}}

_PROJECT = record({"tenant": {"type": "string", "minLength": 1, "maxLength": 255}}, ["tenant"])
ADD_ACCESS = {"2.1": body("addTenantAccess", _PROJECT)}
REMOVE_ACCESS = {"2.1": body("removeTenantAccess", _PROJECT)}
