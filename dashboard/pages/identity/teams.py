"""Groups of users: the list, another one, its members, its roles, and its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.errors import Invalid
from dashboard.answer import Answer, Redirect, View, confirm
from dashboard.cloud import IDENTITY, Call, rows, segment
from dashboard.errors import ApiRefused, status_of
from dashboard.page import Page
from dashboard.pages.identity import keystone
from dashboard.pages.identity.resource import Resource
from dashboard.rights import May
from dashboard.visit import Visit

# "/groups" are the groups of servers
GROUP = Resource(
    "group", shown_at="/user-groups", title="user group", first="add its first member."
)
_ADDED = ("user", "project", "domain", "role")
#: members that a page shows at the most
_SHOWN = 500


def show(visit: Visit) -> Answer:
    """Show a group with its members and roles, and the forms for others."""
    return _show(visit, dict.fromkeys(_ADDED, ""))


def _show(visit: Visit, given: Mapping[str, str], refused: Any = None) -> View:
    members, granted, roles, domains, users, projects, found = visit.cloud.together(
        Call(IDENTITY, f"{GROUP.api(visit)}/users", optional=True),
        keystone.roles_where(group_id=GROUP.key(visit)),
        keystone.ROLES,
        keystone.DOMAINS,
        keystone.proposed("/users"),
        keystone.proposed("/projects"),
        Call(IDENTITY, GROUP.api(visit)),
    )
    listed = keystone.by_name(rows(members, "users"))
    values = {
        "group": found["group"],
        "members": listed[:_SHOWN],
        "more": max(0, len(listed) - _SHOWN),
        "unknown_members": "" if members else members.message,
        "granted": keystone.assignments(granted),
        "missing": "" if granted else granted.message,
        "roles": keystone.by_name(rows(roles, "roles")),
        "domains": keystone.domains_of(domains),
        "users": keystone.by_name(rows(users, "users")),
        "projects": keystone.by_name(rows(projects, "projects")),
        "given": given,
        "refused": refused,
    }
    return View("identity/group.html", values, status_of(refused))


def add_member(visit: Visit) -> Answer:
    """Add a user to the group."""
    given = {name: visit.field(name) for name in _ADDED}
    try:
        user = keystone.find(visit, "user", given["user"], given["domain"])
        visit.cloud.put(IDENTITY, _member(visit, str(user["id"])), None)
    except (ApiRefused, Invalid) as refused:
        return _show(visit, given, refused)
    visit.note(f"{user['name']} is a member of the group now.")
    return Redirect(GROUP.page(visit))


def ask_remove(visit: Visit) -> Answer:
    """Ask whether a user is to be removed from the group."""
    user = visit.params["user_id"]
    found, who = visit.cloud.together(
        Call(IDENTITY, GROUP.api(visit)),
        Call(IDENTITY, f"/users/{segment(user)}", optional=True),
    )
    # a user that a directory has no longer may be a member still
    name = who["user"]["name"] if who else user
    said = f"{name} loses the roles that the group has, and tokens end."
    if user == visit.access.user_id:
        said += " That is you."
    page = GROUP.page(visit)
    title = f"Remove {name} from {found['group']['name']}?"
    return confirm(title, said, f"{page}/members/{segment(user)}/remove", page, "Remove")


def remove_member(visit: Visit) -> Answer:
    """Remove a user from the group."""
    path = _member(visit, visit.params["user_id"])
    said = "The user isn't a member of the group any more."
    return visit.change(GROUP.page(visit), said, visit.cloud.delete, IDENTITY, path)


def grant(visit: Visit) -> Answer:
    """Give the group a role on a project."""
    given = {name: visit.field(name) for name in _ADDED}
    try:
        project = keystone.find(visit, "project", given["project"], given["domain"])
        keystone.grant(visit, str(project["id"]), GROUP.key(visit), given["role"], "group")
    except (ApiRefused, Invalid) as refused:
        return _show(visit, given, refused)
    visit.note(f"The group's users are members of {project['name']} now.")
    return Redirect(GROUP.page(visit))


def ask_delete(visit: Visit) -> Answer:
    """Ask whether a group is to be deleted."""
    name = keystone.one(visit, "group", GROUP.key(visit))["name"]
    said = "Its users are not deleted: they lose the roles that the group has, and tokens end."
    return GROUP.ask(visit, str(name), said, "delete")


def _member(visit: Visit, user_id: str) -> str:
    return f"{GROUP.api(visit)}/users/{segment(user_id)}"


_GROUP = GROUP.path + "/{group_id}"
_MEMBER = _GROUP + "/members/{user_id}"
PAGES = (
    *GROUP.pages,
    Page(_GROUP, show, May.OPERATE, calls=7),
    Page(f"{_GROUP}/members", add_member, May.OPERATE, "POST", calls=10),
    Page(f"{_MEMBER}/remove", ask_remove, May.OPERATE, calls=2),
    Page(f"{_MEMBER}/remove", remove_member, May.OPERATE, "POST"),
    Page(f"{_GROUP}/roles", grant, May.OPERATE, "POST", calls=10),
    Page(f"{_GROUP}/delete", ask_delete, May.OPERATE),
)
