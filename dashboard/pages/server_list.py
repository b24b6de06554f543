"""The list of servers: found, sorted, followed; and what is done to several at once.

A page follows changes of everybody by one request in each interval. That asks the API which server
changed since the page was made, which is cheap; only then the list is read again, and only what
differs from what is shown is sent.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common import clock, ids
from dashboard import addresses
from dashboard.answer import Answer, Redirect, Same, view
from dashboard.cloud import COMPUTE, IDENTITY, IMAGE, Call, following, segment
from dashboard.page import Page
from dashboard.pages.server import actions
from dashboard.pages.server.actions import ACTIONS, Action
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

#: what is done to several servers: those with a sentence ask first
BULK: Mapping[str, Action] = {
    "start": ACTIONS["start"],
    "stop": Action("stop", "Stop", "os-stop", asks="What runs in these servers ends."),
    "reboot": Action(
        "reboot", "Reboot", "reboot", value={"type": "SOFT"}, asks="These servers are restarted."
    ),
    "delete": Action(
        "delete", "Delete", "", asks="These servers and their disks are deleted for good."
    ),
}

Server = Mapping[str, Any]


@dataclass(frozen=True)
class Found:
    """A page of servers."""

    servers: Sequence[Server]
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
        visit.note(f"{action.title}: accepted for {done} server{'s' if done > 1 else ''}.")
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


def _named(visit: Visit, chosen: Sequence[str]) -> list[tuple[str, str]]:
    """Return ID and name of each that is still there."""
    answers = visit.cloud.together(
        *(Call(COMPUTE, f"{PATH}/{segment(one)}", optional=True) for one in chosen)
    )
    found = [answer["server"] for answer in answers if answer]
    return [(one["id"], one["name"] or one["id"]) for one in found]


def _everybody(visit: Visit) -> dict[str, Any]:
    return {_EVERY: 1} if visit.operates and visit.query.get(_EVERY) else {}


def _changed(visit: Visit, since: str) -> bool:
    """Return whether any server that the user may see has changed."""
    everybody = _everybody(visit)

    def ask(since: str) -> bool:
        query = {"changes-since": since, "limit": 1, **everybody}
        return bool(visit.cloud.get(COMPUTE, PATH, **query)["servers"])

    whose = (visit.project_id, bool(everybody))
    return visit.unchanged.is_changed(whose, since, ask)


def _find(visit: Visit) -> Found:
    """Return what is searched for: by name, address, tag or ID."""
    asked, wanted = visit.query, visit.query.get("q", visit.query.get("name", "")).strip()
    if ids.is_uuid(wanted):
        one = visit.cloud.send(Call(COMPUTE, f"{PATH}/{segment(wanted)}", optional=True))
        return Found([one["server"]] if one else [])
    sort, status = asked.get("sort", ""), asked.get("status", "")
    query: dict[str, Any] = {
        "limit": visit.limit,
        "marker": asked.get("marker"),
        "status": status if status in STATUSES else None,
        "sort_key": sort if sort in SORTS else "created_at",
        "sort_dir": "asc" if asked.get("dir") == "asc" else "desc",
        **_everybody(visit),
    }
    answers = visit.cloud.together(
        *(Call(COMPUTE, _DETAIL, {**query, **one}) for one in _searches(wanted))
        if not query["marker"] or not wanted
        else (Call(COMPUTE, _DETAIL, {**query, "name": re.escape(wanted)}),)
    )
    servers = {one["id"]: one for answer in answers for one in answer["servers"]}
    return Found(list(servers.values()), following(answers[0], "servers"))


def _searches(wanted: str) -> Iterator[dict[str, str]]:
    """Yield the filters whose results are shown together; the first one is paged.

    >>> list(_searches("web.1"))
    [{'name': 'web\\\\.1'}, {'tags': 'web.1'}]
    """
    if not wanted:
        yield {}
        return
    yield {"name": re.escape(wanted)}
    if addresses.is_part(wanted):
        yield addresses.filters(wanted)
    if len(wanted) <= 60 and not set(wanted) & set(",/"):
        yield {"tags": wanted}


def _shown(visit: Visit, found: Found) -> dict[str, Any]:
    servers = found.servers
    everybody = bool(_everybody(visit))
    seen, since = _digest(servers), clock.iso(clock.after(-SKEW_SECONDS)) or ""
    images, projects = _names(visit, servers, everybody)
    return {
        "servers": servers,
        "images": images,
        "projects": projects,
        "everybody": everybody,
        "totals": _totals(servers),
        "bulk": BULK.values(),
        "row_actions": {one["id"]: list(_row_actions(visit, one)) for one in servers},
        "following": _next_page(visit, found.marker),
        "sorts": SORTS,
        "statuses": STATUSES,
        "asked": visit.query,
        "wanted": visit.query.get("q", visit.query.get("name", "")),
        "regions": len(visit.cloud.regions()),
        "seen": seen,
        "poll": visit.here(f"{PATH}/rows", seen=seen, since=since),
        "refresh_seconds": REFRESH_SECONDS,
    }


def _next_page(visit: Visit, marker: str) -> str:
    return visit.here(PATH, marker=marker, seen=None, since=None) if marker else ""


def _digest(servers: Iterable[Server]) -> str:
    """Return what differs if any row would."""
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
        for one in servers
    )
    return hashlib.blake2b(repr(list(shown)).encode(), digest_size=8).hexdigest()


def _row_actions(visit: Visit, server: Server) -> Iterator[Action]:
    """Yield what a row offers without asking first."""
    if visit.may(May.CHANGE):
        allowed = {one.name for one in actions.buttons(visit, server)}
        yield from (ACTIONS[name] for name in ("start", "reboot") if name in allowed)


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


def _totals(servers: Sequence[Server]) -> dict[str, Any]:
    states = Counter(str(one["status"]) for one in servers)
    return {
        "count": len(servers),
        "states": states.most_common(),
        "vcpus": sum(int(one["flavor"].get("vcpus", 0)) for one in servers),
        "memory_gib": round(sum(int(one["flavor"].get("ram", 0)) for one in servers) / 1024, 1),
        "disk_gib": sum(int(one["flavor"].get("disk", 0)) for one in servers),
    }


PAGES = (
    Page(PATH, index, calls=5),
    Page(f"{PATH}/rows", refresh, calls=6),
    Page(f"{PATH}/bulk", bulk, May.CHANGE, "POST", calls=MOST_AT_ONCE),
)
