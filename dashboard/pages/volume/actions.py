"""What may be done to a volume: a table from which buttons, forms and requests come."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import falcon

from dashboard.answer import Answer, View, view
from dashboard.cloud import COMPUTE, VOLUME, Call, rows, segment
from dashboard.page import Page
from dashboard.pages.server.storage import plug
from dashboard.rights import May
from dashboard.visit import Visit

_MOST = 1000


@dataclass(frozen=True)
class Field:
    """What a form asks for."""

    name: str
    title: str
    kind: str = "text"
    """Of the input; a select where the page has choices for it."""
    optional: bool = False


@dataclass(frozen=True)
class Action:
    """One action."""

    name: str
    """In our paths."""
    title: str
    fields: tuple[Field, ...]
    says: str
    """What the next page says is under way."""
    path: str
    """Of the API's request; `{}` is the volume's ID."""
    body: Callable[[Visit, Mapping[str, Any]], dict[str, Any]]
    """Of the request, for a volume."""
    statuses: tuple[str, ...]
    """In which the API takes it."""
    asks: str = ""
    """What it stops and what is lost, to confirm first."""
    is_done: bool = False
    """Whether it is done once it is accepted."""
    method: str = "POST"
    link: str = ""
    """What else has to be known first."""
    is_first: bool = False
    """Whether its button is shown before the menu of all others."""


_FREE = ("available",)
_HELD = ("available", "in-use")
_NAME = Field("name", "Name", optional=True)


def _copied(visit: Visit, volume: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a copy is of; one of a volume in use has to be forced."""
    return {"volume_id": volume["id"], "name": visit.field("name")} | (
        {"force": True} if volume["status"] == "in-use" else {}
    )


def _image(visit: Visit, volume: Mapping[str, Any]) -> dict[str, Any]:
    asked = {"image_name": visit.field("image_name"), "disk_format": visit.field("disk_format")}
    return asked | ({"force": True} if volume["status"] == "in-use" else {})


_ACTION = "/volumes/{}/action"
ACTIONS: Mapping[str, Action] = {
    one.name: one
    for one in (
        Action(
            "extend",
            "Extend",
            (Field("new_size", "New size (GiB)", "number"),),
            "The volume is being extended.",
            _ACTION,
            lambda visit, _: {"os-extend": {"new_size": visit.number("new_size")}},
            _HELD,
            is_first=True,
        ),
        Action(
            "snapshot",
            "Snapshot",
            (_NAME,),
            "The snapshot is being made.",
            "/snapshots",
            lambda visit, volume: {"snapshot": _copied(visit, volume)},
            _HELD,
            is_first=True,
        ),
        Action(
            "backup",
            "Back up",
            (_NAME,),
            "The backup is being made.",
            "/backups",
            lambda visit, volume: {"backup": _copied(visit, volume)},
            _FREE,
        ),
        Action(
            "retype",
            "Retype",
            (Field("new_type", "Type", "select"),),
            "The volume is being retyped.",
            _ACTION,
            lambda visit, _: {
                "os-retype": {
                    "new_type": visit.field("new_type"),
                    "migration_policy": "on-demand",
                }
            },
            _HELD,
            link="Its data move to the storage of the type, if that is another one.",
        ),
        Action(
            "upload",
            "Upload to image",
            (Field("image_name", "Name of the image"), Field("disk_format", "Format", "select")),
            "The image is being made.",
            _ACTION,
            lambda visit, volume: {"os-volume_upload_image": _image(visit, volume)},
            _HELD,
        ),
        Action(
            "edit",
            "Edit",
            (_NAME, Field("description", "Description", optional=True)),
            "Name and description are saved.",
            "/volumes/{}",
            lambda visit, _: {
                "volume": {name: visit.field(name) for name in ("name", "description")}
            },
            (),
            is_done=True,
            method="PUT",
        ),
        Action(
            "bootable",
            "Make bootable",
            (),
            "Servers can boot from the volume.",
            _ACTION,
            lambda *_: {"os-set_bootable": {"bootable": True}},
            _HELD,
            is_done=True,
        ),
    )
}
_FORMATS = ("raw", "qcow2")
_TYPES = Call(VOLUME, "/types", optional=True)


