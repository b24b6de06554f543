"""One server with its operations, and all pages about servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from common.story.summary import host_line
from dashboard.answer import Answer, view
from dashboard.cloud import COMPUTE, Call, rows, segment
from dashboard.page import Page
from dashboard.pages import server_actions, server_create, server_list
from dashboard.rights import May
from dashboard.story import ShownOperation, operations_of
from dashboard.visit import Visit

#: task_states are asked for again this often
REFRESH_SECONDS = 2


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
    *server_list.PAGES,
    Page("/servers/create", server_create.form, May.CHANGE, calls=6),
    Page("/servers/create", server_create.create, May.CHANGE, "POST", calls=7),
    Page("/servers/{server_id:uuid}", show, calls=3),
    *server_actions.PAGES,
)
