"""Keystone's lists, and who has which role where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from common.errors import Invalid
from dashboard.cloud import IDENTITY, Call, rows, segment
from dashboard.visit import Visit

DOMAINS = Call(IDENTITY, "/domains", optional=True)
ROLES = Call(IDENTITY, "/roles", optional=True)
#: names that a field proposes
_PROPOSED = 200
_INHERITED = "OS-INHERIT:inherited_to"

Thing = Mapping[str, Any]


@dataclass(frozen=True)
class Assignment:
    """A role of a user or a group."""

    kind: str
    """Of who has the role: user or group."""
    who: Thing
    role: Thing
    scope: str
    """What it is valid for: project, domain or system."""
    where: Thing
    """The project or domain; empty for the system."""
    inherited: bool
    """Whether it is valid for the projects below instead."""

    @property
    def who_name(self) -> str:
        """The name of the user or group, or the ID where Keystone knows no name any more."""
        return str(self.who.get("name") or self.who["id"])

    @property
    def where_name(self) -> str:
        """The name of the project or domain."""
        return str(self.where.get("name") or self.where.get("id", ""))


def page_of(visit: Visit, path: str) -> Call:
    """Return the request for a page of a list, by a part of the name and the domain."""
    asked = {name: visit.query.get(name) for name in ("marker", "domain_id")}
    name = visit.query.get("name", "").strip()
    return Call(IDENTITY, path, {"name__icontains": name, "limit": visit.limit, **asked})


def proposed(path: str) -> Call:
    """Return the request for the first names of a list, which a field proposes."""
    return Call(IDENTITY, path, {"limit": _PROPOSED}, optional=True)


def by_name(things: Iterable[Thing]) -> list[Thing]:
    """Return things in the order of their names."""
    return sorted(things, key=lambda one: str(one.get("name") or "").lower())


def domains_of(answer: Any) -> dict[str, str]:
    """Return the names of the domains by ID, sorted."""
    return {str(one["id"]): str(one["name"]) for one in by_name(rows(answer, "domains"))}


def find(visit: Visit, kind: str, text: str, domain: str = "") -> Thing:
    """Return the user or project with a name or ID. Raises Invalid, or ApiRefused."""
    if not text:
        raise Invalid(f"Give the name of a {kind}.")
    named = visit.cloud.get(IDENTITY, f"/{kind}s", name=text, domain_id=domain)[f"{kind}s"]
    if len(named) > 1:
        raise Invalid(f"Several {kind}s are named {text}: give the ID.")
    found: Thing = named[0] if named else one(visit, kind, text)
    return found


def one(visit: Visit, kind: str, key: str) -> Thing:
    """Return a user, project or role by its ID."""
    found: Thing = visit.cloud.get(IDENTITY, f"/{kind}s/{segment(key)}")[kind]
    return found


def roles_where(**scope: str) -> Call:
    """Return the request for the roles of a user, or on a project."""
    asked = {name.replace("_", "."): key for name, key in scope.items()}
    query = {**asked, "include_names": "true"}
    return Call(IDENTITY, "/role_assignments", query, optional=True)


def assignments(answer: Any) -> list[Assignment]:
    """Return the roles of an answer, by who has them, where and role."""
    found = [_assignment(one) for one in rows(answer, "role_assignments")]
    return sorted(found, key=_order)


def _assignment(given: Thing) -> Assignment:
    kind = "user" if "user" in given else "group"
    scope = given["scope"]
    what = next((one for one in ("project", "domain") if one in scope), "system")
    where = scope.get(what, {}) if what != "system" else {}
    return Assignment(kind, given[kind], given["role"], what, where, _INHERITED in scope)


def _order(given: Assignment) -> tuple[str, ...]:
    return (given.kind, given.who_name, given.where_name, str(given.role.get("name")))


def grant_path(project_id: str, kind: str, who_id: str, role_id: str) -> str:
    """Return the path of a role of a user or group on a project."""
    who = f"{kind}s/{segment(who_id)}"
    return f"/projects/{segment(project_id)}/{who}/roles/{segment(role_id)}"


def grant(visit: Visit, project_id: str, who_id: str, role_id: str, kind: str = "user") -> None:
    """Give a user or group a role on a project. Raises Invalid, or ApiRefused."""
    if not role_id:
        raise Invalid("Choose a role.")
    visit.cloud.put(IDENTITY, grant_path(project_id, kind, who_id, role_id), None)
