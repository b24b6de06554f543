"""Volumes: the list, a new one, delete, attach and detach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.answer import Answer, Redirect, view
from dashboard.cloud import COMPUTE, VOLUME, Call, rows, segment
from dashboard.page import Page
from dashboard.pages.server.storage import plug
from dashboard.rights import May
from dashboard.visit import Visit

#: servers that a volume can be attached to by choosing; of more, the ID is asked for
_OFFERED = 200


def index(visit: Visit) -> Answer:
    """List a page of volumes, with the form for a new one."""
    query = {
        "limit": visit.limit,
        "marker": visit.query.get("marker"),
        "name~": visit.query.get("name"),
    }
    found, types, servers = visit.cloud.together(
        Call(VOLUME, "/volumes/detail", query),
        Call(VOLUME, "/types", optional=True),
        Call(COMPUTE, "/servers", {"limit": _OFFERED}, optional=True),
    )
    volumes = found["volumes"]
    more = bool(found.get("volumes_links"))
    return view(
        "volumes.html",
        volumes=volumes,
        types=[one["name"] for one in rows(types, "volume_types")],
        servers=_names(servers),
        is_every_server=not (servers and servers.get("servers_links")),
        asked=visit.query,
        following=visit.here("/volumes", marker=volumes[-1]["id"]) if more and volumes else "",
    )


def _names(answer: Any) -> Mapping[str, str]:
    """Return the servers' names by their IDs."""
    return {str(one["id"]): str(one["name"]) for one in rows(answer, "servers")}


def create(visit: Visit) -> Answer:
    """Ask for a volume."""
    asked: dict[str, Any] = {"name": visit.field("name"), "size": visit.number("size")}
    if visit.field("type"):
        asked["volume_type"] = visit.field("type")
    said = "The volume is being created."
    return visit.change("/volumes", said, visit.cloud.post, VOLUME, "/volumes", {"volume": asked})


def ask_delete(visit: Visit) -> Answer:
    """Ask whether a volume is to be deleted."""
    volume = visit.cloud.get(VOLUME, f"/volumes/{segment(visit.params['volume_id'])}")["volume"]
    return view("volume_delete.html", volume=volume)


def delete(visit: Visit) -> Answer:
    """Delete a volume."""
    path = f"/volumes/{segment(visit.params['volume_id'])}"
    said = "The volume is being deleted."
    return visit.change("/volumes", said, visit.cloud.delete, VOLUME, path)


def attach(visit: Visit) -> Answer:
    """Attach a volume to a server."""
    return plug(visit, visit.field("server"), visit.params["volume_id"], "/volumes")


def to_list(visit: Visit) -> Answer:
    """Go to the list: a volume has no page of its own, but its story."""
    return Redirect(f"/explain?what={segment(visit.params['volume_id'])}")


_VOLUME = "/volumes/{volume_id:uuid}"
PAGES = (
    Page("/volumes", index, calls=3),
    Page("/volumes", create, May.CHANGE, "POST"),
    Page(_VOLUME, to_list, calls=0),
    Page(f"{_VOLUME}/delete", ask_delete, May.CHANGE),
    Page(f"{_VOLUME}/delete", delete, May.CHANGE, "POST"),
    Page(f"{_VOLUME}/attach", attach, May.CHANGE, "POST"),
)
