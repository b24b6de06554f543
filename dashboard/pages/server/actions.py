"""What may be done to a server: a table from which buttons, forms and requests come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from common.resources import states
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
    """What it stops and what is lost, to confirm first."""
    statuses: tuple[str, ...] = ()
    """Statuses in which it makes sense; empty: all that `rule` allows."""
    moves: bool = False
    """Whether it takes the server to another host."""
    says: str = ""
    """What the next page says."""
    is_done: bool = False
    """Whether it is done once it is accepted."""
    is_first: bool = False
    """Whether its button is shown before the menu of all others."""

    @property
    def has_form(self) -> bool:
        """Whether a page comes before the request."""
        return bool(self.fields or self.asks)


_ACTIVE = ("ACTIVE",)
_RESIZED = ("VERIFY_RESIZE",)
_IN_TROUBLE = ("BUILD", "ERROR")

_POWER = (
    Action("start", "Start", "os-start", "start", says="The server is starting.", is_first=True),
    Action(
        "stop",
        "Stop",
        "os-stop",
        "stop",
        statuses=_ACTIVE,
        asks="It is shut down: what runs in it ends, and what isn't saved is lost. Its disks and "
        "addresses remain.",
        says="The server is stopping.",
        is_first=True,
    ),
    Action(
        "reboot",
        "Reboot",
        "reboot",
        "reboot",
        value={"type": "SOFT"},
        asks="It is shut down and started again: what runs in it ends, and what isn't saved is "
        "lost. Its disks remain.",
        says="The server is rebooting.",
        is_first=True,
    ),
    Action(
        "reset",
        "Hard reboot",
        "reboot",
        "reboot-hard",
        value={"type": "HARD"},
        asks="The server is reset: what it hasn't written to its disks is lost.",
        says="The server is being reset.",
    ),
    Action(
        "pause",
        "Pause",
        "pause",
        "pause",
        asks="It stands still until it is unpaused. Nothing in it is lost, but its connections "
        "may end.",
        says="The server is being paused.",
    ),
    Action("unpause", "Unpause", "unpause", "unpause", says="The server is being unpaused."),
    Action(
        "suspend",
        "Suspend",
        "suspend",
        "suspend",
        asks="It stands still until it is resumed; its memory is saved. Nothing in it is lost, "
        "but its connections end.",
        says="The server is being suspended.",
    ),
    Action("resume", "Resume", "resume", "resume", says="The server is being resumed."),
)

_SHAPE = (
    Action(
        "resize",
        "Resize",
        "resize",
        "resize",
        fields=("flavorRef",),
        asks="It is stopped, and started with another size: what runs in it ends, and what isn't "
        "saved is lost. Its disks remain. Confirm the new size afterwards, or revert to the old.",
        says="The server is being resized.",
    ),
    Action(
        "confirm-resize",
        "Confirm resize",
        "confirmResize",
        statuses=_RESIZED,
        asks="The way back to its old size or host ends: what is left of it there is deleted. "
        "What runs in it isn't stopped.",
        says="The new size is being confirmed.",
        is_first=True,
    ),
    Action(
        "revert-resize",
        "Revert resize",
        "revertResize",
        statuses=_RESIZED,
        asks="It is stopped, and started with its old size: what runs in it ends, and what isn't "
        "saved is lost. Its disks remain.",
        says="The server gets its old size back.",
        is_first=True,
    ),
    Action(
        "rebuild",
        "Rebuild",
        "rebuild",
        "rebuild",
        fields=("imageRef",),
        asks="Its root disk is replaced by a new one made from the image: all data on the old one "
        "is lost. Its addresses and its other volumes remain.",
        says="The server is being rebuilt.",
    ),
    Action(
        "image",
        "Create image",
        "createImage",
        fields=("name",),
        statuses=("ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED"),
        says="The snapshot is being made.",
    ),
    Action(
        "rescue",
        "Rescue",
        "rescue",
        "rescue",
        fields=("rescue_image_ref",),
        asks="It is stopped, and started from a disk made of the image, with its own disks beside "
        "it. What isn't saved is lost; what is on its disks remains.",
        says="The server is being rescued.",
    ),
    Action(
        "unrescue",
        "Unrescue",
        "unrescue",
        "unrescue",
        asks="It is stopped, and started from its own disk again: the rescue disk is deleted with "
        "all data on it.",
        says="The server returns to its own disk.",
        is_first=True,
    ),
    Action(
        "shelve",
        "Shelve",
        "shelve",
        "shelve",
        asks="It is stopped, and its processors and memory are given to others: what isn't saved "
        "is lost, and to unshelve it needs a host with room. Its disks and addresses remain.",
        says="The server is being shelved.",
    ),
    Action(
        "unshelve",
        "Unshelve",
        "unshelve",
        "unshelve",
        says="The server is being unshelved.",
        is_first=True,
    ),
    Action("lock", "Lock", "lock", says="The server is locked.", is_done=True),
    Action("unlock", "Unlock", "unlock", says="The server is unlocked.", is_done=True),
    Action(
        "restore",
        "Restore",
        "restore",
        "restore",
        statuses=("SOFT_DELETED",),
        says="The server is being restored.",
        is_first=True,
    ),
)

_OF_OPERATORS = (
    Action(
        "migrate",
        "Migrate (stopped)",
        "migrate",
        "migrate",
        May.MANAGE,
        moves=True,
        asks="It is stopped while it moves to another host: what runs in it ends, and what isn't "
        "saved is lost. Its disks remain.",
        says="The server is being moved.",
    ),
    Action(
        "live-migrate",
        "Live migrate",
        "os-migrateLive",
        "live-migration",
        May.MANAGE,
        value={"host": None, "block_migration": "auto"},
        statuses=_ACTIVE,
        moves=True,
        says="The server is being moved while it runs.",
    ),
    Action(
        "retry",
        "Retry",
        "retry",
        may=May.OPERATE,
        statuses=_IN_TROUBLE,
        says="What failed is being tried again.",
    ),
    Action(
        "hold",
        "Hold",
        "hold",
        may=May.OPERATE,
        statuses=_IN_TROUBLE,
        says="The server is held: nothing is tried again by itself.",
        is_done=True,
    ),
    Action(
        "reset-error",
        "Mark as active",
        "os-resetState",
        may=May.OPERATE,
        value={"state": "active"},
        asks="Only the record is changed: make sure that the VM is well.",
        statuses=("ERROR",),
        says="The server is marked as active.",
        is_done=True,
    ),
)

ACTIONS: Mapping[str, Action] = {one.name: one for one in (*_POWER, *_SHAPE, *_OF_OPERATORS)}

DELETE = Action(
    "delete", "Delete", "", asks="The server and its disks are deleted, and can't be restored."
)


def buttons(
    visit: Visit,
    server: Mapping[str, Any],
    obstacle: str | None = None,
    of: Iterable[Action] = ACTIONS.values(),
) -> list[Action]:
    """Return the actions that the user may do and the server's state allows.

    `obstacle`: why the API wouldn't move the server, where it says so.
    """
    return [
        one
        for one in of
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
