"""The list of servers: found, sorted, followed; and what is done to several at once.

A page follows changes of everybody by one request in each interval. That asks the API which server
changed since the page was made, which is cheap; only then the list is read again, and only what
differs from what is shown is sent.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from common import clock, ids
from common.counting import counted
from dashboard.answer import Answer, Redirect, Same, view
from dashboard.cloud import COMPUTE, IDENTITY, IMAGE, Call, following, segment
from dashboard.page import Page
from dashboard.pages.server import actions, console, loss
from dashboard.pages.server.actions import ACTIONS, DELETE, Action
from dashboard.pages.server.loss import Loss
from dashboard.rights import May
from dashboard.visit import Visit

PATH = "/servers"
SORTS: Mapping[str, str] = {
    "created_at": "Created",
    "display_name": "Name",
    "vm_state": "State",
}
STATUSES = ("ACTIVE", "BUILD", "ERROR", "SHUTOFF", "PAUSED", "SUSPENDED", "SHELVED_OFFLOADED")
#: others' changes are seen within three seconds
REFRESH_SECONDS = 2.0
#: how far clocks may differ, and changes be visible late
SKEW_SECONDS = 10
#: servers of one action
MOST_AT_ONCE = 100
_EVERY = "all_tenants"
_DETAIL = "/servers/detail"
_MOST_SAID = 5
#: characters of a search
_LONGEST = 255

#: what a row offers, with its console and its end
_OF_ROWS = (ACTIONS["start"], ACTIONS["stop"], ACTIONS["reboot"])


def _of_each(action: Action, says: str) -> Action:
    """Return an action on several servers, which asks as that on one of them does."""
    return replace(action, asks="Each" + action.asks.removeprefix("It"), says=says)


#: what is done to several servers: those with a sentence ask first
BULK: Mapping[str, Action] = {
    "start": replace(ACTIONS["start"], says="being started"),
    "stop": _of_each(ACTIONS["stop"], "being stopped"),
    "reboot": _of_each(ACTIONS["reboot"], "being rebooted"),
    "delete": replace(
        DELETE,
        asks="These servers and their disks are deleted, and can't be restored.",
        says="being deleted",
    ),
}

Server = Mapping[str, Any]


@dataclass(frozen=True)
class Found:
    """A page of servers."""

    servers: Sequence[Server]
    totals: Mapping[str, Any]
    """Of all pages, as the API has them; empty: it has none."""
    marker: str = ""
    """Where the next page begins; empty: there is none."""


def index(visit: Visit) -> Answer:
    """List a page of servers, as the API finds, sorts and limits them."""
    return view("servers.html", **_shown(visit, _find(visit)))


def refresh(visit: Visit) -> Answer:
    """Show the list again if it differs from what the browser shows."""
    since, seen = visit.query.get("since", ""), visit.query.get("seen", "")
    if since and not _changed(visit, since):
        return Same()
    shown = _shown(visit, _find(visit))
    return view("servers_poll.html", swap=shown["seen"] != seen, **shown)


def bulk(visit: Visit) -> Answer:
    """Do something to the chosen servers, after a page that names them where it asks first."""
    action, chosen = BULK.get(visit.field("action")), _chosen(visit)
    if action is None or not chosen:
        visit.note("Choose servers, and what to do.", "failed")
        return Redirect(PATH)
    if action.asks and not visit.field("sure"):
        return view("servers_bulk.html", action=action, servers=_named(visit, chosen))
    answers = visit.cloud.together(*(_call(action, one) for one in chosen))
    refused = [
        (one, answer.message)
        for one, answer in zip(chosen, answers, strict=True)
        if answer is not None and not answer and hasattr(answer, "message")
    ]
    done = len(chosen) - len(refused)
    if done:
        said = counted(done, "server is", "servers are")
        visit.note(f"{said} {action.says}.", "begun")
    for one, why in refused[:_MOST_SAID]:
        visit.note(f"{one}: {why}", "failed")
    if len(refused) > _MOST_SAID:
        visit.note(f"And {len(refused) - _MOST_SAID} more were refused.", "failed")
    return Redirect(PATH)


def _call(action: Action, uuid: str) -> Call:
    path = f"/servers/{segment(uuid)}"
    if not action.key:
        return Call(COMPUTE, path, method="DELETE", optional=True)
    body = {action.key: action.value}
    return Call(COMPUTE, f"{path}/action", body=body, method="POST", optional=True)


def _chosen(visit: Visit) -> list[str]:
    given = (one for one in visit.fields("server") if ids.is_uuid(one))
    return list(dict.fromkeys(given))[:MOST_AT_ONCE]


def _named(visit: Visit, chosen: Sequence[str]) -> list[Loss]:
    """Return what would be lost with each that is still there."""
    *answers, volumes = visit.cloud.together(
        *(Call(COMPUTE, f"{PATH}/{segment(one)}", optional=True) for one in chosen), loss.VOLUMES
    )
    names = loss.names_of(volumes)
    return [loss.loss(answer["server"], names) for answer in answers if answer]


def _everybody(visit: Visit) -> dict[str, Any]:
    """Return the filter for the servers of all projects; a whole ID is looked for in all."""
    asked = visit.query.get(_EVERY) or ids.is_uuid(_wanted(visit))
    return {_EVERY: 1} if visit.operates and asked else {}


def _changed(visit: Visit, since: str) -> bool:
    """Return whether any server that the user may see has changed."""
    everybody = _everybody(visit)

    def ask(since: str) -> bool:
        query = {"changes-since": since, "limit": 1, **everybody}
        return bool(visit.cloud.get(COMPUTE, PATH, **query)["servers"])

    whose = (visit.project_id, bool(everybody))
    return visit.unchanged.is_changed(whose, since, ask)


def _find(visit: Visit) -> Found:
    """Return what is searched for by name, address, tag or ID, with the totals: one request.

    An API of release 1.0.0 finds by name, and has no totals.
    """
    asked = visit.query
    sort, status = asked.get("sort", ""), asked.get("status", "")
    query: dict[str, Any] = {
        "limit": visit.limit,
        "marker": asked.get("marker"),
        "status": status if status in STATUSES else None,
        "sort_key": sort if sort in SORTS else "created_at",
        "sort_dir": "asc" if asked.get("dir") == "asc" else "desc",
        **_everybody(visit),
    }
    wanted = _wanted(visit)[:_LONGEST]
    ours = {"micronova:search": wanted, "micronova:totals": True}
    older = {**query, "name": re.escape(wanted)}
    answer = visit.cloud.send(Call(COMPUTE, _DETAIL, {**query, **ours}, older))
    marker = following(answer, "servers")
    return Found(answer["servers"], answer.get("micronova:totals", {}), marker)


def _wanted(visit: Visit) -> str:
    return visit.query.get("q", visit.query.get("name", "")).strip()


def _shown(visit: Visit, found: Found) -> dict[str, Any]:
    servers = found.servers
    everybody = bool(_everybody(visit))
    seen, since = _digest(found), clock.iso(clock.after(-SKEW_SECONDS)) or ""
    images, projects = _names(visit, servers, everybody)
    return {
        "servers": servers,
        "images": images,
        "projects": projects,
        "everybody": everybody,
        "totals": found.totals,
        "bulk": BULK.values(),
        "row_actions": {one["id"]: actions.buttons(visit, one, of=_OF_ROWS) for one in servers},
        "with_console": console.STATES,
        "following": _next_page(visit, found.marker),
        "sorts": SORTS,
        "statuses": STATUSES,
        "asked": visit.query,
        "wanted": _wanted(visit),
        "regions": len(visit.cloud.regions()),
        "seen": seen,
        "poll": visit.here(f"{PATH}/rows", seen=seen, since=since),
        "refresh_seconds": REFRESH_SECONDS,
    }


def _next_page(visit: Visit, marker: str) -> str:
    return visit.here(PATH, marker=marker, seen=None, since=None) if marker else ""


def _digest(found: Found) -> str:
    """Return what differs if any row would, or the totals."""
    shown = (
        (
            one["id"],
            one["name"],
            one["status"],
            one["OS-EXT-STS:task_state"],
            one["updated"],
            one.get("locked"),
            one.get("tags"),
            one.get("OS-EXT-SRV-ATTR:host"),
            one["addresses"],
        )
        for one in found.servers
    )
    return hashlib.blake2b(repr([found.totals, *shown]).encode(), digest_size=8).hexdigest()


def _names(
    visit: Visit, servers: Sequence[Server], everybody: bool
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the names of the servers' images and, of everybody's servers, of projects."""
    images = sorted({str(one["image"]["id"]) for one in servers if one.get("image")})
    wanted = Call(
        IMAGE, "/v2/images", {"id": f"in:{','.join(images)}", "limit": len(images)}, optional=True
    )
    known = Call(IDENTITY, "/projects", optional=True)
    calls = [wanted] * bool(images) + [known] * everybody
    answers = visit.cloud.together(*calls) if calls else []
    pictured = answers[0]["images"] if images and answers[0] else ()
    named = answers[-1]["projects"] if everybody and answers[-1] else ()
    return {one["id"]: one["name"] for one in pictured}, {one["id"]: one["name"] for one in named}


PAGES = (
    Page(PATH, index, calls=3),
    Page(f"{PATH}/rows", refresh, calls=4),
    Page(f"{PATH}/bulk", bulk, May.CHANGE, "POST", calls=MOST_AT_ONCE + 1),
)
