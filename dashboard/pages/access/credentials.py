"""Application credentials of the user: the list, another one, the files for clients, delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common import clock
from dashboard import client_files
from dashboard.answer import Answer, View, confirm, view
from dashboard.cloud import IDENTITY, segment
from dashboard.errors import ApiRefused, status_of
from dashboard.page import Page
from dashboard.rights import May
from dashboard.visit import Visit

PATH, PASSWORD = "/access", "/password"
_FIELDS = ("name", "description", "expires", "expires_at", "unrestricted")
#: a credential that expires on a day may be used all that day
_END_OF_DAY = "T23:59:59.000000Z"


def index(visit: Visit) -> Answer:
    """List the user's application credentials, with the form for another one."""
    return _list(visit, {**dict.fromkeys(_FIELDS, ""), "roles": list(_roles(visit))})


def _list(visit: Visit, given: Mapping[str, Any], refused: ApiRefused | None = None) -> View:
    found = visit.cloud.get(IDENTITY, _api(visit))["application_credentials"]
    values = {
        "credentials": sorted(found, key=lambda one: str(one["name"])),
        "projects": dict(visit.session.projects),
        "roles": _roles(visit),
        "login": _login(visit),
        "given": given,
        "refused": refused,
    }
    return View("credentials.html", values, status_of(refused))


def _roles(visit: Visit) -> dict[str, str]:
    """Return the names of the user's roles on the project by ID."""
    access = visit.access
    return dict(zip(access.role_ids or (), access.role_names or (), strict=True))


def _login(visit: Visit) -> client_files.File:
    access = visit.access
    user = {
        "username": str(access.username),
        "user_domain_name": str(access.user_domain_name),
        "project_name": str(access.project_name),
        "project_domain_name": str(access.project_domain_name),
    }
    cloud = visit.cloud
    return client_files.of_password(cloud.login_url(), cloud.login_regions(), user)


def create(visit: Visit) -> Answer:
    """Make an application credential and show its secret, once."""
    given = {name: visit.field(name) for name in _FIELDS} | {"roles": visit.fields("role")}
    if not given["roles"]:
        # Keystone would give it all of them.
        return _list(visit, given, ApiRefused("Choose at least one role.", status=400))
    try:
        made = visit.cloud.post(IDENTITY, _api(visit), {"application_credential": _body(given)})
    except ApiRefused as refused:
        return _list(visit, given, refused)
    credential = made["application_credential"]
    cloud = visit.cloud
    files = client_files.of_credential(cloud.login_url(), cloud.login_regions(), credential)
    return view("credential_made.html", credential=credential, files=files)


def _body(given: Mapping[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {
        "name": given["name"],
        "roles": [{"id": one} for one in given["roles"]],
        "unrestricted": bool(given["unrestricted"]),
    }
    if given["description"]:
        body["description"] = given["description"]
    if given["expires"]:
        body["expires_at"] = _end(given)
    return body


def _end(given: Mapping[str, Any]) -> str | None:
    """Return when the last day ends: a script says it in the reader's zone, else it is UTC's."""
    try:
        return clock.iso(clock.parse(given["expires_at"]))
    except ValueError:
        return str(given["expires"]) + _END_OF_DAY


def ask_delete(visit: Visit) -> Answer:
    """Ask whether an application credential is to be deleted."""
    found = visit.cloud.get(IDENTITY, _one(visit))["application_credential"]
    said = "Programs that log in with it are refused from then on, and its tokens end."
    title = f"Delete the application credential {found['name']}?"
    return confirm(title, said, f"{PATH}/{segment(found['id'])}/delete", PATH)


def delete(visit: Visit) -> Answer:
    """Delete an application credential."""
    said = "The application credential is deleted."
    return visit.change(PATH, said, visit.cloud.delete, IDENTITY, _one(visit))


def password(_visit: Visit) -> Answer:
    """Show the form for another password."""
    return view("password.html", message="")


def _api(visit: Visit) -> str:
    return f"/users/{segment(str(visit.access.user_id))}/application_credentials"


def _one(visit: Visit) -> str:
    return f"{_api(visit)}/{segment(visit.params['credential_id'])}"


_DELETE = PATH + "/{credential_id}/delete"
#: Keystone gives everybody credentials of their own, whatever their role on a project
PAGES = (
    Page(PATH, index),
    Page(PATH, create, May.READ, "POST", calls=2),
    Page(_DELETE, ask_delete),
    Page(_DELETE, delete, May.READ, "POST"),
)
PASSWORD_PAGES = (Page(PASSWORD, password, calls=0),)
