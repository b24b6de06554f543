"""What all tabs of a server show: its state, its buttons, and the way to the other tabs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.resources.states import OPEN_STATES
from common.story.summary import host_line
from dashboard.answer import View
from dashboard.cloud import COMPUTE, Call, segment
from dashboard.pages.server import actions
from dashboard.rights import May
from dashboard.visit import Visit

#: task_states are asked for again this often
REFRESH_SECONDS = 2


@dataclass(frozen=True)
class Tab:
    """One page about a server."""

    name: str
    """In its path; empty: the first one."""
    title: str
    may: May = May.READ


TABS = (
    Tab("", "Overview"),
    Tab("network", "Network"),
    Tab("storage", "Storage"),
    Tab("console", "Console", May.CHANGE),
    Tab("log", "Log", May.CHANGE),
    Tab("history", "History"),
    Tab("metadata", "Metadata"),
)


@dataclass(frozen=True)
class Framed:
    """A server and its explanation."""

    visit: Visit
    server: Mapping[str, Any]
    explained: Mapping[str, Any]
    answers: list[Any]
    """To the tab's own calls."""

    def view(
        self, tab: str, *, follows: bool = False, frames: tuple[str, ...] = (), **values: Any
    ) -> View:
        """Return a tab; `follows`: whether something of its own is under way."""
        obstacle = (self.explained.get("move") or {}).get("obstacle")
        mine = next(one for one in TABS if one.name == tab)
        every = {
            "server": self.server,
            "busy": follows or is_busy(self.server) or _is_followed(self.explained),
            "host_line": host_line(self.explained),
            "buttons": actions.buttons(self.visit, self.server, obstacle),
            "obstacle": obstacle,
            "tabs": [one for one in TABS if self.visit.may(one.may)],
            "tab": mine,
            "here": f"/servers/{self.server['id']}" + (f"/{tab}" if tab else ""),
            "refresh_seconds": REFRESH_SECONDS,
        }
        return View(f"server/{tab or 'overview'}.html", {**every, **values}, frames=frames)


def framed(visit: Visit, *calls: Call) -> Framed:
    """Return a server, and the answers to what a tab asks besides.

    The server is read last: it is then never older than the operations, whose end ends the
    refreshes.
    """
    uuid = segment(visit.params["server_id"])
    *answers, story = visit.cloud.together(
        *calls, Call(COMPUTE, f"/explanations/{uuid}", optional=True)
    )
    found = visit.cloud.get(COMPUTE, f"/servers/{uuid}")
    return Framed(visit, found["server"], story["explanation"] if story else {}, answers)


def is_busy(server: Mapping[str, Any]) -> bool:
    """Return whether an operation on a server is in progress."""
    return bool(server.get("OS-EXT-STS:task_state")) or server.get("status") == "BUILD"


def _is_followed(explained: Mapping[str, Any]) -> bool:
    """Return whether the last operation is open: a server fails a moment before its operation."""
    operations = explained.get("operations") or ()
    newest: Mapping[str, Any] = operations[-1] if operations else {}
    return newest.get("state") in OPEN_STATES and not newest.get("held")
