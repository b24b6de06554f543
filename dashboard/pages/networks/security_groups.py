"""Security groups and their rules: what may reach servers, and what they may reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.errors import Invalid
from common.resources.security_rules import DEFAULT, EGRESS, INGRESS
from dashboard import traffic
from dashboard.answer import Answer, Redirect, View, confirm, view
from dashboard.cloud import COMPUTE, NETWORK, Call, following, rows, segment
from dashboard.errors import ApiRefused, status_of
from dashboard.page import Page
from dashboard.rights import May
from dashboard.visit import Visit

PATH = "/security-groups"
_API = "/v2.0/security-groups"
_RULES = "/v2.0/security-group-rules"
_BY_NAME = {"sort_key": "name", "sort_dir": "asc"}
#: groups that a rule can name by choosing
_OFFERED = 200
#: servers whose names are read
_NAMED = 1000
_NEW: Mapping[str, str] = {
    **dict.fromkeys(traffic.FIELDS, ""),
    "direction": INGRESS,
    "what": "ssh",
    "family": "both",
}


def index(visit: Visit) -> Answer:
    """List a page of groups, with what each lets in and out."""
    query = {"limit": visit.limit, "marker": visit.query.get("marker"), **_BY_NAME}
    found = visit.cloud.get(NETWORK, _API, **_own(visit), **query)
    groups = found["security_groups"]
    names = _names(groups)
    return view(
        "security_groups.html",
        groups=[
            {
                **one,
                "comes_in": traffic.summary(one["security_group_rules"], INGRESS, names),
                "sent_out": traffic.summary(one["security_group_rules"], EGRESS, names),
            }
            for one in groups
        ],
        following=visit.next_page(PATH, following(found, "security_groups")),
        default=DEFAULT,
    )


def _own(visit: Visit) -> dict[str, str]:
    """Return the filter for an administrator, who sees groups of all projects otherwise."""
    return {"project_id": visit.project_id} if visit.operates else {}


def _names(groups: Any) -> dict[str, str]:
    return {str(one["id"]): str(one["name"] or one["id"]) for one in groups}


def create(visit: Visit) -> Answer:
    """Make a group, which lets all out and nothing in."""
    asked = {name: visit.field(name) for name in ("name", "description")}
    made = visit.changed(visit.cloud.post, NETWORK, _API, {"security_group": asked})
    if made is None:
        return Redirect(PATH)
    visit.note(f"{asked['name']} is made: it lets nothing in yet.")
    return Redirect(f"{PATH}/{made['security_group']['id']}")


def show(visit: Visit) -> Answer:
    """Show what a group allows, with the form for another rule, and which ports are in it."""
    return _show(visit, _NEW)


def _show(visit: Visit, given: Mapping[str, str], refused: Any = None) -> View:
    group, servers, others, ports = visit.cloud.together(
        Call(NETWORK, _path(visit)),
        Call(COMPUTE, "/servers", {"limit": _NAMED}, optional=True),
        Call(NETWORK, _API, {"limit": _OFFERED, **_BY_NAME, "fields": ["id", "name"]}),
        Call(NETWORK, "/v2.0/ports", {"security_groups": _id(visit)}, optional=True),
    )
    group = group["security_group"]
    rules = sorted(group["security_group_rules"], key=traffic.order)
    names = _names(others["security_groups"])
    values = {
        "group": group,
        "directions": [
            (title, empty, joint, [_row(one, names) for one in rules if one["direction"] == way])
            for title, empty, joint, way in _DIRECTIONS
        ],
        "members": _members(rows(ports, "ports")),
        "servers": {one["id"]: one["name"] for one in rows(servers, "servers")},
        "names": names,
        "changeable": visit.may(May.CHANGE)
        and (visit.operates or group["project_id"] == visit.project_id),
        "services": traffic.SERVICES,
        "offered": traffic.OFFERED,
        "families": traffic.FAMILIES,
        "everything": traffic.EVERYTHING,
        "given": given,
        "refused": refused,
        "default": DEFAULT,
    }
    return View("security_group.html", values, status_of(refused))


def _members(ports: Any) -> list[tuple[str, list[Any]]]:
    """Return the servers that are in a group, each with its ports; those of no server last."""
    found: dict[str, list[Any]] = {}
    for one in sorted(ports, key=lambda port: not port["device_id"]):
        found.setdefault(one["device_id"], []).append(one)
    return list(found.items())


#: title, what an empty table says, what stands before the other end, and the API's name
_DIRECTIONS = (
    (
        "What comes in",
        "Nothing: these servers can't be reached, not by SSH either.",
        "From",
        INGRESS,
    ),
    ("What is sent out", "Nothing: these servers reach nobody.", "To", EGRESS),
)


def _row(rule: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {**rule, "what": traffic.what(rule), "who": traffic.who(rule, names)}


def change(visit: Visit) -> Answer:
    """Give a group another name or description; the default group has its name for good."""
    asked = {name: visit.field(name) for name in ("name", "description") if name in visit.form}
    said = "The group is changed."
    path = _path(visit)
    return visit.change(
        _page(visit), said, visit.cloud.put, NETWORK, path, {"security_group": asked}
    )


def add(visit: Visit) -> Answer:
    """Add what the form asks for: one rule, or one for each family of addresses, or none."""
    given = {name: visit.field(name) for name in traffic.FIELDS}
    try:
        rules = traffic.wanted(given, visit.params["group_id"])
        visit.cloud.post(NETWORK, _RULES, {"security_group_rules": rules})
    except (ApiRefused, Invalid) as refused:
        return _show(visit, given, refused)
    visit.note(f"Added: {traffic.what(_whole(rules[0]))}.")
    return Redirect(_page(visit))


def _whole(rule: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"protocol": None, "port_range_min": None, "port_range_max": None, **rule}


def remove(visit: Visit) -> Answer:
    """Delete a rule."""
    path = f"{_RULES}/{segment(visit.params['rule_id'])}"
    return visit.change(_page(visit), "The rule is deleted.", visit.cloud.delete, NETWORK, path)


def ask_delete(visit: Visit) -> Answer:
    """Ask whether a group is to be deleted."""
    group = visit.cloud.get(NETWORK, _path(visit))["security_group"]
    said = "The group is deleted with its rules, and with rules of other groups that name it."
    page = _page(visit)
    return confirm(f"Delete {group['name'] or group['id']}?", said, f"{page}/delete", page)


def delete(visit: Visit) -> Answer:
    """Delete a group."""
    said = "The group is deleted."
    send = visit.cloud.delete
    return visit.change(PATH, said, send, NETWORK, _path(visit), back=_page(visit))


def _id(visit: Visit) -> str:
    return visit.params["group_id"]


def _page(visit: Visit) -> str:
    return f"{PATH}/{_id(visit)}"


def _path(visit: Visit) -> str:
    return f"{_API}/{segment(_id(visit))}"


_GROUP = PATH + "/{group_id:uuid}"
PAGES = (
    Page(PATH, index),
    Page(PATH, create, May.CHANGE, "POST"),
    Page(_GROUP, show, calls=4),
    Page(_GROUP, change, May.CHANGE, "POST"),
    Page(f"{_GROUP}/rules", add, May.CHANGE, "POST", calls=5),
    Page(_GROUP + "/rules/{rule_id:uuid}/delete", remove, May.CHANGE, "POST"),
    Page(f"{_GROUP}/delete", ask_delete, May.CHANGE),
    Page(f"{_GROUP}/delete", delete, May.CHANGE, "POST"),
)
