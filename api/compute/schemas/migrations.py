"""Queries of migrations; facts from nova/api/openstack/compute/schemas/migrations.py."""

from __future__ import annotations

from api.compute.schemas import types
from api.compute.schemas.types import Schema, body, one, query

_FILTERS: dict[str, Schema] = dict.fromkeys(
    ("hidden", "host", "instance_uuid", "source_compute", "status", "migration_type"), types.TEXT
)
_PAGES: dict[str, Schema] = {
    **_FILTERS,
    "limit": one(types.LIMIT),
    "marker": one(types.TEXT),
    "changes-since": one(types.MOMENT),
}
_UNTIL: dict[str, Schema] = {**_PAGES, "changes-before": one(types.MOMENT)}
_OWNERS: dict[str, Schema] = {"user_id": one(types.TEXT), "project_id": one(types.TEXT)}

LIST = {
    "2.1": query(_FILTERS, more=True),
    "2.59": query(_PAGES, more=False),
    "2.66": query(_UNTIL, more=False),
    "2.80": query({**_UNTIL, **_OWNERS}, more=False),
}
FORCE_COMPLETE = {"2.22": body("force_complete", {"type": "null"})}
