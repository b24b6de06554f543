"""Users, for administrators only; and a Keystone that only reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import falcon.testing
import openstack
import pytest
import requests
from requests.adapters import HTTPAdapter

from common.clients import direct
from dashboard.app import make_app
from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.browser import Browser, Parsed
from tests.functional.dashboard.service import TLS, behind_proxy, log_in, post
from tests.functional.dashboard.test_projects import has_role, identity, nothing_left

__all__ = ["identity", "nothing_left"]

PASSWORD = " blank and Secret-7 "


def make(admin: Browser, name: str = "ann", **fields: str) -> str:
    """Make a user by the form; return the ID."""
    admin.get("/users")
    admin.submit("/users", **{"name": name, "new": PASSWORD, "again": PASSWORD, **fields})
    assert admin.path.startswith("/users/"), admin.parsed.text
    return admin.path.removeprefix("/users/")


def can_log_in(cloud: EmbeddedCloud, name: str, password: str, project: str) -> bool:
    """Return whether a user can log in to a project."""
    auth = {**cloud.config("micronova-demo").auth, "username": name, "password": password}
    try:
        openstack.connection.Connection(
            region_name="RegionOne", auth={**auth, "project_name": project}
        ).authorize()
    except openstack.exceptions.SDKException:
        return False
    return True


def test_a_user_from_create_to_delete(
    admin: Browser, identity: Any, three_nodes: EmbeddedCloud
) -> None:
    user = make(admin, email="ann@example.org", description="Of the shop")
    assert "Done: The user ann is made: give it a role on a project." in admin.parsed.text
    assert "None: the user can't use any project." in admin.parsed.text
    roles = admin.form(f"/users/{user}/roles").choices["role"]
    text = admin.submit(f"/users/{user}/roles", project="demo", role=roles["reader"]).text
    assert "The user is a member of demo now." in text
    assert has_role(identity, identity.find_project("demo").id, user, "reader")
    assert can_log_in(three_nodes, "ann", PASSWORD, "demo")
    admin.submit(f"/users/{user}", email="", description="")
    found = identity.get_user(user)
    assert (found.email, found.description) == (None, None)
    assert "Disable the user ann?" in admin.get(f"/users/{user}/disable").text
    assert "The user is disabled." in admin.submit(f"/users/{user}/disable").text
    assert not can_log_in(three_nodes, "ann", PASSWORD, "demo")
    assert "The user is enabled." in admin.submit(f"/users/{user}/enable").text
    assert can_log_in(three_nodes, "ann", PASSWORD, "demo")
    assert "Delete the user ann?" in admin.get(f"/users/{user}/delete").text
    assert "The user is deleted." in admin.submit(f"/users/{user}/delete").text
    assert identity.find_user("ann") is None


def test_a_password_is_set_and_shown_nowhere(
    admin: Browser, identity: Any, three_nodes: EmbeddedCloud
) -> None:
    user = make(admin)
    assert PASSWORD.strip() not in admin.page.text
    other = "Another-Secret-8"
    admin.submit(f"/users/{user}/roles", project="demo")
    form = f"/users/{user}/password"
    assert "The two passwords differ." in admin.submit(form, new=other, again="x").text
    assert admin.status == 400
    assert "Give a password." in admin.submit(form).text
    assert can_log_in(three_nodes, "ann", PASSWORD, "demo")
    assert "The password is set." in admin.submit(form, new=other, again=other).text
    assert other not in admin.page.text
    assert not can_log_in(three_nodes, "ann", PASSWORD, "demo")
    assert can_log_in(three_nodes, "ann", other, "demo")
    assert other not in repr(admin.session)
    logs = [one for one in three_nodes.state_dir.rglob("*.log") if one.is_file()]
    assert logs
    for one in logs:
        text = one.read_text(encoding="utf-8", errors="replace")
        assert other not in text and PASSWORD.strip() not in text, one


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"name": ""}, "name"),
        ({"name": "demo"}, "Duplicate entry"),
        ({"new": ""}, "Give a password."),
        ({"again": "x"}, "The two passwords differ."),
    ],
)
def test_what_is_refused_is_in_the_form_still_but_the_password(
    admin: Browser, fields: dict[str, str], sentence: str
) -> None:
    given = {"name": "ann", "new": PASSWORD, "again": PASSWORD, "email": "a@example.org"}
    admin.get("/users")
    text = admin.submit("/users", **{**given, **fields}).text
    assert sentence in text
    assert 400 <= admin.status < 500
    assert admin.form("/users").fields["email"] == "a@example.org"
    assert PASSWORD not in admin.page.text


def test_roles_that_are_refused(admin: Browser) -> None:
    user = make(admin)
    form = f"/users/{user}/roles"
    for fields, status, sentence in (
        ({"project": ""}, 400, "Give the name of a project."),
        ({"project": "nothing"}, 404, "Could not find project: nothing"),
        ({"project": "demo", "role": "0" * 32}, 404, "Could not find role"),
    ):
        admin.get(f"/users/{user}")
        assert sentence in admin.submit(form, **fields).text
        assert admin.status == status
        assert "None: the user can't use any project." in admin.parsed.text


def test_odd_requests(admin: Browser) -> None:
    for path in (
        *("/users?limit=-1", "/users?marker=nothing", "/users?name=%00&domain_id=%00"),
        *("/users/nothing", "/users/%00", "/users/..", "/users/nothing/delete"),
    ):
        admin.get(path)
        assert admin.status in (200, 400, 404), path
    for path in ("", "/roles", "/password", "/disable", "/enable", "/delete"):
        for user in ("nothing", "..", "%00"):
            fields = {"csrf": admin.csrf, "new": "x", "again": "x", "project": "demo"}
            admin.post(f"/users/{user}{path}", fields)
            assert admin.status in (200, 400, 404, 405)
            assert admin.status != 200 or "Refused: " in admin.parsed.text


def test_members_are_refused_whatever_they_send(
    admin: Browser, member: Browser, identity: Any
) -> None:
    user = make(admin)
    role = identity.find_role("admin").id
    own = member.session.access["token"]["user"]["id"]
    for path, fields in (
        ("/users", {"name": "eve", "new": "x", "again": "x"}),
        (f"/users/{user}", {"name": "eve"}),
        (f"/users/{own}/roles", {"project": "demo", "role": role}),
        (f"/users/{user}/password", {"new": "x", "again": "x"}),
        (f"/users/{user}/disable", {}),
        (f"/users/{user}/delete", {}),
    ):
        member.post(path, {"csrf": member.csrf, **fields})
        assert member.status == 403
    assert identity.find_user("eve") is None
    assert identity.get_user(user).is_enabled
    assert not has_role(identity, identity.find_project("demo").id, own, "admin")


def test_ones_own_password_is_changed_elsewhere(admin: Browser) -> None:
    own = admin.session.access["token"]["user"]["id"]
    page = admin.get(f"/users/{own}")
    assert not admin.has_form(f"/users/{own}/password")
    assert "/dashboard/password" in page.links
    assert "That is you: your session ends." in admin.get(f"/users/{own}/disable").text


# --- a Keystone whose users are a directory's

REFUSES = "LDAP does not support write operations"


class _ReadOnly(HTTPAdapter):
    """What Keystone answers where it can't write."""

    def send(self, request: Any, *args: Any, **more: Any) -> requests.Response:
        if request.method == "GET":
            return super().send(request, *args, **more)
        answer = requests.Response()
        answer.status_code, answer.url, answer.request = 403, request.url, request
        body = {"error": {"code": 403, "message": REFUSES, "title": "Forbidden"}}
        answer._content = json.dumps(body).encode()
        return answer


