"""Quotas: a project's own, and any project's for administrators."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.browser import Browser, Parsed


@pytest.fixture
def demo(three_nodes: EmbeddedCloud) -> Iterator[str]:
    """The ID of the members' project, whose limits are the defaults again afterwards."""
    project = str(three_nodes.connection().current_project_id)
    yield project
    admin = three_nodes.connection("micronova-admin")
    admin.compute.delete(f"/os-quota-sets/{project}")
    admin.block_storage.delete(f"/os-quota-sets/{project}")
    admin.network.delete(f"/quotas/{project}")
    admin.clustering.delete(f"/quotas/{project}")


def row(page: Parsed, title: str) -> str:
    """Return what follows a title in the tables."""
    return page.text.partition(" Quotas of ")[2].partition(f" {title} ")[2][:30]


def test_a_project_sees_its_own(member: Browser, reader: Browser, demo: str) -> None:
    for browser in (member, reader):
        found = browser.get("/quotas")
        assert "Quotas of demo" in found.text
        assert "Servers 0 10 " in found.text
        assert re.match(r"0 51200", row(found, "Memory MiB"))
        assert row(found, "Volumes and snapshots GiB").startswith("0 1000")
        assert row(found, "One volume GiB").startswith("unlimited")
        assert not browser.has_form(f"/quotas/{demo}")
        assert not any("/quotas/" in one for one in found.links)
        browser.get(f"/quotas/{demo}")
        assert browser.status == 403


def test_an_administrator_changes_any(admin: Browser, member: Browser, demo: str) -> None:
    found = admin.get("/quotas?project=dem")
    assert f"/dashboard/quotas/{demo}" in found.links
    assert "No project has such a name." in admin.get("/quotas?project=nobody").text
    assert "Quotas of demo" in admin.get(f"/quotas/{demo}").text
    limits = {"compute.instances": "7", "compute.ram": "-1", "block-storage.volumes": "3"}
    text = admin.submit(f"/quotas/{demo}", **limits).text
    assert "Servers: the limits are set." in text
    assert "Volumes: the limits are set." in text
    found = member.get("/quotas")
    assert "Servers 0 7 " in found.text
    assert row(found, "Memory MiB").startswith("0 unlimited")
    assert "Volumes 0 3 " in found.text
    assert "of 7" in member.get("/").text
    assert "Nothing was to be changed." in admin.submit(f"/quotas/{demo}").text


def test_limits_of_networks_and_scaling_groups(admin: Browser, member: Browser, demo: str) -> None:
    admin.get(f"/quotas/{demo}")
    limits = {"network.network": "7", "clustering.groups": "4"}
    text = admin.submit(f"/quotas/{demo}", **limits).text
    assert "Networks: the limits are set." in text
    assert "Scaling groups: the limits are set." in text
    assert "Routers" not in text
    fields = admin.form(f"/quotas/{demo}").fields
    assert {name: fields[name] for name in limits} == limits
    text = member.get("/quotas").text
    assert "Networks 0 7 " in text
    assert "Scaling groups 0 4" in text


def test_limits_are_reset_to_the_defaults(admin: Browser, demo: str) -> None:
    admin.get(f"/quotas/{demo}")
    limits = {"compute.instances": "7", "network.network": "7", "clustering.groups": "4"}
    admin.submit(f"/quotas/{demo}", **limits)
    text = admin.get(f"/quotas/{demo}/reset").text
    assert "Reset the quotas of demo to the defaults?" in text
    text = admin.submit(f"/quotas/{demo}/reset").text
    for title in ("Servers", "Volumes", "Networks", "Scaling groups"):
        assert f"{title}: the limits are the defaults." in text
    fields = admin.form(f"/quotas/{demo}").fields
    assert {name: fields[name] for name in limits} == {
        "compute.instances": "10",
        "network.network": "100",
        "clustering.groups": "10",
    }
    # nothing to reset is no failure
    admin.get(f"/quotas/{demo}/reset")
    assert "Refused: " not in admin.submit(f"/quotas/{demo}/reset").text


def test_odd_limits_are_refused(admin: Browser, demo: str) -> None:
    for given in ("many", "-2", "99999999999"):
        admin.get(f"/quotas/{demo}")
        wanted = {"compute.cores": given, "block-storage.volumes": "4"}
        text = admin.submit(f"/quotas/{demo}", **wanted).text
        assert "Refused: Servers: " in text
        assert row(admin.parsed, "VCPUs").startswith("0")
    admin.get("/quotas/nothing")
    assert admin.status == 404
