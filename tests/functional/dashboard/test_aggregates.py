"""Aggregates and zones: made, given hosts and metadata, and deleted by administrators only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.browser import Browser


@pytest.fixture
def compute(three_nodes: EmbeddedCloud) -> Iterator[Any]:
    """The compute API, without the aggregates that a test makes afterwards."""
    found = three_nodes.connection("micronova-admin").compute
    yield found
    for one in found.aggregates():
        for host in one.hosts or ():
            found.remove_host_from_aggregate(one, host)
        found.delete_aggregate(one)


def make(admin: Browser, **fields: str) -> str:
    """Make an aggregate by the form; return its page."""
    admin.get("/aggregates")
    admin.submit("/aggregates", **fields)
    assert admin.path.startswith("/aggregates/"), admin.parsed.text
    return admin.path


def test_an_aggregate_from_create_to_delete(admin: Browser, compute: Any) -> None:
    assert "No aggregates." in admin.get("/aggregates").text
    page = make(admin, name="fast", availability_zone="fast-zone")
    assert "The aggregate fast is made: add its first host." in admin.parsed.text
    assert "The host pve2 is added." in admin.submit(f"{page}/hosts", host="pve2").text
    text = admin.submit(f"{page}/metadata", metadata="disk=nvme\nrack = 7").text
    assert "The metadata are saved." in text
    [found] = compute.aggregates()
    assert found.hosts == ["pve2"]
    assert found.metadata == {"availability_zone": "fast-zone", "disk": "nvme", "rack": "7"}
    text = admin.get("/aggregates").text
    assert "fast fast-zone 1 disk=nvme rack=7" in text
    assert "fast-zone ● available pve2" in text
    admin.get(page)
    assert admin.form(f"{page}/metadata").fields["metadata"] == "disk=nvme\nrack=7"
    admin.submit(f"{page}/metadata", metadata="rack=8")
    admin.submit(page, name="quick", availability_zone="quick-zone")
    [found] = compute.aggregates()
    assert (found.name, found.availability_zone) == ("quick", "quick-zone")
    assert found.metadata == {"availability_zone": "quick-zone", "rack": "8"}
    assert "It has hosts still: remove them first." in admin.get(f"{page}/delete").text
    assert not admin.has_form(f"{page}/delete")
    assert "Refused: " in admin.post(f"{page}/delete", {"csrf": admin.csrf}).text
    assert admin.path == page
    assert "The host pve2 is removed." in admin.submit(f"{page}/hosts/remove").text
    assert "Delete the aggregate quick?" in admin.get(f"{page}/delete").text
    assert "The aggregate is deleted." in admin.submit(f"{page}/delete").text
    assert list(compute.aggregates()) == []
    admin.get(page)
    assert admin.status == 404


def test_what_no_line_shows_is_left_as_it_is(admin: Browser, compute: Any) -> None:
    page = make(admin, name="odd")
    [found] = compute.aggregates()
    compute.set_aggregate_metadata(found, {"note": "two\nlines", "disk": "nvme"})
    assert "Not shown, and left as they are: note." in admin.get(page).text
    admin.submit(f"{page}/metadata", metadata="")
    [found] = compute.aggregates()
    assert found.metadata == {"note": "two\nlines"}


def test_what_is_refused(admin: Browser, compute: Any) -> None:
    admin.get("/aggregates")
    text = admin.submit("/aggregates", name="", availability_zone="kept").text
    assert admin.status == 400
    assert "name" in text
    assert admin.form("/aggregates").fields["availability_zone"] == "kept"
    page = make(admin, name="one")
    for path, fields in (
        ("/hosts", {"host": "nowhere"}),
        ("/hosts", {"host": ""}),
        ("/hosts/remove", {"host": "pve1"}),
        ("/metadata", {"metadata": "no item"}),
        ("/metadata", {"metadata": f"{'x' * 300}=1"}),
        ("", {"name": ""}),
        ("", {"name": "x" * 256}),
    ):
        text = admin.post(page + path, {"csrf": admin.csrf, **fields}).text
        assert "Refused: " in text, path
        assert admin.path == page
    [found] = compute.aggregates()
    assert (found.name, found.hosts, found.metadata) == ("one", [], {})


def test_odd_requests(admin: Browser) -> None:
    for path in (
        *("/aggregates/0", "/aggregates/99999999999999999999", "/aggregates/x", "/aggregates/-1"),
        *("/aggregates/0/delete", "/aggregates/%00"),
    ):
        admin.get(path)
        assert admin.status in (400, 404), path
    for path in ("", "/hosts", "/hosts/remove", "/metadata", "/delete"):
        text = admin.post(f"/aggregates/0{path}", {"csrf": admin.csrf, "name": "x"}).text
        assert admin.status == 404 or "Refused: " in text


def test_members_change_nothing(admin: Browser, member: Browser, compute: Any) -> None:
    page = make(admin, name="one")
    for path, fields in (
        ("/aggregates", {"name": "mine"}),
        (page, {"name": "mine"}),
        (f"{page}/hosts", {"host": "pve1"}),
        (f"{page}/metadata", {"metadata": "a=b"}),
        (f"{page}/delete", {}),
    ):
        member.post(path, {"csrf": member.csrf, **fields})
        assert member.status == 403
    [found] = compute.aggregates()
    assert (found.name, found.hosts, found.metadata) == ("one", [], {})
