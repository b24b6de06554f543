"""Roles: the list, another one, its name and description, and its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.answer import Answer, View
from dashboard.cloud import IDENTITY, Call, rows
from dashboard.page import Page
from dashboard.pages.identity import keystone
from dashboard.pages.identity.resource import Resource
from dashboard.rights import May
from dashboard.visit import Visit

_IMPLIED = Call(IDENTITY, "/role_inferences", optional=True)
#: roles that the default policies of the APIs name
NAMED = frozenset({"service"}).union(*(one.value for one in May))


def implied_by(answer: Any) -> dict[str, list[str]]:
    """Return the names of the roles that each role contains, by its ID."""
    return {
        str(one["prior_role"]["id"]): sorted(str(each["name"]) for each in one["implies"])
        for one in rows(answer, "role_inferences")
    }


def _listed(answer: Any) -> Mapping[str, Any]:
    return {"implied": implied_by(answer), "named": NAMED}


ROLE = Resource(
    "role",
    first="it allows what the policies of the APIs say of it.",
    beside=_IMPLIED,
    shown=_listed,
)


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


def ask_delete(visit: Visit) -> Answer:
    """Ask whether a role is to be deleted."""
    name = str(keystone.one(visit, "role", ROLE.key(visit))["name"])
    said = "All users and groups lose it, in every project and domain, and tokens end."
    if name in NAMED:
        said = f"The default policies of the APIs name it: what it allows, nobody may do. {said}"
    return ROLE.ask(visit, name, said, "delete")


_ROLE = ROLE.path + "/{role_id}"
PAGES = (
    *ROLE.pages,
    Page(_ROLE, show, May.OPERATE, calls=2),
    Page(f"{_ROLE}/delete", ask_delete, May.OPERATE),
)
