"""`/servers`: list, show, create, update, delete."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.policies import ANY_ADDRESS, NEAR_HOST, REQUESTED_DESTINATION
from api.compute.resources.found import the_server, the_shown_server
from api.compute.resources.servers.create import create_request
from api.compute.resources.servers.filters import filters_of, sort_of
from api.compute.resources.servers.identity import identified
from api.compute.resources.servers.requested import access_addresses
from api.compute.schemas import servers as schemas
from api.compute.views import servers as views
from api.compute.views.totals import shown
from common.errors import Invalid, NotFound
from db.reads.servers import servers, totals
from db.reads.servers.servers import Extent, Name, Server
from web.guard import Reply

T = TypeVar("T")


class Servers:
    """The servers of a project."""

    @operation("servers:index", asks=("servers:allow_all_filters",), query=schemas.LIST)
    def index(self, call: Call) -> Any:
        """List servers."""
        found = _list(call, "servers:index:get_all_tenants", servers.list_names)
        answer: dict[str, Any] = {"servers": [views.basic(s, call.links) for s in found]}
        return (
            answer | _totals(call, "servers:index:get_all_tenants") | _next(call, "servers", found)
        )

    @operation("servers:detail", query=schemas.LIST)
    def detail(self, call: Call) -> Any:
        """List servers with details."""
        sight = views.sight_of(call, single=False)
        extent = Extent.DETAIL if sight.host_status is None else Extent.HOST
        read = functools.partial(servers.list_servers, extent=extent, user_data=sight.extended)
        found = _list(call, "servers:detail:get_all_tenants", read)
        view = views.view_of(call, sight, found)
        answer: dict[str, Any] = {"servers": [view.detailed(server) for server in found]}
        answer |= _totals(call, "servers:detail:get_all_tenants")
        return answer | _next(call, "servers/detail", found)

    @operation("servers:show", asks=("os-extended-server-attributes",), on=the_shown_server)
    def show(self, call: Call) -> Any:
        """Show a server."""
        return {"server": views.shown(call, call.server)}

    @operation(
        "servers:create",
        asks=(REQUESTED_DESTINATION, ANY_ADDRESS, NEAR_HOST),
        body=schemas.CREATE,
        status=202,
        errors={NotFound: Invalid},
    )
    def create(self, call: Call) -> Any:
        """Create servers asynchronously."""
        request = identified(call, create_request(call))
        made = call.conductor.create_servers(call.ctxt, request)
        asked = call.body["server"]
        if str(asked.get("return_reservation_id", False)).lower() in _YES:
            return {"reservation_id": made.reservation_id}
        uuid = made.uuids[0]
        answer: dict[str, Any] = {
            "id": uuid,
            "links": call.links.item(views.COLLECTION, uuid),
            "OS-DCF:diskConfig": views.disk_config(request.auto_disk_config),
            "security_groups": asked.get("security_groups", [{"name": "default"}]),
        }
        # The password of a repeated create is another one, which the guest doesn't know.
        if call.cloud.conf.api.enable_instance_password and not made.repeated:
            answer["adminPass"] = request.admin_password
        location = call.links.location(views.COLLECTION, uuid)
        return Reply({"server": answer}, headers={"Location": location})

    @operation("servers:update", body=schemas.UPDATE, on=the_server)
    def update(self, call: Call) -> Any:
        """Change name, description, hostname, access addresses, disk configuration or zone.

        Since 2.104 a server is unpinned from its availability zone, or pinned to it again.
        """
        asked = call.body["server"]
        changes: dict[str, Any] = {name: asked[name] for name in _CHANGED if name in asked}
        changes |= access_addresses(asked)
        if "OS-DCF:diskConfig" in asked:
            changes["auto_disk_config"] = asked["OS-DCF:diskConfig"] == views.AUTO
        if changes:
            call.conductor.update_server(call.ctxt, call.server.uuid, changes)
        the_shown_server(call, {"server_id": call.server.uuid})
        return {"server": views.shown(call, call.server, all_fields=call.version >= 75)}

    @operation("servers:delete", status=204, on=the_server)
    def delete(self, call: Call) -> None:
        """Delete a server asynchronously, or stop it and delete it later (soft delete)."""
        call.conductor.act(call.ctxt, call.server.uuid, "delete", {"deferred": True})


#: attributes that are changed under their own names
_CHANGED = ("name", "description", "hostname", "pinned_availability_zone")
_YES = frozenset({"true", "1", "on", "yes"})


def _list(call: Call, all_tenants_rule: str, read: Callable[..., list[T]]) -> list[T]:
    limit, marker = call.query.page(call.max_limit)
    filters = filters_of(call, all_tenants_rule=all_tenants_rule)
    return call.read(read, filters, sort=sort_of(call), limit=limit, marker=marker)


def _totals(call: Call, all_tenants_rule: str) -> dict[str, Any]:
    """Return the totals of all pages, where they are asked for."""
    if call.version < schemas.OURS_SINCE or not call.query.boolean(schemas.TOTALS):
        return {}
    filters = filters_of(call, all_tenants_rule=all_tenants_rule)
    return {schemas.TOTALS: shown(call.read(totals.totals, filters))}


def _next(call: Call, path: str, found: Sequence[Name | Server]) -> dict[str, Any]:
    limit, _ = call.query.page(call.max_limit)
    if not found or len(found) < limit:
        return {}
    return {"servers_links": call.links.after(path, call.query, found[-1].uuid)}
