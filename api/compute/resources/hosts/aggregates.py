"""`/os-aggregates`: groups of hosts, and the availability zones they define."""

from __future__ import annotations

import uuid
from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.policies import CACHE_IMAGES
from api.compute.schemas import aggregates as schemas
from api.compute.views import aggregates as views
from common import digits
from common.errors import Invalid, NotFound
from common.resources.aggregates import ZONE
from db.reads.hosts import aggregates
from db.reads.hosts.aggregates import Aggregate

_LARGEST = 2**31 - 1


class Aggregates:
    """Host aggregates."""

    @operation("os-aggregates:index")
    def index(self, call: Call) -> Any:
        """List aggregates with hosts and metadata."""
        found = call.read(aggregates.list_aggregates)
        return {"aggregates": [views.detailed(call, aggregate) for aggregate in found]}

    @operation("os-aggregates:create", body=schemas.CREATE)
    def create(self, call: Call) -> Any:
        """Create an aggregate; with a zone its hosts belong to that zone."""
        asked = call.body["aggregate"]
        zone = (asked.get("availability_zone") or "").strip() or None
        number = call.conductor.create_aggregate(call.ctxt, asked["name"].strip(), zone)
        return {"aggregate": views.without_contents(call, _find(call, str(number)))}

    @operation("os-aggregates:show")
    def show(self, call: Call, aggregate_id: str) -> Any:
        """Show an aggregate."""
        return _shown(call, aggregate_id)

    @operation("os-aggregates:update", body=schemas.UPDATE)
    def update(self, call: Call, aggregate_id: str) -> Any:
        """Rename an aggregate or change its zone; a zone can't be removed."""
        found, asked = _find(call, aggregate_id), call.body["aggregate"]
        zone = {name: asked[name] for name in (ZONE,) if name in asked}
        name = asked["name"].strip() if "name" in asked else None
        call.conductor.update_aggregate(call.ctxt, found.id, name=name, metadata=zone)
        return _shown(call, aggregate_id)

    @operation("os-aggregates:delete")
    def delete(self, call: Call, aggregate_id: str) -> None:
        """Delete an aggregate without hosts."""
        call.conductor.delete_aggregate(call.ctxt, _find(call, aggregate_id).id)

    @operation("os-aggregates:add_host", body=schemas.ADD_HOST)
    def add_host(self, call: Call, aggregate_id: str) -> Any:
        """Add a compute host; a host with servers can't change its zone."""
        found, host = _find(call, aggregate_id), call.body["add_host"]["host"]
        call.conductor.add_aggregate_host(call.ctxt, found.id, host)
        return _shown(call, aggregate_id)

    @operation("os-aggregates:remove_host", body=schemas.REMOVE_HOST)
    def remove_host(self, call: Call, aggregate_id: str) -> Any:
        """Remove a host; a host with servers can't change its zone."""
        found, host = _find(call, aggregate_id), call.body["remove_host"]["host"]
        try:
            call.conductor.remove_aggregate_host(call.ctxt, found.id, host)
        except NotFound as error:
            raise NotFound(f"Cannot remove host {host} in aggregate {aggregate_id}") from error
        return _shown(call, aggregate_id)

    @operation("os-aggregates:set_metadata", body=schemas.SET_METADATA)
    def set_metadata(self, call: Call, aggregate_id: str) -> Any:
        """Merge metadata; null removes an item."""
        found, asked = _find(call, aggregate_id), call.body["set_metadata"]["metadata"]
        call.conductor.set_aggregate_metadata(call.ctxt, found.id, asked)
        return _shown(call, aggregate_id)

    @operation(CACHE_IMAGES, since="2.81", body=schemas.CACHE_IMAGES, status=202)
    def images(self, call: Call, aggregate_id: str) -> None:
        """Cache images on the hosts; 400 where a host can't cache one."""
        number = _number(aggregate_id)
        wanted = [str(uuid.UUID(item["id"])) for item in call.body["cache"]]
        if len(set(wanted)) < len(wanted):
            raise Invalid("Duplicate images in request")
        found = call.read(aggregates.find, number)
        if found is None:
            raise NotFound(f"Aggregate {aggregate_id} could not be found.")
        call.conductor.cache_images(call.ctxt, found.id, wanted)


def _shown(call: Call, aggregate_id: str) -> dict[str, Any]:
    return {"aggregate": views.detailed(call, _find(call, aggregate_id))}


def _find(call: Call, aggregate_id: str) -> Aggregate:
    """Return the aggregate of an ID. Raises Invalid unless it is a number, NotFound."""
    found: Aggregate | None = call.read(aggregates.find, _number(aggregate_id))
    if found is None:
        raise NotFound(f"Aggregate {aggregate_id} could not be found.")
    return found


def _number(text: str) -> int:
    """Return the ID in a path, cut to the column's range: 0 and the maximum match no aggregate."""
    found = digits.integer(text, _LARGEST)
    if found is None:
        raise Invalid("Invalid input received: id must be an integer")
    return max(0, found)
