"""The list of volumes, and all pages about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.answer import Answer, view
from dashboard.cloud import COMPUTE, VOLUME, Call, rows
from dashboard.page import Page
from dashboard.pages.volume import actions, copies, create, show, transfer
from dashboard.visit import Visit

_MOST = 1000


def index(visit: Visit) -> Answer:
    """List a page of volumes."""
    query = {
        "limit": visit.limit,
        "marker": visit.query.get("marker"),
        "name~": visit.query.get("name"),
    }
    found, servers = visit.cloud.together(
        Call(VOLUME, "/volumes/detail", query),
        Call(COMPUTE, "/servers", {"limit": _MOST}, optional=True),
    )
    volumes = found["volumes"]
    more = bool(found.get("volumes_links"))
    return view(
        "volumes.html",
        volumes=volumes,
        servers=_names(servers),
        asked=visit.query,
        here=visit.here("/volumes"),
        busy=show.is_busy(volumes),
        refresh_seconds=show.REFRESH_SECONDS,
        following=visit.here("/volumes", marker=volumes[-1]["id"]) if more and volumes else "",
    )


def _names(answer: Any) -> Mapping[str, str]:
    """Return the servers' names by their IDs."""
    return {str(one["id"]): str(one["name"]) for one in rows(answer, "servers")}


PAGES = (
    Page("/volumes", index, calls=2),
    *create.PAGES,
    *copies.PAGES,
    *show.PAGES,
    *transfer.PAGES,
    *actions.PAGES,
)
