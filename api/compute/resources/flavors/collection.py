"""`/flavors`: the sizes of servers."""

from __future__ import annotations

from typing import Any

from oslo_utils import strutils

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import a_flavor
from api.compute.schemas import flavors as schemas
from api.compute.schemas.types import MAX_INT
from api.compute.views import flavors as views
from common import digits
from common.errors import Invalid
from conductor.rpc.servers.flavors import NewFlavor
from db.reads.servers import flavors
from db.reads.servers.flavors import Flavor


class Flavors:
    """The flavors that a project may use."""

    @operation(None, query=schemas.LIST)
    def index(self, call: Call) -> Any:
        """List flavors."""
        found = _list(call)
        return {"flavors": [views.basic(call, flavor) for flavor in found]} | _next(
            call, "flavors", found
        )

    @operation(None, query=schemas.LIST)
    def detail(self, call: Call) -> Any:
        """List flavors with details."""
        found = _list(call)
        return {"flavors": [views.detailed(call, flavor) for flavor in found]} | _next(
            call, "flavors/detail", found
        )

    @operation(None)
    def show(self, call: Call, flavor_id: str) -> Any:
        """Show a flavor."""
        return {"flavor": views.detailed(call, a_flavor(call, flavor_id))}

    @operation("os-flavor-manage:create", body=schemas.CREATE)
    def create(self, call: Call) -> Any:
        """Create a flavor; 409 where its name or ID is taken."""
        asked = call.body["flavor"]
        flavorid = asked.get("id")
        new = NewFlavor(
            name=asked["name"],
            flavorid=None if flavorid is None else str(flavorid),
            vcpus=int(asked["vcpus"]),
            memory_mib=int(asked["ram"]),
            disk_gib=int(asked["disk"]),
            ephemeral_gib=int(asked.get("OS-FLV-EXT-DATA:ephemeral", 0)),
            swap_mib=int(asked.get("swap", 0)),
            rxtx_factor=float(asked.get("rxtx_factor", 1.0)),
            is_public=_boolean(asked.get("os-flavor-access:is_public", True)),
            description=asked.get("description"),
        )
        made = call.conductor.create_flavor(call.ctxt, new)
        return {"flavor": views.detailed(call, a_flavor(call, made))}

    @operation("os-flavor-manage:update", since="2.55", body=schemas.UPDATE)
    def update(self, call: Call, flavor_id: str) -> Any:
        """Change a flavor's description."""
        description = call.body["flavor"]["description"]
        call.conductor.update_flavor(call.ctxt, flavor_id, description)
        return {"flavor": views.detailed(call, a_flavor(call, flavor_id))}

    @operation("os-flavor-manage:delete", status=202)
    def delete(self, call: Call, flavor_id: str) -> None:
        """Delete a flavor; servers keep their copy."""
        call.conductor.delete_flavor(call.ctxt, flavor_id)


def _boolean(value: Any) -> bool:
    return bool(strutils.bool_from_string(value, strict=True))


def _list(call: Call) -> list[Flavor]:
    limit, marker = call.query.page(call.max_limit)
    query = call.query
    filters = flavors.Filters(
        is_public=_is_public(call) if call.is_admin else None,
        disabled=None if call.is_admin else False,
        min_memory_mib=_least(call, "minRam"),
        min_disk_gib=_least(call, "minDisk"),
        name=query.last("name") if call.version >= 102 else None,
    )
    found: list[Flavor] = call.read(
        flavors.list_flavors,
        filters,
        project_id=call.reach,
        sort=(query.last("sort_key") or "flavorid", query.last("sort_dir") == "desc"),
        limit=limit,
        marker=marker,
    )
    return found


def _is_public(call: Call) -> bool | None:
    """Which flavors an administrator wants: public (the default), private, or both (`none`)."""
    wanted = call.query.last("is_public")
    if wanted is None:
        return True
    if wanted.lower() == "none":
        return None
    try:
        return _boolean(wanted)
    except ValueError as error:
        raise Invalid(f"Invalid is_public filter [{wanted}]") from error


def _least(call: Call, parameter: str) -> int | None:
    value = call.query.last(parameter)
    if value is None:
        return None
    found = digits.integer(value, MAX_INT)  # no column holds more
    if found is None:
        raise Invalid(f"Invalid {parameter} filter [{value}]")
    return max(0, found)


def _next(call: Call, path: str, found: list[Flavor]) -> dict[str, Any]:
    limit, _ = call.query.page(call.max_limit)
    if not found or len(found) < limit:
        return {}
    return {"flavors_links": call.links.after(path, call.query, found[-1].flavorid)}
