"""Roles and groups of users, for administrators only."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.dashboard.browser import Browser
from tests.functional.dashboard.test_pages import MOST_CALLS
from tests.functional.dashboard.test_projects import identity, nothing_left

__all__ = ["identity", "nothing_left"]


@pytest.fixture(autouse=True)
def no_roles(identity: Any) -> Any:
    """Delete the roles that a test makes."""
    before = {one.id for one in identity.roles()}
    yield
    for one in identity.roles():
        if one.id not in before:
            identity.delete_role(one)


def make(admin: Browser, section: str, **fields: str) -> str:
    """Make a role or a group by the form; return the path of its page."""
    admin.get(section)
    assert admin.calls <= MOST_CALLS[section]
    admin.submit(section, **fields)
    assert admin.path.startswith(f"{section}/"), admin.parsed.text
    return admin.path


def test_a_role_from_create_to_delete(admin: Browser, identity: Any) -> None:
    text = admin.get("/roles").text
    assert "the default policies" in text
    page = make(admin, "/roles", name="auditor", description="Looks at bills")
    assert "Done: The role auditor is made:" in admin.parsed.text
    assert "no default policy" in admin.parsed.text
    assert admin.calls <= MOST_CALLS["/roles/{role_id}"]
    admin.submit(page, name="bookkeeper", description="")
    assert "The role is changed." in admin.parsed.text
    assert identity.get_role(page.rpartition("/")[2]).name == "bookkeeper"
    assert "bookkeeper" in admin.get("/roles?name=keep").text
    assert "No role has such a name." in admin.get("/roles?name=nothing").text
    admin.get("/roles")
    text = admin.submit("/roles", name="bookkeeper", description="Again").text
    assert (admin.status, admin.form("/roles").fields["description"]) == (409, "Again")
    assert "bookkeeper" in text
    assert "Delete the role bookkeeper?" in admin.get(f"{page}/delete").text
    assert "The role is deleted." in admin.submit(f"{page}/delete").text
    assert admin.path == "/roles"
    assert identity.find_role("bookkeeper") is None
    admin.get(page)
    assert admin.status == 404
    member = identity.find_role("member").id
    text = admin.get(f"/roles/{member}/delete").text
    assert "The default policies of the APIs name it" in text


def test_a_group_from_create_to_delete(admin: Browser, identity: Any) -> None:
    page = make(admin, "/user-groups", name="shop", description="Of the web shop")
    group = page.rpartition("/")[2]
    assert "Done: The user group shop is made: add its first member." in admin.parsed.text
    assert "Nobody." in admin.parsed.text
    assert admin.calls <= MOST_CALLS["/user-groups/{group_id}"]
    user, project = identity.find_user("demo").id, identity.find_project("admin").id
    assert (
        "demo is a member of the group now." in admin.submit(f"{page}/members", user="demo").text
    )
    assert [one.id for one in identity.group_users(group)] == [user]
    assert "shop" in admin.get(f"/users/{user}").text
    admin.get(page)
    roles = admin.form(f"{page}/roles").choices["role"]
    text = admin.submit(f"{page}/roles", project="admin", role=roles["reader"]).text
    assert "The group's users are members of admin now." in text
    path = f"/projects/{project}/groups/{group}/roles/{roles['reader']}"
    assert identity.head(path).status_code == 204
    text = admin.get(f"/projects/{project}").text
    assert "shop group reader" in text
    removal = f"/projects/{project}/members/remove?group={group}&role={roles['reader']}"
    assert f"/dashboard{removal}" in admin.get(page).links
    assert "Remove shop as reader from admin?" in admin.get(removal).text
    admin.submit(f"/projects/{project}/members/remove")
    assert identity.head(path).status_code == 404
    text = admin.get(f"{page}/members/{user}/remove").text
    assert "Remove demo from shop?" in text
    assert (
        "isn't a member of the group any more"
        in admin.submit(f"{page}/members/{user}/remove").text
    )
    assert not list(identity.group_users(group))
    admin.submit(page, name="store", description="")
    assert identity.get_group(group).name == "store"
    assert "Delete the user group store?" in admin.get(f"{page}/delete").text
    assert "The user group is deleted." in admin.submit(f"{page}/delete").text
    assert admin.path == "/user-groups"
    assert identity.find_group("store") is None


def test_what_a_group_refuses(admin: Browser, identity: Any) -> None:
    page = make(admin, "/user-groups", name="shop")
    for form, fields in (
        ("members", {"user": "nobody"}),
        ("members", {"user": ""}),
        ("roles", {"project": "nothing", "role": ""}),
        ("roles", {"project": "demo", "role": ""}),
    ):
        admin.get(page)
        admin.submit(f"{page}/{form}", **fields)
        assert admin.status in (400, 404)
        given = admin.form(f"{page}/{form}").fields
        assert all(given[name] == text for name, text in fields.items() if name != "role")
    admin.get("/user-groups")
    admin.submit("/user-groups", name="shop")
    assert admin.status == 409
    admin.get("/user-groups/nothing")
    assert admin.status == 404


@pytest.mark.parametrize("section", ["/roles", "/user-groups"])
def test_only_administrators_see_them(
    member: Browser, reader: Browser, identity: Any, section: str
) -> None:
    role = identity.find_role("member").id
    for person in (member, reader):
        for path in (section, f"{section}/{role}", f"{section}/{role}/delete"):
            person.get(path)
            assert person.status == 403
        for path in (section, f"{section}/{role}", f"{section}/{role}/delete"):
            person.post(path, {"csrf": person.csrf, "name": "theirs"})
            assert person.status == 403
    assert identity.get_role(role).name == "member"
