"""What may be done to a server: a table from which buttons, forms and requests come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import falcon

from common.resources import states
from dashboard.answer import Answer, Redirect, View, view
from dashboard.cloud import COMPUTE, Call, segment
from dashboard.page import Page
from dashboard.rights import May
from dashboard.visit import Visit


@dataclass(frozen=True)
class Action:
    """One action."""

    name: str
    """In our paths."""
    title: str
    key: str
    """In the body of the API's request."""
    rule: str = ""
    """Of `common.resources.states.ACTIONS`: from which states it may start; empty: from any."""
    may: May = May.CHANGE
    value: Any = None
    """What the key holds in the body."""
    fields: tuple[str, ...] = ()
    """What the form asks for: names of the key's members."""
    asks: str = ""
    """A sentence to confirm first."""
    statuses: tuple[str, ...] = ()
    """Statuses in which it makes sense; empty: all that `rule` allows."""
    moves: bool = False
    """Whether it takes the server to another host."""

    @property
    def has_form(self) -> bool:
        """Whether a page comes before the request."""
        return bool(self.fields or self.asks)


_ACTIVE = ("ACTIVE",)
ACTIONS: Mapping[str, Action] = {
    one.name: one
    for one in (
        Action("start", "Start", "os-start", "start"),
        Action("stop", "Stop", "os-stop", "stop", statuses=_ACTIVE),
        Action("reboot", "Reboot", "reboot", "reboot", value={"type": "SOFT"}),
        Action(
            "reset",
            "Hard reboot",
            "reboot",
            "reboot-hard",
            value={"type": "HARD"},
            asks="The server is reset: what it hasn't written to its disks is lost.",
        ),
        Action("pause", "Pause", "pause", "pause"),
        Action("unpause", "Unpause", "unpause", "unpause"),
        Action("suspend", "Suspend", "suspend", "suspend"),
        Action("resume", "Resume", "resume", "resume"),
        Action("resize", "Resize", "resize", "resize", fields=("flavorRef",)),
        Action("confirm-resize", "Confirm resize", "confirmResize", statuses=("VERIFY_RESIZE",)),
        Action("revert-resize", "Revert resize", "revertResize", statuses=("VERIFY_RESIZE",)),
        Action(
            "rebuild",
            "Rebuild",
            "rebuild",
            "rebuild",
            fields=("imageRef",),
            asks="The disk of the server is replaced, and its data is lost.",
        ),
        Action(
            "image",
            "Create image",
            "createImage",
            fields=("name",),
            statuses=("ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED"),
        ),
        Action("rescue", "Rescue", "rescue", "rescue"),
        Action("unrescue", "Unrescue", "unrescue", "unrescue"),
        Action("shelve", "Shelve", "shelve", "shelve"),
        Action("unshelve", "Unshelve", "unshelve", "unshelve"),
        Action("lock", "Lock", "lock"),
        Action("unlock", "Unlock", "unlock"),
        Action("restore", "Restore", "restore", "restore", statuses=("SOFT_DELETED",)),
        Action("migrate", "Migrate (stopped)", "migrate", "migrate", May.MANAGE, moves=True),
        Action(
            "live-migrate",
            "Live migrate",
            "os-migrateLive",
            "live-migration",
            May.MANAGE,
            value={"host": None, "block_migration": "auto"},
            statuses=_ACTIVE,
            moves=True,
        ),
        Action("retry", "Retry", "retry", may=May.OPERATE, statuses=("BUILD", "ERROR")),
        Action("hold", "Hold", "hold", may=May.OPERATE, statuses=("BUILD", "ERROR")),
        Action(
            "reset-error",
            "Mark as active",
            "os-resetState",
            may=May.OPERATE,
            value={"state": "active"},
            asks="Only the record is changed: make sure that the VM is well.",
            statuses=("ERROR",),
        ),
    )
}

_ROWS: Mapping[str, str] = {"flavorRef": "flavors", "imageRef": "images"}
#: what a form's field offers
_CHOICES: Mapping[str, Call] = {
    "flavorRef": Call(COMPUTE, "/flavors/detail", {"limit": 1000}),
    "imageRef": Call("image", "/v2/images", {"limit": 1000, "status": "active"}),
}


