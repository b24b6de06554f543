"""Flavors: made, explained, given to projects, and deleted by administrators only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.browser import Browser


@pytest.fixture
def compute(three_nodes: EmbeddedCloud) -> Iterator[Any]:
    """The compute API, without the flavors that a test makes afterwards."""
    found = three_nodes.connection("micronova-admin").compute
    before = {one.id for one in found.flavors(is_public=None)}
    yield found
    for one in found.flavors(is_public=None):
        if one.id not in before:
            found.delete_flavor(one)


def make(admin: Browser, **fields: str) -> str:
    """Make a flavor by the form; return its page."""
    admin.get("/flavors")
    admin.submit("/flavors", **fields)
    assert admin.path.startswith("/flavors/"), admin.parsed.text
    return admin.path


def specs_of(compute: Any, page: str) -> dict[str, str]:
    """Return the extra specs of a page's flavor."""
    return dict(compute.get_flavor(page.rpartition("/")[2]).extra_specs)


def test_a_flavor_from_create_to_delete(admin: Browser, compute: Any) -> None:
    assert "m1.nano" in admin.get("/flavors").text
    sizes = {"vcpus": "3", "ram": "1536", "disk": "7", "ephemeral": "2", "swap": "64"}
    page = make(admin, name="odd-size", **sizes, id="odd.1", description="Of the shop")
    assert page == "/flavors/odd.1"
    assert "Done: The flavor odd-size is made." in admin.parsed.text
    found = compute.get_flavor("odd.1")
    assert (found.vcpus, found.ram, found.disk, found.ephemeral, found.swap) == (3, 1536, 7, 2, 64)
    assert (found.is_public, found.description) == (True, "Of the shop")
    assert not admin.has_form(f"{page}/access")
    assert "The description is saved." in admin.submit(page, description="").text
    assert not compute.get_flavor("odd.1").description
    text = admin.submit(f"{page}/specs", name="hw:tpm_version", value="2.0").text
    assert "hw:tpm_version is set." in text
    assert "TPM 2.0 A TPM: tpmstate0 on the root disk's storage." in text
    text = admin.submit(f"{page}/specs", name="hw:cpu_policy", value="dedicated").text
    assert "No host takes such a server: hw:cpu_policy=dedicated: guests can't be bound" in text
    assert specs_of(compute, page) == {"hw:tpm_version": "2.0", "hw:cpu_policy": "dedicated"}
    assert "hw:cpu_policy is removed." in admin.submit(f"{page}/specs/remove").text
    assert specs_of(compute, page) == {"hw:tpm_version": "2.0"}
    assert "hw:tpm_version=2.0" in admin.get("/flavors").text
    assert "Delete the flavor odd-size?" in admin.get(f"{page}/delete").text
    assert "The flavor is deleted." in admin.submit(f"{page}/delete").text
    admin.get(page)
    assert admin.status == 404


def test_projects_may_use_a_private_flavor(
    admin: Browser, compute: Any, three_nodes: EmbeddedCloud
) -> None:
    own = three_nodes.connection().compute
    page = make(admin, name="private", private="1")
    assert "None: only administrators may use it." in admin.parsed.text
    assert own.find_flavor("private") is None
    assert "private 1 1 GiB 10 GiB some projects" in admin.get("/flavors").text
    admin.get(page)
    assert (
        "The project demo may use it now." in admin.submit(f"{page}/access", project="demo").text
    )
    assert own.find_flavor("private") is not None
    text = admin.submit(f"{page}/access", project="nothing").text
    assert "Could not find project: nothing" in text
    text = admin.submit(f"{page}/access/remove").text
    assert "The project may not use it any more." in text
    assert own.find_flavor("private") is None


def test_what_is_refused(admin: Browser, compute: Any) -> None:
    for fields in (
        {"name": ""},
        {"name": "m1.nano"},
        {"name": "x", "vcpus": "0"},
        {"name": "x", "ram": "many"},
        {"name": "x", "disk": "-1"},
        {"name": "x", "id": "../x"},
    ):
        admin.get("/flavors")
        text = admin.submit("/flavors", **{"description": "kept", **fields}).text
        assert "Flavors" in text and 400 <= admin.status < 500, fields
        assert admin.form("/flavors").fields["description"] == "kept"
    page = make(admin, name="one")
    for name, value in (
        *(("hw:tpm_version", "7"), ("hw:nothing", "1"), ("", "1"), ("a/b", "1")),
        ("x" * 256, "1"),
    ):
        admin.get(page)
        admin.submit(f"{page}/specs", name=name, value=value)
        assert admin.status == 400, name
        assert admin.form(f"{page}/specs").fields["value"] == value
    assert specs_of(compute, page) == {}
    for name in ("", "..", "missing", "%00"):
        admin.post(f"{page}/specs/remove", {"csrf": admin.csrf, "name": name})
        assert admin.status == 404 or "Refused: " in admin.parsed.text


def test_odd_requests(admin: Browser) -> None:
    for path in (
        *("/flavors?limit=-1", "/flavors?marker=nothing", "/flavors/nothing", "/flavors/%00"),
        *("/flavors/..", "/flavors/nothing/delete"),
    ):
        admin.get(path)
        assert admin.status in (200, 400, 404), path
    for path in ("", "/specs", "/specs/remove", "/access", "/access/remove", "/delete"):
        admin.post(f"/flavors/nothing{path}", {"csrf": admin.csrf, "name": "x", "project": "demo"})
        assert admin.status in (400, 404) or "Refused: " in admin.parsed.text


def test_members_change_nothing(admin: Browser, member: Browser, compute: Any) -> None:
    page = make(admin, name="one", private="1")
    for path, fields in (
        ("/flavors", {"name": "mine", "vcpus": "1", "ram": "64", "disk": "1"}),
        (page, {"description": "mine"}),
        (f"{page}/specs", {"name": "a", "value": "b"}),
        (f"{page}/access", {"project": "demo"}),
        (f"{page}/delete", {}),
    ):
        member.post(path, {"csrf": member.csrf, **fields})
        assert member.status == 403
    assert compute.find_flavor("mine") is None
    assert specs_of(compute, page) == {}
    assert compute.get_flavor_access(page.rpartition("/")[2]) == []
