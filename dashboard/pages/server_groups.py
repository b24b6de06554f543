"""Server groups: which servers are placed together or apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.resources.server_groups import MAX_PER_HOST, Policy
from dashboard.answer import Answer, confirm, view
from dashboard.cloud import COMPUTE, Call, rows, segment
from dashboard.page import Page
from dashboard.rights import May
from dashboard.visit import Visit

PATH = "/server-groups"
_API = "/os-server-groups"
#: servers whose names are read
_NAMED = 1000
POLICIES: Mapping[str, str] = {
    Policy.ANTI_AFFINITY: "each on another host, or not at all",
    Policy.AFFINITY: "all on the same host, or not at all",
    Policy.SOFT_ANTI_AFFINITY: "on different hosts if possible",
    Policy.SOFT_AFFINITY: "on the same host if possible",
}


def index(visit: Visit) -> Answer:
    """List a page of groups with their members, with the form for another one."""
    asked = visit.query.get("offset", "")
    offset = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 8 else 0
    found, servers = visit.cloud.together(
        Call(COMPUTE, _API, {"limit": visit.limit, "offset": offset}),
        Call(COMPUTE, "/servers", {"limit": _NAMED}, optional=True),
    )
    groups = found["server_groups"]
    more = visit.here(PATH, offset=offset + visit.limit) if len(groups) == visit.limit else ""
    return view(
        "server_groups.html",
        groups=groups,
        servers={one["id"]: one["name"] for one in rows(servers, "servers")},
        policies=POLICIES,
        per_host=MAX_PER_HOST,
        following=more,
    )


def create(visit: Visit) -> Answer:
    """Make a group, which servers join when they are created."""
    asked: dict[str, Any] = {"name": visit.field("name"), "policy": visit.field("policy")}
    if visit.field("per_host"):
        asked["rules"] = {MAX_PER_HOST: visit.number("per_host")}
    said = f"The group {asked['name']} is made: choose it when a server is created."
    return visit.change(PATH, said, visit.cloud.post, COMPUTE, _API, {"server_group": asked})


def ask_delete(visit: Visit) -> Answer:
    """Ask whether a group is to be deleted."""
    group = visit.cloud.get(COMPUTE, _path(visit))["server_group"]
    said = "The group is deleted. Its servers remain, and may be placed anywhere from then on."
    return confirm(f"Delete {group['name']}?", said, f"{PATH}/{group['id']}/delete", PATH)


def delete(visit: Visit) -> Answer:
    """Delete a group."""
    return visit.change(PATH, "The group is deleted.", visit.cloud.delete, COMPUTE, _path(visit))


def _path(visit: Visit) -> str:
    return f"{_API}/{segment(visit.params['server_group_id'])}"


_GROUP = PATH + "/{server_group_id:uuid}"
PAGES = (
    Page(PATH, index, calls=2),
    Page(PATH, create, May.CHANGE, "POST"),
    Page(f"{_GROUP}/delete", ask_delete, May.CHANGE),
    Page(f"{_GROUP}/delete", delete, May.CHANGE, "POST"),
)
