"""Projects and their members: made, changed, disabled and deleted by administrators only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.browser import Browser


@pytest.fixture
def identity(three_nodes: EmbeddedCloud) -> Any:
    """Keystone, as an administrator sees it."""
    return three_nodes.connection("micronova-admin").identity


@pytest.fixture(autouse=True)
def nothing_left(identity: Any) -> Iterator[None]:
    """Delete the projects and users that a test makes."""
    before = {one.id for one in (*identity.projects(), *identity.users(), *identity.groups())}
    yield
    for one in (*identity.projects(), *identity.users(), *identity.groups()):
        if one.id not in before:
            one.delete(identity)


def make(admin: Browser, **fields: str) -> str:
    """Make a project by the form; return its ID."""
    admin.get("/projects")
    admin.submit("/projects", **fields)
    assert admin.path.startswith("/projects/"), admin.parsed.text
    return admin.path.removeprefix("/projects/")


def has_role(identity: Any, project: str, user: str, role: str) -> bool:
    """Return whether a user has a role on a project."""
    role_id = identity.find_role(role).id
    answer = identity.head(f"/projects/{project}/users/{user}/roles/{role_id}")
    return bool(answer.status_code == 204)


def test_a_project_from_create_to_delete(admin: Browser, identity: Any) -> None:
    assert "demo" in admin.get("/projects").text
    project = make(admin, name="shop", description="Of the web shop")
    assert "Done: The project shop is made: add its first user." in admin.parsed.text
    assert "Nobody: no user can log in to it." in admin.parsed.text
    admin.submit(f"/projects/{project}", name="store", description="")
    assert "The project is changed." in admin.parsed.text
    found = identity.get_project(project)
    assert (found.name, found.description, found.is_enabled) == ("store", "", True)
    assert "Disable the project store?" in admin.get(f"/projects/{project}/disable").text
    assert identity.get_project(project).is_enabled
    assert "The project is disabled." in admin.submit(f"/projects/{project}/disable").text
    assert not identity.get_project(project).is_enabled
    assert "The project is enabled." in admin.submit(f"/projects/{project}/enable").text
    assert identity.get_project(project).is_enabled
    assert "Delete the project store?" in admin.get(f"/projects/{project}/delete").text
    assert "The project is deleted." in admin.submit(f"/projects/{project}/delete").text
    assert identity.find_project(project) is None
    admin.get(f"/projects/{project}")
    assert admin.status == 404


def test_projects_are_found_and_come_in_pages(admin: Browser) -> None:
    for number in range(3):
        make(admin, name=f"Many-{number}")
    text = admin.get("/projects?name=many").text
    assert all(f"Many-{number}" in text for number in range(3))
    assert "service" not in text.partition("Create project")[0]
    assert "No project has such a name." in admin.get("/projects?name=nothing").text
    seen = set()
    page = admin.get("/projects?name=many&limit=2")
    for _ in range(3):
        seen |= {number for number in range(3) if f"Many-{number}" in page.text}
        following = [one for one in page.links if "marker=" in one]
        if not following:
            break
        page = admin.get(following[0].removeprefix("/dashboard"))
    assert seen == {0, 1, 2}


def test_the_page_that_asks_says_what_is_left_behind(
    admin: Browser, three_nodes: EmbeddedCloud
) -> None:
    demo = three_nodes.connection()
    network = demo.network.create_network(name="left")
    try:
        text = admin.get(f"/projects/{demo.current_project_id}/delete").text
    finally:
        demo.network.delete_network(network)
    assert "It still has networks: 1. They are not deleted" in text


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [({"name": ""}, "name"), ({"name": "demo"}, "same name"), ({"name": "x" * 65}, "too long")],
)
def test_what_is_refused_is_in_the_form_still(
    admin: Browser, fields: dict[str, str], sentence: str
) -> None:
    admin.get("/projects")
    text = admin.submit("/projects", **fields, description="kept").text
    assert sentence in text
    assert 400 <= admin.status < 500
    assert admin.form("/projects").fields["description"] == "kept"


def test_a_user_is_added_and_removed(
    admin: Browser, identity: Any, three_nodes: EmbeddedCloud
) -> None:
    project = make(admin, name="shop")
    demo = three_nodes.connection()
    user = str(demo.current_user_id)
    action = f"/projects/{project}/members"
    roles = admin.form(action).choices["role"]
    assert admin.form(action).fields["role"] == roles["member"]
    text = admin.submit(action, user="demo").text
    assert "Done: demo is a member of the project now." in text
    assert has_role(identity, project, user, "member")
    # by ID, too
    admin.submit(action, user=user, role=roles["reader"])
    assert has_role(identity, project, user, "reader")
    query = f"user={user}&role={roles['reader']}"
    assert "Remove demo as reader from shop?" in admin.get(f"{action}/remove?{query}").text
    text = admin.submit(f"{action}/remove").text
    assert "doesn't have this role any more." in text
    assert not has_role(identity, project, user, "reader")
    assert has_role(identity, project, user, "member")


def test_groups_are_listed_and_removed(admin: Browser, identity: Any) -> None:
    project = make(admin, name="shop")
    group = identity.create_group(name="staff")
    role = identity.find_role("member")
    identity.assign_project_role_to_group(project, group, role)
    page = admin.get(f"/projects/{project}")
    assert "staff group" in page.text
    [link] = [one for one in page.links if "/members/remove?group=" in one]
    assert "Remove staff as member from shop?" in admin.get(link.removeprefix("/dashboard")).text
    admin.submit(f"/projects/{project}/members/remove")
    assert "Nobody: no user can log in to it." in admin.parsed.text


@pytest.mark.parametrize(
    ("fields", "status", "sentence"),
    [
        ({"user": ""}, 400, "Give the name of a user."),
        ({"user": "nobody"}, 404, "Could not find user: nobody"),
        ({"user": "demo", "role": ""}, 400, "Choose a role."),
        ({"user": "demo", "role": "0" * 32}, 404, "Could not find role"),
    ],
)
def test_members_that_are_refused(
    admin: Browser, fields: dict[str, str], status: int, sentence: str
) -> None:
    project = make(admin, name="shop")
    text = admin.submit(f"/projects/{project}/members", **fields).text
    assert sentence in text
    assert admin.status == status
    assert admin.form(f"/projects/{project}/members").fields["user"] == fields["user"]
    assert "Nobody: no user can log in to it." in text


def test_odd_requests(admin: Browser) -> None:
    project = make(admin, name="shop")
    for path in (
        *("/projects?limit=-1", "/projects?marker=nothing", "/projects?name=%00&domain_id=%00"),
        *("/projects/nothing", "/projects/%00", "/projects/..", f"/projects/{project}/members"),
        *("/projects/nothing/delete", "/projects/nothing/disable", "/quotas/nothing/reset"),
        f"/projects/{project}/members/remove",
        f"/projects/{project}/members/remove?user=x&role=y",
        f"/projects/{project}/members/remove?user=..&role=..",
    ):
        admin.get(path)
        assert admin.status in (200, 400, 403, 404, 405), path
    for path, fields in (
        (f"/projects/{project}/members", {"user": "..", "role": ".."}),
        (f"/projects/{project}/members/remove", {}),
        (f"/projects/{project}/members/remove", {"user": "x", "role": "y"}),
        ("/projects/nothing/disable", {}),
        ("/projects/nothing/delete", {}),
        ("/projects/nothing", {"name": "x"}),
        ("/projects", {"name": "x", "domain_id": "nothing"}),
    ):
        admin.post(path, {"csrf": admin.csrf, **fields})
        assert admin.status in (200, 400, 403, 404), path
        assert admin.status != 200 or "Refused: " in admin.parsed.text


def test_members_are_refused_whatever_they_send(
    admin: Browser, member: Browser, identity: Any
) -> None:
    project = make(admin, name="shop")
    user = member.session.access["token"]["user"]["id"]
    role = identity.find_role("admin").id
    for path, fields in (
        ("/projects", {"name": "mine"}),
        (f"/projects/{project}", {"name": "mine"}),
        (f"/projects/{project}/disable", {}),
        (f"/projects/{project}/members", {"user": "demo", "role": role}),
        (f"/projects/{project}/members/remove", {"user": user, "role": role}),
        (f"/projects/{project}/delete", {}),
        (f"/quotas/{project}", {"compute.instances": "99"}),
        (f"/quotas/{project}/reset", {}),
    ):
        member.post(path, {"csrf": member.csrf, **fields})
        assert member.status == 403
    assert identity.find_project("mine") is None
    assert identity.get_project(project).name == "shop"
    assert not has_role(identity, project, user, "admin")
