"""Bodies and queries of `/os-server-groups`; facts from nova's schemas/server_groups.py."""

from __future__ import annotations

from collections.abc import Sequence

from api.compute.schemas import types
from api.compute.schemas.types import Schema, body, query, record
from common.resources.server_groups import MAX_PER_HOST, Policy

_STRICT = (Policy.ANTI_AFFINITY.value, Policy.AFFINITY.value)
_ALL = (*_STRICT, Policy.SOFT_ANTI_AFFINITY.value, Policy.SOFT_AFFINITY.value)


def _one_of(policies: Sequence[str]) -> Schema:
    wanted: Schema = {
        "type": "array",
        "items": {"type": "string", "enum": list(policies)},
        "uniqueItems": True,
        "minItems": 1,
        "maxItems": 1,
    }
    properties = {"name": types.NAME, "policies": wanted}
    return body("server_group", record(properties, ["name", "policies"]))


CREATE = {
    "2.1": _one_of(_STRICT),
    "2.15": _one_of(_ALL),
    "2.64": body(
        "server_group",
        record(
            {
                "name": types.NAME,
                "policy": {"type": "string", "enum": list(_ALL)},
                "rules": record({MAX_PER_HOST: types.POSITIVE}),
            },
            ["name", "policy"],
        ),
    ),
}
_LIST = {"all_projects": types.TEXT, "limit": types.LIMIT, "offset": types.LIMIT}
LIST = {"2.1": query(_LIST, more=True), "2.75": query(_LIST, more=False)}
