"""Servers that wait for room on a host; to administrators also what would take them."""

from __future__ import annotations

from dashboard.answer import Answer, view
from dashboard.cloud import COMPUTE, Call, Missing, following
from dashboard.page import Page
from dashboard.visit import Visit

REFRESH_SECONDS = 5


def index(visit: Visit) -> Answer:
    """List them in the order of their arrival: the project's, to administrators all."""
    query = {"limit": visit.limit, "marker": visit.query.get("marker")}
    calls = [Call(COMPUTE, "/waiting", query)]
    if visit.operates:
        calls.append(Call(COMPUTE, "/waiting/hosts", optional=True))
    found, *hosts = visit.cloud.together(*calls)
    kinds = [] if not hosts or isinstance(hosts[0], Missing) else hosts[0]["kinds"]
    return view(
        "waiting.html",
        waiting=found["waiting"],
        moves=found.get("moves", ()),
        kinds=[one for one in kinds if one["more_hosts"]],
        following=visit.next_page("/servers/waiting", following(found, "waiting")),
        refresh_seconds=REFRESH_SECONDS,
    )


PAGES = (Page("/servers/waiting", index, calls=2),)
