"""One project: its users and groups with their roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.errors import Invalid, NotFound
from dashboard.answer import Answer, Redirect, View, confirm
from dashboard.cloud import IDENTITY, Call, rows, segment
from dashboard.errors import ApiRefused, status_of
from dashboard.page import Page
from dashboard.pages.identity import keystone
from dashboard.pages.identity.projects import PROJECT
from dashboard.rights import May
from dashboard.visit import Visit

_FIELDS = ("user", "domain", "role")
_KINDS = ("user", "group")


def show(visit: Visit) -> Answer:
    """Show a project and its members, with the form for another one."""
    return _show(visit, dict.fromkeys(_FIELDS, ""))


def _show(visit: Visit, given: Mapping[str, str], refused: Any = None) -> View:
    project = PROJECT.key(visit)
    members, roles, domains, users, found = visit.cloud.together(
        keystone.roles_where(scope_project_id=project),
        keystone.ROLES,
        keystone.DOMAINS,
        keystone.proposed("/users"),
        Call(IDENTITY, PROJECT.api(visit)),
    )
    values = {
        "project": found["project"],
        "members": keystone.assignments(members),
        "missing": "" if members else members.message,
        "roles": keystone.by_name(rows(roles, "roles")),
        "domains": keystone.domains_of(domains),
        "users": keystone.by_name(rows(users, "users")),
        "given": given,
        "refused": refused,
    }
    return View("identity/project.html", values, status_of(refused))


def add(visit: Visit) -> Answer:
    """Give a user a role on the project."""
    given = {name: visit.field(name) for name in _FIELDS}
    project = PROJECT.key(visit)
    try:
        user = keystone.find(visit, "user", given["user"], given["domain"])
        keystone.grant(visit, project, str(user["id"]), given["role"])
    except (ApiRefused, Invalid) as refused:
        return _show(visit, given, refused)
    visit.note(f"{user['name']} is a member of the project now.")
    return Redirect(PROJECT.page(visit))


def ask_remove(visit: Visit) -> Answer:
    """Ask whether a user or group is to lose a role on the project."""
    kind, who, role = _named(visit.query)
    calls = (("project", PROJECT.key(visit)), (kind, who), ("role", role))
    project, *others = visit.cloud.together(
        *(
            Call(IDENTITY, f"/{one}s/{segment(key)}", optional=one != "project")
            for one, key in calls
        )
    )
    # a user that a directory has no longer may have roles still
    name, called = (
        str(found[one]["name"]) if found else key
        for found, (one, key) in zip(others, calls[1:], strict=True)
    )
    title = f"Remove {name} as {called} from {project['project']['name']}?"
    said = f"{name} loses what this role allows in the project, and tokens for it end."
    if (kind, who) == ("user", visit.access.user_id):
        said += " That is you."
    fields = {kind: who, "role": role}
    path = f"{PROJECT.page(visit)}/members/remove"
    return confirm(title, said, path, PROJECT.page(visit), "Remove", **fields)


def remove(visit: Visit) -> Answer:
    """Take a role on the project from a user or group."""
    kind, who, role = _named({name: visit.field(name) for name in (*_KINDS, "role")})
    path = keystone.grant_path(PROJECT.key(visit), kind, who, role)
    said = f"The {kind} doesn't have this role any more."
    return visit.change(PROJECT.page(visit), said, visit.cloud.delete, IDENTITY, path)


def _named(given: Mapping[str, str]) -> tuple[str, str, str]:
    """Return the kind and ID of who has a role, and the role's. Raises NotFound."""
    kind = next((one for one in _KINDS if given.get(one)), "")
    if not kind or not given.get("role"):
        raise NotFound("Name a user or a group, and a role.")
    return kind, given[kind], given["role"]


_PROJECT = PROJECT.path + "/{project_id}"
PAGES = (
    Page(_PROJECT, show, May.OPERATE, calls=5),
    Page(f"{_PROJECT}/members", add, May.OPERATE, "POST", calls=8),
    Page(f"{_PROJECT}/members/remove", ask_remove, May.OPERATE, calls=3),
    Page(f"{_PROJECT}/members/remove", remove, May.OPERATE, "POST"),
)
