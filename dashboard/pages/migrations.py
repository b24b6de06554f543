"""Migrations of servers, and many in one operation: drains and rebalances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import falcon

from dashboard.answer import Answer, Redirect, view
from dashboard.cloud import COMPUTE, Call, following, rows, segment
from dashboard.page import Page
from dashboard.rights import May
from dashboard.visit import Visit

REFRESH_SECONDS = 2
_ENDED = frozenset({"done", "failed"})
_BULK_SHOWN = 10
#: servers whose names are read, the newest
_NAMED = 1000
_FILTERS: Mapping[str, str] = {
    "status": "status",
    "host": "host",
    "server": "instance_uuid",
    "type": "migration_type",
}
TYPES = ("live-migration", "migration", "resize", "evacuation")
#: statuses of a live migration that can be aborted
_ABORTABLE = frozenset({"queued", "preparing", "running"})


@dataclass(frozen=True)
class Steering:
    """What may be done to a bulk migration that is under way."""

    name: str
    """In our paths and in the API's body."""
    title: str
    said: str
    wishes: tuple[str, ...]
    """What was asked of it before, where this makes sense."""


STEERING: Mapping[str, Steering] = {
    one.name: one
    for one in (
        Steering("pause", "Pause", "No more moves begin for now; those under way end.", ("go",)),
        Steering("resume", "Resume", "Moves begin again.", ("pause",)),
        Steering(
            "cancel",
            "Cancel",
            "No more moves begin; it ends with those under way.",
            ("go", "pause"),
        ),
    )
}


def index(visit: Visit) -> Answer:
    """List a page of migrations; to administrators those of all projects, and bulk migrations."""
    asked = {name: visit.query.get(name, "").strip() for name in _FILTERS}
    query: dict[str, Any] = {_FILTERS[name]: value for name, value in asked.items()}
    query |= {"limit": visit.limit, "marker": visit.query.get("marker")}
    if not visit.operates:
        query["project_id"] = visit.project_id
    whose = {"limit": _NAMED, "all_tenants": "1" if visit.operates else None}
    calls = [
        Call(COMPUTE, "/os-migrations", query),
        Call(COMPUTE, "/servers", whose, optional=True),
    ]
    if visit.operates:
        calls.append(Call(COMPUTE, "/bulk-migrations", {"limit": _BULK_SHOWN}, optional=True))
    found, servers, *bulk = visit.cloud.together(*calls)
    return view(
        "migrations.html",
        migrations=found["migrations"],
        names={one["id"]: one["name"] for one in rows(servers, "servers")},
        abortable=_ABORTABLE,
        asked=asked,
        types=TYPES,
        following=visit.next_page("/migrations", following(found, "migrations")),
        bulk=rows(bulk[0], "bulk_migrations") if bulk else (),
    )


def abort(visit: Visit) -> Answer:
    """Abort a live migration: the server remains on its host."""
    server, number = segment(visit.params["server_id"]), visit.params["number"]
    path = f"/servers/{server}/migrations/{number}"
    said = "The migration is being aborted."
    return visit.begin("/migrations", said, visit.cloud.delete, COMPUTE, path)


def show_bulk(visit: Visit) -> Answer:
    """Show a bulk migration with its moves; it follows by itself while it is under way."""
    found = visit.cloud.get(COMPUTE, _bulk_path(visit))["bulk_migration"]
    is_over = found["state"] in _ENDED
    states = Counter(one["state"] for one in found["moves"])
    return view(
        "bulk_migration.html",
        bulk=found,
        states=sorted(states.items()),
        is_over=is_over,
        steering=[] if is_over else _offered(found["asked"]),
        refresh_seconds=REFRESH_SECONDS,
    )


def _offered(wish: str) -> list[Steering]:
    return [one for one in STEERING.values() if wish in one.wishes]


def steer(visit: Visit) -> Answer:
    """Pause, resume or cancel a bulk migration."""
    name = visit.params["steering"]
    if name not in STEERING:
        raise falcon.HTTPNotFound
    path, back = _bulk_path(visit), f"/migrations/bulk/{visit.params['number']}"
    send = visit.cloud.post
    return visit.change(back, STEERING[name].said, send, COMPUTE, f"{path}/action", {name: None})


def plan(visit: Visit) -> Answer:
    """Show the moves that would fill the hosts more evenly: nothing moves yet."""
    limit = visit.query.get("moves", "").strip() or "10"
    found = visit.cloud.get(COMPUTE, "/rebalance", limit=limit)["rebalance"]
    pinned = Counter(str(one["reason"]) for one in found["pinned"])
    return view("rebalance.html", plan=found, pinned=pinned.most_common(), limit=limit)


def rebalance(visit: Visit) -> Answer:
    """Plan again, begin the moves, and follow them."""
    asked = {"limit": visit.number("limit"), "at_once": visit.number("at_once")}
    body = {"bulk_migration": {"rebalance": asked}}
    begun = visit.changed(visit.cloud.post, COMPUTE, "/bulk-migrations", body)
    if begun is None:
        return Redirect("/migrations/rebalance")
    visit.note("The servers are being moved.", "begun")
    return Redirect(f"/migrations/bulk/{begun['bulk_migration']['id']}")


def _bulk_path(visit: Visit) -> str:
    return f"/bulk-migrations/{visit.params['number']}"


_BULK = "/migrations/bulk/{number:int}"
PAGES = (
    Page("/migrations", index, May.MANAGE, calls=3),
    Page("/migrations/of/{server_id:uuid}/{number:int}/abort", abort, May.MANAGE, "POST"),
    Page(_BULK, show_bulk, May.OPERATE),
    Page(_BULK + "/{steering}", steer, May.OPERATE, "POST"),
    Page("/migrations/rebalance", plan, May.OPERATE),
    Page("/migrations/rebalance", rebalance, May.OPERATE, "POST"),
)