def buttons(volume: Mapping[str, Any]) -> list[Action]:
    """Return the actions that a volume's status allows."""
    return [
        one
        for one in ACTIONS.values()
        if (not one.statuses or volume["status"] in one.statuses)
        and not (one.name == "bootable" and volume["bootable"] == "true")
    ]


def ask(visit: Visit) -> Answer:
    """Show the form of an action."""
    action = _action(visit)
    found, types = visit.cloud.together(Call(VOLUME, _path(visit)), _TYPES)
    return _form(
        visit, action, found["volume"], [one["name"] for one in rows(types, "volume_types")]
    )


def _form(visit: Visit, action: Action, volume: Mapping[str, Any], types: list[str]) -> View:
    others = [one for one in types if one != volume["volume_type"]]
    given = {
        "new_size": str(volume["size"] + 1),
        "name": volume["name"] if action.name == "edit" else "",
        "description": volume["description"] or "",
        "image_name": volume["name"] or "",
    }
    return view(
        "volume/action.html",
        volume=volume,
        action=action,
        given=given,
        choices={"new_type": others, "disk_format": _FORMATS},
    )


def act(visit: Visit) -> Answer:
    """Ask the API for an action; the volume's page says what is under way."""
    action, page = _action(visit), _path(visit)
    volume = visit.cloud.get(VOLUME, page)["volume"]
    send = visit.change if action.is_done else visit.begin
    call = Call(
        VOLUME,
        action.path.format(segment(visit.params["volume_id"])),
        body=action.body(visit, volume),
        method=action.method,
    )
    return send(page, action.says, visit.cloud.send, call)


def ask_attach(visit: Visit) -> Answer:
    """Ask which server a volume is to be attached to."""
    volume, servers = visit.cloud.together(
        Call(VOLUME, _path(visit)), Call(COMPUTE, "/servers", {"limit": _MOST}, optional=True)
    )
    return view(
        "volume/attach.html",
        volume=volume["volume"],
        servers=rows(servers, "servers"),
        is_every_server=not (servers and servers.get("servers_links")),
    )


def attach(visit: Visit) -> Answer:
    """Attach a volume to a server."""
    return plug(visit, visit.field("server"), visit.params["volume_id"], _path(visit))


def ask_delete(visit: Visit) -> Answer:
    """Ask whether a volume is to be deleted."""
    return view("volume/delete.html", volume=visit.cloud.get(VOLUME, _path(visit))["volume"])


def delete(visit: Visit) -> Answer:
    """Delete a volume."""
    path = _path(visit)
    said = "The volume is being deleted."
    return visit.begin("/volumes", said, visit.cloud.delete, VOLUME, path, back=path)


def _action(visit: Visit) -> Action:
    name = visit.params["action"]
    if name not in ACTIONS:
        raise falcon.HTTPNotFound
    return ACTIONS[name]


def _path(visit: Visit) -> str:
    return f"/volumes/{segment(visit.params['volume_id'])}"


_VOLUME = "/volumes/{volume_id:uuid}"
PAGES = (
    Page(f"{_VOLUME}/attach", ask_attach, May.CHANGE, calls=2),
    Page(f"{_VOLUME}/attach", attach, May.CHANGE, "POST"),
    Page(f"{_VOLUME}/delete", ask_delete, May.CHANGE),
    Page(f"{_VOLUME}/delete", delete, May.CHANGE, "POST"),
    Page(_VOLUME + "/{action}", ask, May.CHANGE, calls=2),
    Page(_VOLUME + "/{action}", act, May.CHANGE, "POST", calls=2),
)
