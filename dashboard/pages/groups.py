"""Scaling groups: how many servers each has and should have, why, and what changes that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import falcon

from dashboard.answer import Answer, Redirect, view
from dashboard.cloud import CLUSTERING, Call, rows, segment
from dashboard.page import Page
from dashboard.pages import group_forms
from dashboard.pages.group_forms import API, PATH, cluster_path, page_of
from dashboard.rights import May
from dashboard.visit import Visit

REFRESH_SECONDS = 2
#: members whose states are counted in a list
_COUNTED = 1000
#: statuses that last
_AT_REST = frozenset({"ACTIVE", "WARNING", "ERROR"})
#: verb of our paths → the API's action, and what the next page says
_ACTIONS: Mapping[str, tuple[str, str]] = {
    "recover": ("recover", "What does not work is repaired."),
    "check": ("check", "The servers are looked at."),
    "pause": ("micronova:pause", "The update is paused."),
    "resume": ("micronova:resume", "The update is resumed."),
    "roll-back": ("micronova:roll_back", "The servers get the former profile again."),
}


def index(visit: Visit) -> Answer:
    """List a page of groups with how many of their servers work."""
    query = {"limit": visit.limit, "marker": visit.query.get("marker")}
    found, nodes = visit.cloud.together(
        Call(CLUSTERING, API, query),
        Call(CLUSTERING, "/nodes", {"limit": _COUNTED, "status": "ACTIVE"}, optional=True),
    )
    groups = found["clusters"]
    more = groups[-1]["id"] if len(groups) == visit.limit else ""
    return view(
        "groups.html",
        groups=groups,
        working=Counter(one["cluster_id"] for one in rows(nodes, "nodes")),
        counted=bool(nodes) and len(nodes["nodes"]) < _COUNTED,
        following=visit.next_page(PATH, more),
    )


def show(visit: Visit) -> Answer:
    """Show a group: its size, why it is as it is, its members and its last operations."""
    path = cluster_path(visit)
    nodes, why, found = visit.cloud.together(
        Call(CLUSTERING, "/nodes", {"cluster_id": visit.params["cluster_id"], "limit": _COUNTED}),
        Call(CLUSTERING, f"{path}/explanation"),
        Call(CLUSTERING, path),
    )
    group, explanation = found["cluster"], why["explanation"]
    return view(
        "group.html",
        group=group,
        why=explanation,
        nodes=sorted(nodes["nodes"], key=lambda one: (one["index"], one["name"])),
        working=sum(one["status"] == "ACTIVE" for one in nodes["nodes"]),
        steers=list(_steers(explanation)),
        busy=group["status"] not in _AT_REST,
        refresh_seconds=REFRESH_SECONDS,
    )


def _steers(explanation: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what can be done with an update: name of the path, and title."""
    update = explanation["update"]
    if update["state"] == "running":
        yield "pause", "Pause the update"
    if update["state"] == "paused":
        yield "resume", "Resume the update"
    if update["former_profile_id"]:
        yield "roll-back", "Roll back"


def scale(visit: Visit) -> Answer:
    """Change the size, or the limits of it; what the form leaves empty is not changed."""
    asked: dict[str, Any] = {
        name: visit.number(name) for name in ("min_size", "max_size") if visit.field(name)
    }
    step = visit.field("step")
    if step in ("+1", "-1"):
        asked = {"adjustment_type": "CHANGE_IN_CAPACITY", "number": int(step)}
    elif visit.field("desired"):
        asked |= {"adjustment_type": "EXACT_CAPACITY", "number": visit.number("desired")}
    said = "The size is being changed."
    return _act(visit, "resize", said, asked)


def act(visit: Visit) -> Answer:
    """Have something done with all members, or with an update."""
    found = _ACTIONS.get(visit.params["action"])
    if found is None:
        raise falcon.HTTPNotFound
    return _act(visit, *found, {})


def _act(visit: Visit, action: str, said: str, values: Mapping[str, Any]) -> Redirect:
    path = f"{cluster_path(visit)}/actions"
    return visit.change(page_of(visit), said, visit.cloud.post, CLUSTERING, path, {action: values})


def ask_delete(visit: Visit) -> Answer:
    """Ask whether a group is to be deleted, and what becomes of its servers."""
    return view(
        "group_delete.html", group=visit.cloud.get(CLUSTERING, cluster_path(visit))["cluster"]
    )


def delete(visit: Visit) -> Answer:
    """Delete a group, with its servers or without."""
    keep = bool(visit.field("keep"))
    body = {"micronova:delete": {"keep": keep}}
    if visit.changed(visit.cloud.post, CLUSTERING, f"{cluster_path(visit)}/actions", body) is None:
        return Redirect(page_of(visit))
    servers = "its servers remain" if keep else "with its servers"
    visit.note(f"The group is being deleted, {servers}.")
    return Redirect(PATH)


def recover_member(visit: Visit) -> Answer:
    """Have the server of a member replaced."""
    path = f"/nodes/{segment(visit.params['node_id'])}/actions"
    said = "The server is being replaced."
    return visit.change(page_of(visit), said, visit.cloud.post, CLUSTERING, path, {"recover": {}})


_GROUP = PATH + "/{cluster_id:uuid}"
PAGES = (
    Page(PATH, index, calls=2),
    *group_forms.PAGES,
    Page(_GROUP, show, calls=3),
    Page(f"{_GROUP}/scale", scale, May.CHANGE, "POST"),
    Page(f"{_GROUP}/delete", ask_delete, May.CHANGE),
    Page(f"{_GROUP}/delete", delete, May.CHANGE, "POST"),
    Page(_GROUP + "/members/{node_id:uuid}/replace", recover_member, May.CHANGE, "POST"),
    Page(_GROUP + "/{action}", act, May.CHANGE, "POST"),
)
