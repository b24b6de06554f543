"""Roles: the list, another one, its name and description, and its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.answer import Answer, View
from dashboard.cloud import IDENTITY, Call, following, rows
from dashboard.errors import ApiRefused, status_of
from dashboard.page import Page
from dashboard.pages.identity import keystone
from dashboard.pages.identity.changing import Resource
from dashboard.rights import May
from dashboard.visit import Visit

ROLE = Resource("role")
PATH = ROLE.path
_FIELDS = ("name", "description")
_IMPLIED = Call(IDENTITY, "/role_inferences", optional=True)
#: roles that the default policies of the APIs name
NAMED = frozenset({"service"}).union(*(one.value for one in May))


def index(visit: Visit) -> Answer:
    """List a page of roles, with the form for another one."""
    return _list(visit, dict.fromkeys(_FIELDS, ""))


def _list(visit: Visit, given: Mapping[str, str], refused: ApiRefused | None = None) -> View:
    implied, found = visit.cloud.together(_IMPLIED, keystone.page_of(visit, PATH))
    values = {
        "roles": keystone.by_name(found["roles"]),
        "implied": implied_by(implied),
        "named": NAMED,
        "asked": visit.query,
        "given": given,
        "refused": refused,
        "following": visit.next_page(PATH, following(found, "roles")),
    }
    return View("identity/roles.html", values, status_of(refused))


def implied_by(answer: Any) -> dict[str, list[str]]:
    """Return the names of the roles that each role contains, by its ID."""
    return {
        str(one["prior_role"]["id"]): sorted(str(each["name"]) for each in one["implies"])
        for one in rows(answer, "role_inferences")
    }


def create(visit: Visit) -> Answer:
    """Make a role, which no policy names yet."""
    given = {name: visit.field(name) for name in _FIELDS}
    said = "it allows what the policies of the APIs say of it."
    return ROLE.make(visit, given, said, lambda refused: _list(visit, given, refused))


def show(visit: Visit) -> Answer:
    """Show a role, with the form for its changes."""
    implied, found = visit.cloud.together(_IMPLIED, Call(IDENTITY, ROLE.api(visit)))
    role = found["role"]
    values = {
        "role": role,
        "implied": implied_by(implied).get(str(role["id"]), []),
        "is_named": role["name"] in NAMED,
    }
    return View("identity/role.html", values)


def change(visit: Visit) -> Answer:
    """Give a role another name or description."""
    asked = {name: visit.field(name) for name in _FIELDS}
    return ROLE.change(visit, asked, "The role is changed.")


def ask_delete(visit: Visit) -> Answer:
    """Ask whether a role is to be deleted."""
    name = str(keystone.one(visit, "role", ROLE.key(visit))["name"])
    said = "All users and groups lose it, in every project and domain, and tokens end."
    if name in NAMED:
        said = f"The default policies of the APIs name it: what it allows, nobody may do. {said}"
    return ROLE.ask(visit, name, said, "delete")


_ROLE = PATH + "/{role_id}"
PAGES = (
    Page(PATH, index, May.OPERATE, calls=2),
    Page(PATH, create, May.OPERATE, "POST", calls=3),
    Page(_ROLE, show, May.OPERATE, calls=2),
    Page(_ROLE, change, May.OPERATE, "POST"),
    Page(f"{_ROLE}/delete", ask_delete, May.OPERATE),
    Page(f"{_ROLE}/delete", ROLE.delete, May.OPERATE, "POST"),
)
