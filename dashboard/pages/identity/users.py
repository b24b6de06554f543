"""Users: the list, another one, its roles, its password, and its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.errors import Invalid
from dashboard.answer import Answer, Redirect, View
from dashboard.cloud import IDENTITY, Call, rows
from dashboard.errors import ApiRefused, status_of
from dashboard.page import Page
from dashboard.pages.identity import keystone
from dashboard.pages.identity.resource import Resource
from dashboard.rights import May
from dashboard.visit import Visit


class _Users(Resource):
    """A new one has a password; an e-mail address or description may be removed."""

    def create(self, visit: Visit) -> Answer:
        """Make a user, who has no roles yet."""
        given = self.given(visit)
        try:
            password = _password(visit)
        except Invalid as refused:
            return self.listing(visit, given, refused)
        return self.make(visit, given, password=password)

    def edit(self, visit: Visit) -> Answer:
        """Give a user another name, e-mail address or description."""
        asked: dict[str, str | None] = {name: visit.field(name) or None for name in self.edited}
        # the name is never empty: Keystone says so
        asked["name"] = visit.field("name")
        return self.change(visit, asked, "The user is changed.")


USER = _Users(
    "user",
    "The user can't log in, and the user's tokens end. What the user made is not changed.",
    lambda visit: str(visit.access.user_id),
    "That is you: your session ends.",
    first="give it a role on a project.",
    edited=("name", "email", "description"),
)
_GRANTED = ("project", "domain", "role")


def show(visit: Visit) -> Answer:
    """Show a user and the roles, with the forms for another role and another password."""
    return _show(visit, dict.fromkeys(_GRANTED, ""))


def _show(visit: Visit, given: Mapping[str, str], refused: Any = None) -> View:
    granted, roles, domains, projects, groups, found = visit.cloud.together(
        keystone.roles_where(user_id=USER.key(visit)),
        keystone.ROLES,
        keystone.DOMAINS,
        keystone.proposed("/projects"),
        Call(IDENTITY, f"{USER.api(visit)}/groups", optional=True),
        Call(IDENTITY, USER.api(visit)),
    )
    values = {
        "user": found["user"],
        "granted": keystone.assignments(granted),
        "missing": "" if granted else granted.message,
        "roles": keystone.by_name(rows(roles, "roles")),
        "domains": keystone.domains_of(domains),
        "groups": keystone.by_name(rows(groups, "groups")),
        "projects": keystone.by_name(rows(projects, "projects")),
        "is_own": USER.key(visit) == visit.access.user_id,
        "given": given,
        "refused": refused,
    }
    return View("identity/user.html", values, status_of(refused))


def grant(visit: Visit) -> Answer:
    """Give the user a role on a project."""
    given = {name: visit.field(name) for name in _GRANTED}
    try:
        project = keystone.find(visit, "project", given["project"], given["domain"])
        keystone.grant(visit, str(project["id"]), USER.key(visit), given["role"])
    except (ApiRefused, Invalid) as refused:
        return _show(visit, given, refused)
    visit.note(f"The user is a member of {project['name']} now.")
    return Redirect(USER.page(visit))


def reset_password(visit: Visit) -> Answer:
    """Set another password, which no page shows again."""
    try:
        body = {"user": {"password": _password(visit)}}
        visit.cloud.patch(IDENTITY, USER.api(visit), body)
    except (ApiRefused, Invalid) as refused:
        return _show(visit, dict.fromkeys(_GRANTED, ""), refused)
    visit.note("The password is set. The user's tokens are revoked.")
    return Redirect(USER.page(visit))


def _password(visit: Visit) -> str:
    """Return the password that was given twice. Raises Invalid."""
    # blanks around a password are a part of it
    new, again = ((visit.form.get(name) or [""])[0] for name in ("new", "again"))
    if not new:
        raise Invalid("Give a password.")
    if new != again:
        raise Invalid("The two passwords differ.")
    return new


def ask_delete(visit: Visit) -> Answer:
    """Ask whether a user is to be deleted."""
    name = keystone.one(visit, "user", USER.key(visit))["name"]
    said = "The roles and application credentials are lost. Servers and volumes are projects'."
    return USER.ask(visit, str(name), said, "delete")


_USER = USER.path + "/{user_id}"
PAGES = (
    *USER.pages,
    Page(_USER, show, May.OPERATE, calls=6),
    Page(f"{_USER}/roles", grant, May.OPERATE, "POST", calls=9),
    Page(f"{_USER}/password", reset_password, May.OPERATE, "POST", calls=7),
    Page(f"{_USER}/delete", ask_delete, May.OPERATE),
)
