"""Actions on a server: the page that asks, the request, and the deletion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import falcon

from dashboard.answer import Answer, view
from dashboard.cloud import COMPUTE, IMAGE, Call, segment
from dashboard.page import Page
from dashboard.pages import flavors
from dashboard.pages.server import loss
from dashboard.pages.server.actions import ACTIONS, DELETE, Action
from dashboard.rights import May
from dashboard.visit import Visit

_MOST = 1000
_IMAGES = Call(
    IMAGE, "/v2/images", {"limit": _MOST, "status": "active", "sort": "created_at:desc"}
)
#: what a form's field offers
_CHOICES: Mapping[str, Call] = {
    "flavorRef": flavors.EVERY,
    "imageRef": _IMAGES,
    "rescue_image_ref": _IMAGES,
}
_ROWS: Mapping[str, str] = {
    "flavorRef": "flavors",
    "imageRef": "images",
    "rescue_image_ref": "images",
}


def ask(visit: Visit) -> Answer:
    """Show the form of an action: what it stops, what is lost, and what it asks for."""
    action = _action(visit.params["action"])
    path = _path(visit)
    offered = [field for field in action.fields if field in _CHOICES]
    found, *answers = visit.cloud.together(
        Call(COMPUTE, path), *(_CHOICES[field] for field in offered)
    )
    server = found["server"]
    choices = {field: answer[_ROWS[field]] for field, answer in zip(offered, answers, strict=True)}
    own = str((server.get("image") or {}).get("id", ""))
    chosen = visit.query.get("image") or own
    why_none = {
        field: _why_none(chosen, own, rows)
        for field, rows in choices.items()
        if _CHOICES[field] is _IMAGES
    }
    return view(
        "server/action.html",
        server=server,
        action=action,
        choices=choices,
        chosen=chosen,
        why_none=why_none,
        own=own,
        cards=list(_sizes(server, choices.get("flavorRef", ()))),
        back=visit.query.get("back", ""),
    )


def _why_none(chosen: str, own: str, offered: Sequence[Mapping[str, Any]]) -> str:
    """Return why no image is chosen at first; empty: the right image is offered."""
    if not chosen:
        return "The server boots from a volume, so that no image is its own: choose one."
    if any(one["id"] == chosen for one in offered):
        return ""
    which = "The server's own image" if chosen == own else "The image that was asked for"
    return f"{which} isn't one of the {_MOST:,} newest that can be used now: choose another one."


def act(visit: Visit) -> Answer:
    """Ask the API for an action; the next page says what is under way."""
    action, path = _action(visit.params["action"]), _path(visit)
    value: Any = action.value
    if action.fields:
        given = {field: visit.field(field) for field in action.fields}
        value = {**(value or {}), **given}
    send = visit.change if action.is_done else visit.begin
    body = {action.key: value}
    return send(_back(visit, path), action.says, visit.cloud.post, COMPUTE, f"{path}/action", body)


def ask_delete(visit: Visit) -> Answer:
    """Show what is lost with a server, and what becomes of its volumes."""
    server, volumes = visit.cloud.together(Call(COMPUTE, _path(visit)), loss.VOLUMES)
    return view(
        "server/delete.html",
        action=DELETE,
        server=loss.loss(server["server"], loss.names_of(volumes)),
        back=visit.query.get("back", ""),
    )


def delete(visit: Visit) -> Answer:
    """Delete a server, after the page that asks."""
    path = _path(visit)
    said = "The server is being deleted."
    return visit.begin("/servers", said, visit.cloud.delete, COMPUTE, path, back=path)


def _sizes(
    server: Mapping[str, Any], offered: Iterable[Mapping[str, Any]]
) -> Iterable[flavors.Card]:
    """Yield the sizes, the current one marked, and those with a smaller disk greyed."""
    now = server["flavor"]
    has_disk = bool(server.get("image"))
    for one in flavors.by_size(offered):
        if one["name"] == now["original_name"]:
            yield flavors.Card(one, "current", "current", is_final=True)
        elif has_disk and one["disk"] < now["disk"]:
            yield flavors.Card(one, "disks don't shrink", is_final=True)
        else:
            yield flavors.Card(one)


def _back(visit: Visit, path: str) -> str:
    """Return the page that an action was asked for on."""
    below = {"list": "/servers", "storage": f"{path}/storage"}
    return below.get(visit.field("back"), path)


def _path(visit: Visit) -> str:
    return f"/servers/{segment(visit.params['server_id'])}"


def _action(name: str) -> Action:
    if name not in ACTIONS:
        raise falcon.HTTPNotFound
    return ACTIONS[name]


_SERVER = "/servers/{server_id:uuid}"
PAGES = (
    Page(f"{_SERVER}/delete", ask_delete, May.CHANGE, calls=2),
    Page(f"{_SERVER}/delete", delete, May.CHANGE, "POST"),
    Page(_SERVER + "/{action}", ask, May.CHANGE, calls=2),
    Page(_SERVER + "/{action}", act, May.CHANGE, "POST"),
)
