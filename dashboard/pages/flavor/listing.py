"""Flavors: the list, and another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.answer import Answer, Redirect, View
from dashboard.cloud import COMPUTE, following, segment
from dashboard.errors import ApiRefused, status_of
from dashboard.page import Page
from dashboard.rights import May
from dashboard.visit import Visit, as_number

PATH = "/flavors"
PUBLIC = "os-flavor-access:is_public"
#: the form's field → the API's; numbers
_SIZES: Mapping[str, str] = {
    "vcpus": "vcpus",
    "ram": "ram",
    "disk": "disk",
    "ephemeral": "OS-FLV-EXT-DATA:ephemeral",
    "swap": "swap",
}
_NEW: Mapping[str, str] = {
    **{"name": "", "id": "", "description": "", "private": ""},
    **{"vcpus": "1", "ram": "1024", "disk": "10", "ephemeral": "0", "swap": "0"},
}


def index(visit: Visit) -> Answer:
    """List a page of flavors, public and private, with the form for another one."""
    return _list(visit, _NEW)


def _list(visit: Visit, given: Mapping[str, str], refused: ApiRefused | None = None) -> View:
    query = {"limit": visit.limit, "marker": visit.query.get("marker"), "is_public": "none"}
    found = visit.cloud.get(COMPUTE, "/flavors/detail", **query, sort_key="memory_mb")
    values = {
        "flavors": found["flavors"],
        "public": PUBLIC,
        "given": given,
        "refused": refused,
        "following": visit.next_page(PATH, following(found, "flavors")),
    }
    return View("flavor/list.html", values, status_of(refused))


def create(visit: Visit) -> Answer:
    """Make a flavor."""
    given = {name: visit.field(name) for name in _NEW}
    asked: dict[str, Any] = {"name": given["name"], PUBLIC: not given["private"]}
    asked |= {name: as_number(given[field]) for field, name in _SIZES.items()}
    asked |= {name: given[name] for name in ("id", "description") if given[name]}
    try:
        made = visit.cloud.post(COMPUTE, PATH, {"flavor": asked})["flavor"]
    except ApiRefused as refused:
        return _list(visit, given, refused)
    visit.note(f"The flavor {made['name']} is made.")
    return Redirect(f"{PATH}/{segment(made['id'])}")


PAGES = (
    Page(PATH, index, May.OPERATE),
    Page(PATH, create, May.OPERATE, "POST", calls=2),
)
