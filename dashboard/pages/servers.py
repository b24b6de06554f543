"""Servers: the list, the form for a new one, one server with its operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from common.story.summary import host_line
from dashboard.answer import Answer, view
from dashboard.cloud import COMPUTE, Call, following, rows, segment
from dashboard.page import Page
from dashboard.pages import server_actions, server_create
from dashboard.rights import May
from dashboard.story import ShownOperation, operations_of
from dashboard.visit import Visit

SORTS: Mapping[str, str] = {
    "created_at": "Created",
    "display_name": "Name",
    "vm_state": "State",
}
STATUSES = ("ACTIVE", "BUILD", "ERROR", "SHUTOFF", "PAUSED", "SUSPENDED", "SHELVED_OFFLOADED")
#: task_states are asked for again this often
REFRESH_SECONDS = 2
_MOST_ROWS = 100
_EVERY = "all_tenants"


def index(visit: Visit) -> Answer:
    """List a page of servers, as the API finds, sorts and limits them."""
    asked = visit.query
    sort = asked.get("sort", "")
    status = asked.get("status", "")
    query: dict[str, Any] = {
        "limit": visit.limit,
        "marker": asked.get("marker"),
        "name": asked.get("name"),
        "status": status if status in STATUSES else None,
        "sort_key": sort if sort in SORTS else "created_at",
        "sort_dir": "asc" if asked.get("dir") == "asc" else "desc",
    }
    if visit.operates and asked.get(_EVERY):
        query[_EVERY] = 1
    found = visit.cloud.get(COMPUTE, "/servers/detail", **query)
    servers = found["servers"]
    return view(
        "servers.html",
        servers=servers,
        busy=[one["id"] for one in servers if is_busy(one)][:_MOST_ROWS],
        following=visit.next_page("/servers", following(found, "servers")),
        sorts=SORTS,
        statuses=STATUSES,
        asked=asked,
        regions=len(visit.cloud.regions()),
        refresh_seconds=REFRESH_SECONDS,
    )


def refresh(visit: Visit) -> Answer:
    """Show the rows of servers under way again: one request for all of them."""
    ids = [one for one in visit.query.get("ids", "").split(",") if len(one) == 36][:_MOST_ROWS]
    query: dict[str, Any] = {"uuid": ids, "limit": len(ids) or 1}
    if visit.operates:
        query[_EVERY] = 1
    found = visit.cloud.get(COMPUTE, "/servers/detail", **query)["servers"] if ids else []
    known = {one["id"] for one in found}
    return view(
        "servers_rows.html",
        servers=found,
        gone=[one for one in ids if one not in known],
        busy=[one["id"] for one in found if is_busy(one)],
        refresh_seconds=REFRESH_SECONDS,
    )


def show(visit: Visit) -> Answer:
    """Show one server: its state, the allowed actions, and its operations."""
    uuid = visit.params["server_id"]
    path = f"/servers/{segment(uuid)}"
    server, story, volumes = visit.cloud.together(
        Call(COMPUTE, path),
        Call(COMPUTE, f"/explanations/{segment(uuid)}", optional=True),
        Call(COMPUTE, f"{path}/os-volume_attachments", optional=True),
    )
    server, explained = server["server"], story["explanation"] if story else {}
    move, operations = explained.get("move") or {}, operations_of(explained)
    return view(
        "server.html",
        server=server,
        busy=is_busy(server) or _is_followed(operations),
        addresses=_addresses(server),
        volumes=rows(volumes, "volumeAttachments"),
        operations=operations,
        host_line=host_line(explained),
        buttons=server_actions.buttons(visit, server, move.get("obstacle")),
        obstacle=move.get("obstacle"),
        refresh_seconds=REFRESH_SECONDS,
    )


def is_busy(server: Mapping[str, Any]) -> bool:
    """Return whether an operation on a server is in progress."""
    return bool(server.get("OS-EXT-STS:task_state")) or server.get("status") == "BUILD"


def _is_followed(operations: Sequence[ShownOperation]) -> bool:
    """Return whether the last operation is open: a server fails a moment before its operation."""
    return bool(operations) and operations[0].is_open and not operations[0].facts.get("held")


def _addresses(server: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (network, str(one["addr"]))
        for network, given in (server.get("addresses") or {}).items()
        for one in given
    ]


PAGES = (
    Page("/servers", index),
    Page("/servers/rows", refresh),
    Page("/servers/create", server_create.form, May.CHANGE, calls=6),
    Page("/servers/create", server_create.create, May.CHANGE, "POST", calls=7),
    Page("/servers/{server_id:uuid}", show, calls=3),
    *server_actions.PAGES,
)
