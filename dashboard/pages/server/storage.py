"""A server's disks, volumes and snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.answer import Answer, Redirect, view
from dashboard.cloud import COMPUTE, IMAGE, VOLUME, Call, rows, segment
from dashboard.page import Page
from dashboard.pages.server import actions
from dashboard.pages.server.frame import framed
from dashboard.rights import May
from dashboard.visit import Visit

_MOST = 1000
_CHANGING = ("attaching", "detaching", "creating", "reserved")
_SAVING = ("queued", "saving", "importing")


def show(visit: Visit) -> Answer:
    """Show what a server stores data on, and its snapshots."""
    uuid = visit.params["server_id"]
    found = framed(
        visit,
        Call(COMPUTE, f"/servers/{segment(uuid)}/os-volume_attachments", optional=True),
        Call(VOLUME, "/volumes/detail", {"limit": _MOST}, optional=True),
        Call(
            IMAGE,
            "/v2/images",
            {"instance_uuid": uuid, "sort": "created_at:desc", "limit": _MOST},
            optional=True,
        ),
    )
    attached, volumes, images = found.answers
    known = {one["id"]: one for one in rows(volumes, "volumes")}
    mine = [(one, known.get(one["volumeId"], {})) for one in rows(attached, "volumeAttachments")]
    snapshots = rows(images, "images")
    follows = any(_is_changing(volume, uuid) for volume in known.values()) or any(
        one["status"] in _SAVING for one in snapshots
    )
    return found.view(
        "storage",
        follows=follows,
        offers="#offers" if visit.may(May.CHANGE) else "",
        attached=mine,
        free=[one for one in known.values() if one["status"] == "available"],
        snapshots=snapshots,
        offered={one.name for one in actions.buttons(visit, found.server)},
    )


def attach(visit: Visit) -> Answer:
    """Attach the volume of the form to the server of the path."""
    return plug(visit, visit.params["server_id"], visit.field("volume"), _tab(visit))


def plug(visit: Visit, server: str, volume: str, back: str) -> Redirect:
    """Ask for an attachment, and go back to the page that offered it."""
    asked: dict[str, Any] = {"volumeId": volume}
    if visit.field("delete_on_termination"):
        asked["delete_on_termination"] = True
    path = f"/servers/{segment(server or '-')}/os-volume_attachments"
    body = {"volumeAttachment": asked}
    said = "The volume is being attached."
    return visit.begin(back, said, visit.cloud.post, COMPUTE, path, body)


def ask_detach(visit: Visit) -> Answer:
    """Ask whether a server is to lose a volume."""
    server, volume = visit.cloud.together(
        Call(COMPUTE, f"/servers/{segment(visit.params['server_id'])}"),
        Call(VOLUME, f"/volumes/{segment(visit.params['volume_id'])}"),
    )
    return view(
        "server/detach_volume.html",
        server=server["server"],
        volume=volume["volume"],
        back=visit.query.get("back", ""),
    )


def detach(visit: Visit) -> Answer:
    """Detach a volume, after the page that asks."""
    server, volume = visit.params["server_id"], visit.params["volume_id"]
    back = f"/volumes/{volume}" if visit.field("back") == "volume" else _tab(visit)
    path = f"/servers/{segment(server)}/os-volume_attachments/{segment(volume)}"
    said = "The volume is being detached."
    return visit.begin(back, said, visit.cloud.delete, COMPUTE, path)


def _is_changing(volume: Mapping[str, Any], server: str) -> bool:
    """Return whether a volume comes to a server, or leaves it."""
    if volume["status"] not in _CHANGING:
        return False
    holders = [one["server_id"] for one in volume["attachments"]]
    return not holders or server in holders


def _tab(visit: Visit) -> str:
    return f"/servers/{segment(visit.params['server_id'])}/storage"


_SERVER = "/servers/{server_id:uuid}"
_VOLUME = f"{_SERVER}/volumes/{{volume_id:uuid}}"
PAGES = (
    Page(f"{_SERVER}/storage", show, calls=5),
    Page(f"{_SERVER}/storage", attach, May.CHANGE, "POST"),
    Page(f"{_VOLUME}/detach", ask_detach, May.CHANGE, calls=2),
    Page(f"{_VOLUME}/detach", detach, May.CHANGE, "POST"),
)