def buttons(visit: Visit, server: Mapping[str, Any], obstacle: str | None = None) -> list[Action]:
    """Return the actions that the user may do and the server's state allows.

    `obstacle`: why the API wouldn't move the server, where it says so.
    """
    return [
        one
        for one in ACTIONS.values()
        if visit.may(one.may) and _fits(one, server) and not (one.moves and obstacle)
    ]


def _fits(action: Action, server: Mapping[str, Any]) -> bool:
    if action.name == "lock" and server.get("locked"):
        return False
    if action.name == "unlock" and not server.get("locked"):
        return False
    if action.statuses and server["status"] not in action.statuses:
        return False
    if action.rule not in states.ACTIONS:
        return True
    launched = bool(server.get("OS-SRV-USG:launched_at"))
    vm_state, task = server["OS-EXT-STS:vm_state"], server["OS-EXT-STS:task_state"]
    return states.refusal(action.rule, vm_state, task, launched) is None


def ask(visit: Visit) -> Answer:
    """Show the form of an action, or of a deletion."""
    uuid, name = visit.params["server_id"], visit.params.get("action", "delete")
    action = _DELETE if name == "delete" else _action(name)
    path = f"/servers/{segment(uuid)}"
    offered = [field for field in action.fields if field in _CHOICES]
    server, *found = visit.cloud.together(
        Call(COMPUTE, path), *(_CHOICES[field] for field in offered)
    )
    choices = {field: answer[_ROWS[field]] for field, answer in zip(offered, found, strict=True)}
    return view("server_action.html", server=server["server"], action=action, choices=choices)


def act(visit: Visit) -> Answer:
    """Ask the API for an action; the server's page says what came of it."""
    uuid, name = visit.params["server_id"], visit.params["action"]
    action, path = _action(name), f"/servers/{segment(uuid)}"
    value: Any = action.value
    if action.fields:
        value = {**(value or {}), **{field: visit.field(field) for field in action.fields}}
    return visit.change(
        "/servers" if visit.field("back") == "list" else path,
        f"{action.title}: accepted.",
        visit.cloud.post,
        COMPUTE,
        f"{path}/action",
        {action.key: value},
    )


def delete(visit: Visit) -> Answer:
    """Delete a server, after the page that asks."""
    uuid = visit.params["server_id"]
    path = f"/servers/{segment(uuid)}"
    answer = visit.change(
        "/servers", "The server is being deleted.", visit.cloud.delete, COMPUTE, path
    )
    failed = bool(visit.session.flashes) and visit.session.flashes[-1][0] == "failed"
    return Redirect(path) if failed else answer


def console(visit: Visit) -> Answer:
    """Show the server's screen: a console of its own, which ends with the page."""
    path = f"/servers/{segment(visit.params['server_id'])}"
    body = {"remote_console": {"protocol": "vnc", "type": "novnc"}}
    server, made = visit.cloud.together(
        Call(COMPUTE, path), Call(COMPUTE, f"{path}/remote-consoles", body=body, method="POST")
    )
    url = made["remote_console"]["url"]
    values = {"server": server["server"], "url": url}
    return View("console.html", values, frames=(_origin(url),))


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _action(name: str) -> Action:
    if name not in ACTIONS:
        raise falcon.HTTPNotFound
    return ACTIONS[name]


_DELETE = Action(
    "delete", "Delete", "", asks="The server and its disks are deleted, and can't be restored."
)

_SERVER = "/servers/{server_id:uuid}"
PAGES = (
    Page(f"{_SERVER}/console", console, May.CHANGE, "POST", calls=2),
    Page(f"{_SERVER}/delete", ask, May.CHANGE),
    Page(f"{_SERVER}/delete", delete, May.CHANGE, "POST"),
    Page(_SERVER + "/{action}", ask, May.CHANGE, calls=2),
    Page(_SERVER + "/{action}", act, May.CHANGE, "POST"),
)
