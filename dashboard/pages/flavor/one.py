"""One flavor: its extra specs with what they do, its description, who may use it, its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.errors import Invalid
from dashboard.answer import Answer, Redirect, View, confirm
from dashboard.cloud import COMPUTE, Call, rows, segment
from dashboard.errors import ApiRefused, status_of
from dashboard.page import Page
from dashboard.pages.flavor import specs
from dashboard.pages.flavor.listing import PATH, PUBLIC
from dashboard.pages.identity import keystone
from dashboard.rights import May
from dashboard.visit import Visit

_FIELDS = ("name", "value", "project")


def show(visit: Visit) -> Answer:
    """Show a flavor, with the forms for what can be changed of it."""
    return _show(visit, dict.fromkeys(_FIELDS, ""))


def _show(visit: Visit, given: Mapping[str, str], refused: Any = None) -> View:
    access, projects, found = visit.cloud.together(
        # of private ones only
        Call(COMPUTE, f"{_page(visit)}/os-flavor-access", optional=True),
        keystone.proposed("/projects"),
        Call(COMPUTE, _page(visit)),
    )
    flavor = found["flavor"]
    named = keystone.by_name(rows(projects, "projects"))
    values = {
        "flavor": flavor,
        "is_public": flavor[PUBLIC],
        "specs": specs.explained(flavor.get("extra_specs") or {}),
        "known": specs.known(),
        "projects": named,
        "names": {one["id"]: one["name"] for one in named},
        "access": [one["tenant_id"] for one in rows(access, "flavor_access")],
        "given": given,
        "refused": refused,
    }
    return View("flavor/show.html", values, status_of(refused))


def describe(visit: Visit) -> Answer:
    """Give a flavor another description, which is all of it that can be changed."""
    body = {"flavor": {"description": visit.field("description") or None}}
    said = "The description is saved."
    return visit.change(_page(visit), said, visit.cloud.put, COMPUTE, _page(visit), body)


def set_spec(visit: Visit) -> Answer:
    """Set an extra spec."""
    given = {name: visit.field(name) for name in _FIELDS}
    body = {"extra_specs": {given["name"]: given["value"]}}
    try:
        visit.cloud.post(COMPUTE, f"{_page(visit)}/os-extra_specs", body)
    except ApiRefused as refused:
        return _show(visit, given, refused)
    visit.note(f"{given['name']} is set. New servers get it; others, when they are resized.")
    return Redirect(_page(visit))


def remove_spec(visit: Visit) -> Answer:
    """Remove an extra spec."""
    name = visit.field("name")
    path = f"{_page(visit)}/os-extra_specs/{segment(name or '-')}"
    said = f"{name} is removed."
    return visit.change(_page(visit), said, visit.cloud.delete, COMPUTE, path)


def allow(visit: Visit) -> Answer:
    """Let a project use a private flavor."""
    given = {name: visit.field(name) for name in _FIELDS}
    try:
        project = keystone.find(visit, "project", given["project"])
        body = {"addTenantAccess": {"tenant": project["id"]}}
        visit.cloud.post(COMPUTE, f"{_page(visit)}/action", body)
    except (ApiRefused, Invalid) as refused:
        return _show(visit, given, refused)
    visit.note(f"The project {project['name']} may use it now.")
    return Redirect(_page(visit))


def forbid(visit: Visit) -> Answer:
    """Let a project use a private flavor no longer."""
    body = {"removeTenantAccess": {"tenant": visit.field("project")}}
    said, path = "The project may not use it any more.", f"{_page(visit)}/action"
    return visit.change(_page(visit), said, visit.cloud.post, COMPUTE, path, body)


def ask_delete(visit: Visit) -> Answer:
    """Ask whether a flavor is to be deleted."""
    found = visit.cloud.get(COMPUTE, _page(visit))["flavor"]
    said = "No new server gets it. Servers that have it are not changed."
    title = f"Delete the flavor {found['name']}?"
    return confirm(title, said, f"{_page(visit)}/delete", _page(visit))


def delete(visit: Visit) -> Answer:
    """Delete a flavor."""
    said, page = "The flavor is deleted.", _page(visit)
    return visit.change(PATH, said, visit.cloud.delete, COMPUTE, page, back=page)


def _page(visit: Visit) -> str:
    """Return the path of the flavor, of our pages and in the API."""
    return f"{PATH}/{segment(visit.params['flavor_id'])}"


_FLAVOR = PATH + "/{flavor_id}"
PAGES = (
    Page(_FLAVOR, show, May.OPERATE, calls=3),
    Page(_FLAVOR, describe, May.OPERATE, "POST"),
    Page(f"{_FLAVOR}/specs", set_spec, May.OPERATE, "POST", calls=4),
    Page(f"{_FLAVOR}/specs/remove", remove_spec, May.OPERATE, "POST"),
    Page(f"{_FLAVOR}/access", allow, May.OPERATE, "POST", calls=6),
    Page(f"{_FLAVOR}/access/remove", forbid, May.OPERATE, "POST"),
    Page(f"{_FLAVOR}/delete", ask_delete, May.OPERATE),
    Page(f"{_FLAVOR}/delete", delete, May.OPERATE, "POST"),
)
