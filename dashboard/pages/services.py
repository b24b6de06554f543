"""Services: which there are, which are up, and whether hosts get servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import falcon

from dashboard.answer import Answer, view
from dashboard.cloud import COMPUTE, segment
from dashboard.page import Page
from dashboard.rights import May
from dashboard.visit import Visit

#: the only services that can be changed
COMPUTE_BINARY = "nova-compute"


@dataclass(frozen=True)
class Change:
    """What may be done to a service."""

    name: str
    """In our paths."""
    title: str
    body: Mapping[str, Any]
    field: str
    """Of the service."""
    when: Any
    """What the field holds where the change makes sense."""
    said: str
    asks: str = ""
    """A sentence to confirm first."""
    takes_reason: bool = False


CHANGES: Mapping[str, Change] = {
    one.name: one
    for one in (
        Change(
            "enable",
            "Enable",
            {"status": "enabled"},
            "status",
            "disabled",
            "The host gets new servers again.",
        ),
        Change(
            "disable",
            "Disable",
            {"status": "disabled"},
            "status",
            "enabled",
            "The host gets no new servers.",
            asks="The host gets no new servers; those that are there stay.",
            takes_reason=True,
        ),
        Change(
            "force-down",
            "Force down",
            {"forced_down": True},
            "forced_down",
            False,
            "The service counts as down.",
            asks="Servers of a host that is forced down may be evacuated: they are started "
            "elsewhere. Make sure first that the node is off, or has no access to the storages.",
        ),
        Change(
            "force-up",
            "No longer force down",
            {"forced_down": False},
            "forced_down",
            True,
            "The service is up as soon as it reports.",
        ),
    )
}


def changes_of(service: Mapping[str, Any]) -> list[Change]:
    """Return the actions that a service's state allows."""
    if service["binary"] != COMPUTE_BINARY:
        return []
    return [one for one in CHANGES.values() if service[one.field] == one.when]


def index(visit: Visit) -> Answer:
    """List services, those with problems first; the API has no pages of them."""
    wanted = {name: visit.query.get(name, "").strip() for name in ("host", "binary")}
    found = visit.cloud.get(COMPUTE, "/os-services", **wanted)["services"]
    ordered = sorted(found, key=_order)
    first = visit.query.get("first", "")
    begin = int(first) if first.isascii() and first.isdigit() and len(first) < 10 else 0
    end = begin + visit.limit
    return view(
        "services.html",
        services=[(one, changes_of(one)) for one in ordered[begin:end]],
        wanted=wanted,
        problems=sum(_is_problem(one) for one in found),
        count=len(found),
        following=visit.here("/services", first=end) if end < len(ordered) else "",
    )


def ask(visit: Visit) -> Answer:
    """Ask before a change."""
    change, service = _change(visit), _service(visit)
    return view("service_change.html", change=change, service=service, back=_back(visit))


def act(visit: Visit) -> Answer:
    """Change a service."""
    change = _change(visit)
    body = dict(change.body)
    if change.takes_reason and visit.field("reason"):
        body["disabled_reason"] = visit.field("reason")
    path = f"/os-services/{segment(visit.params['service_id'])}"
    return visit.change(_back(visit), change.said, visit.cloud.put, COMPUTE, path, body)


def _back(visit: Visit) -> str:
    """Return the page that the user came from: a node's, or the list."""
    node = visit.field("node") or visit.query.get("node", "")
    return f"/nodes/{segment(node)}" if node else "/services"


def _change(visit: Visit) -> Change:
    name = visit.params["change"]
    if name not in CHANGES:
        raise falcon.HTTPNotFound
    return CHANGES[name]


def _service(visit: Visit) -> Mapping[str, Any]:
    query = {"binary": COMPUTE_BINARY, "host": visit.query.get("host", "")}
    for one in visit.cloud.get(COMPUTE, "/os-services", **query)["services"]:
        if one["id"] == visit.params["service_id"]:
            service: Mapping[str, Any] = one
            return service
    raise falcon.HTTPNotFound


def _is_problem(service: Mapping[str, Any]) -> bool:
    return service["state"] != "up" or bool(service["forced_down"])


def _order(service: Mapping[str, Any]) -> tuple[bool, bool, str, str]:
    is_enabled = service["status"] == "enabled"
    return not _is_problem(service), is_enabled, service["binary"], service["host"]


_SERVICE = "/services/{service_id:uuid}/{change}"
PAGES = (
    Page("/services", index, May.OPERATE),
    Page(_SERVICE, ask, May.OPERATE),
    Page(_SERVICE, act, May.OPERATE, "POST"),
)
