"""Scaling groups: how many servers each has and should have, why, and what changes that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import falcon

from common.counting import counted
from dashboard.answer import Answer, Redirect, confirm, view
from dashboard.cloud import CLUSTERING, Call, rows, segment
from dashboard.page import Page
from dashboard.pages.scaling import forms
from dashboard.pages.scaling.forms import API, PATH, cluster_path, page_of
from dashboard.rights import May
from dashboard.visit import Visit

REFRESH_SECONDS = 2
#: members whose states are counted in a list
_COUNTED = 1000
#: statuses that last
_AT_REST = frozenset({"ACTIVE", "WARNING", "ERROR"})


@dataclass(frozen=True)
class Action:
    """What is done to a whole group."""

    title: str
    key: str
    """In the body of the API's request."""
    says: str
    """What the next page says is under way."""
    asks: str
    """A sentence to confirm first."""


#: name in our paths → the action
_ACTIONS: Mapping[str, Action] = {
    "check": Action(
        "Check",
        "check",
        "The servers are being looked at.",
        "The group learns which of its servers work. Nothing is lost.",
    ),
    "recover": Action(
        "Recover",
        "recover",
        "What does not work is being repaired.",
        "Servers that do not work are started or replaced; the disks of replaced ones are lost. "
        "Creations that had stopped are tried again.",
    ),
    "pause": Action(
        "Pause the update",
        "micronova:pause",
        "The update is being paused.",
        "No more servers are replaced until it is resumed.",
    ),
    "resume": Action(
        "Resume the update",
        "micronova:resume",
        "The update is being resumed.",
        "Servers are replaced again, a few at a time.",
    ),
    "roll-back": Action(
        "Roll back",
        "micronova:roll_back",
        "The former profile is being brought back.",
        "Servers of the present profile are deleted with their disks, a few at a time, and "
        "servers of the former profile take their places.",
    ),
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
        actions=list(_offered(explanation)),
        busy=group["status"] not in _AT_REST,
        refresh_seconds=REFRESH_SECONDS,
    )


def _offered(explanation: Mapping[str, Any]) -> Iterator[tuple[str, Action]]:
    """Yield what makes sense now, by its name in our paths."""
    update = explanation["update"]
    wanted = {
        "recover": True,
        "pause": update["state"] == "running",
        "resume": update["state"] == "paused",
        "roll-back": bool(update["former_profile_id"]),
    }
    yield from ((name, _ACTIONS[name]) for name, offered in wanted.items() if offered)


def scale(visit: Visit) -> Answer:
    """Change the size, or the limits; asks first where servers are deleted by it.

    What the form leaves empty is not changed.
    """
    group = visit.cloud.get(CLUSTERING, cluster_path(visit))["cluster"]
    now, asked = group["desired_capacity"], visit.number("desired")
    if isinstance(asked, int) and asked < now and not visit.field("sure"):
        gone = counted(now - asked, "server is", "servers are")
        said = f"{gone} deleted with their disks: first those that do not work."
        fields = {name: visit.field(name) for name in ("desired", "min_size", "max_size")}
        title = f"Shrink {group['name']} from {now} to {asked}?"
        path = f"{page_of(visit)}/scale"
        return confirm(title, said, path, page_of(visit), "Shrink", sure="1", **fields)
    body: dict[str, Any] = {
        name: visit.number(name) for name in ("min_size", "max_size") if visit.field(name)
    }
    if asked != "":
        body |= {"adjustment_type": "EXACT_CAPACITY", "number": asked}
    return _act(visit, "resize", "The size is being changed.", body)


def ask(visit: Visit) -> Answer:
    """Ask whether something is to be done with all members."""
    action = _action(visit)
    group = visit.cloud.get(CLUSTERING, cluster_path(visit))["cluster"]
    page, name = page_of(visit), visit.params["action"]
    title = f"{action.title}: {group['name']}?"
    return confirm(title, action.asks, f"{page}/{name}", page, action.title)


def act(visit: Visit) -> Answer:
    """Have something done with all members, or with an update."""
    action = _action(visit)
    return _act(visit, action.key, action.says, {})


def _action(visit: Visit) -> Action:
    if visit.params["action"] not in _ACTIONS:
        raise falcon.HTTPNotFound
    return _ACTIONS[visit.params["action"]]


def _act(visit: Visit, action: str, said: str, values: Mapping[str, Any]) -> Redirect:
    path = f"{cluster_path(visit)}/actions"
    return visit.begin(page_of(visit), said, visit.cloud.post, CLUSTERING, path, {action: values})


def ask_delete(visit: Visit) -> Answer:
    """Ask whether a group is to be deleted, and what becomes of its servers."""
    return view(
        "group_delete.html", group=visit.cloud.get(CLUSTERING, cluster_path(visit))["cluster"]
    )


def delete(visit: Visit) -> Answer:
    """Delete a group, with its servers or without."""
    keep = bool(visit.field("keep"))
    body = {"micronova:delete": {"keep": keep}}
    said = f"The group is being deleted, {'its servers remain' if keep else 'with its servers'}."
    path, send = f"{cluster_path(visit)}/actions", visit.cloud.post
    return visit.begin(PATH, said, send, CLUSTERING, path, body, back=page_of(visit))


def ask_recover_member(visit: Visit) -> Answer:
    """Ask whether the server of a member is to be replaced."""
    path = f"/nodes/{segment(visit.params['node_id'])}"
    node = visit.cloud.get(CLUSTERING, path)["node"]
    said = "Its server is deleted with its disks, and a new one takes its place."
    page = page_of(visit)
    there = f"{page}/members/{node['id']}/replace"
    return confirm(f"Replace {node['name']}?", said, there, page, "Replace")


def recover_member(visit: Visit) -> Answer:
    """Have the server of a member replaced."""
    path = f"/nodes/{segment(visit.params['node_id'])}/actions"
    said = "The server is being replaced."
    return visit.begin(page_of(visit), said, visit.cloud.post, CLUSTERING, path, {"recover": {}})


_GROUP = PATH + "/{cluster_id:uuid}"
PAGES = (
    Page(PATH, index, calls=2),
    *forms.PAGES,
    Page(_GROUP, show, calls=3),
    Page(f"{_GROUP}/scale", scale, May.CHANGE, "POST", calls=2),
    Page(f"{_GROUP}/delete", ask_delete, May.CHANGE),
    Page(f"{_GROUP}/delete", delete, May.CHANGE, "POST"),
    Page(_GROUP + "/members/{node_id:uuid}/replace", ask_recover_member, May.CHANGE),
    Page(_GROUP + "/members/{node_id:uuid}/replace", recover_member, May.CHANGE, "POST"),
    Page(_GROUP + "/{action}", ask, May.CHANGE),
    Page(_GROUP + "/{action}", act, May.CHANGE, "POST"),
)
