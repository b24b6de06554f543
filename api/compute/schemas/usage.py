"""Queries of usage; facts from nova/api/openstack/compute/schemas/simple_tenant_usage.py."""

from __future__ import annotations

from api.compute.schemas import types
from api.compute.schemas.types import Schema, query

_SHOW: dict[str, Schema] = dict.fromkeys(("start", "end"), types.TEXT)
_LIST: dict[str, Schema] = {**_SHOW, "detailed": types.TEXT}

LIST = {
    "2.1": query(_LIST, more=True),
    "2.40": query({**_LIST, **types.PAGING}, more=True),
    "2.75": query({**_LIST, **types.PAGING}, more=False),
}
SHOW = {
    "2.1": query(_SHOW, more=True),
    "2.40": query({**_SHOW, **types.PAGING}, more=True),
    "2.75": query({**_SHOW, **types.PAGING}, more=False),
}