@pytest.fixture
def directory(three_nodes: EmbeddedCloud, tmp_path: Path) -> tuple[falcon.testing.TestClient, str]:
    """A dashboard at a Keystone whose users can't be changed, and an administrator's cookie."""
    transport = direct.session(4)
    for base in {three_nodes.auth_url, *catalog(three_nodes)}:
        transport.mount(f"{base.removesuffix('/v3')}/v3/users", _ReadOnly())
    conf = behind_proxy(tmp_path, three_nodes.auth_url)
    client = falcon.testing.TestClient(make_app(conf, transport))
    given = three_nodes.config("micronova-admin").auth
    answer = log_in(client, user=given["username"], password=given["password"])
    name = answer.cookies["__Host-micronova-session"].value
    return client, f"__Host-micronova-session={name}"


def catalog(cloud: EmbeddedCloud) -> set[str]:
    """Return Keystone's addresses in the catalog."""
    access = cloud.connection("micronova-admin").session.auth.get_access(
        cloud.connection("micronova-admin").session
    )
    found = access.service_catalog.get_endpoints(service_type="identity")
    return {str(one["url"]).rstrip("/") for some in found.values() for one in some}


def test_what_keystone_refuses_is_on_the_page(
    directory: tuple[falcon.testing.TestClient, str], identity: Any
) -> None:
    client, cookie = directory
    demo = identity.find_user("demo").id
    headers = {**TLS, "Cookie": cookie}
    page = client.simulate_get("/users", headers=headers, remote_addr="127.0.0.1")
    token = next(one.fields["csrf"] for one in Parsed(page.text).forms if "csrf" in one.fields)
    twice = {"new": PASSWORD, "again": PASSWORD}
    for path, fields in (
        ("/users", {"name": "ann", **twice}),
        (f"/users/{demo}/password", twice),
    ):
        answer = post(client, path, cookie, {"csrf": token, **fields})
        assert answer.status_code == 403
        assert REFUSES in Parsed(answer.text).text
        assert "Set another password" in answer.text or "Create user" in answer.text
    for path in ("", "/disable", "/enable", "/delete"):
        answer = post(client, f"/users/{demo}{path}", cookie, {"csrf": token, "name": "x"})
        assert answer.status_code == 303
        page = client.simulate_get(f"/users/{demo}", headers=headers, remote_addr="127.0.0.1")
        assert f"Refused: {REFUSES}" in Parsed(page.text).text
