"""How a host aggregate looks."""

from __future__ import annotations

from typing import Any

from api.compute.call import Call
from common import clock
from db.reads.hosts.aggregates import Aggregate


def detailed(call: Call, aggregate: Aggregate) -> dict[str, Any]:
    """Return a host aggregate with details."""
    view = without_contents(call, aggregate)
    return view | {"hosts": list(aggregate.hosts), "metadata": dict(aggregate.metadata)}


def without_contents(call: Call, aggregate: Aggregate) -> dict[str, Any]:
    """Return a host aggregate as the answer to its creation shows it: no hosts, no metadata."""
    view: dict[str, Any] = {
        "id": aggregate.id,
        "name": aggregate.name,
        "availability_zone": aggregate.zone,
        "created_at": clock.iso_microseconds(aggregate.created_at),
        "updated_at": clock.iso_microseconds(aggregate.updated_at),
        "deleted_at": None,
        "deleted": False,
    }
    return view | ({"uuid": aggregate.uuid} if call.version >= 41 else {})
