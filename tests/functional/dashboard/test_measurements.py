"""Charts of servers, nodes and storages, over an embedded cloud."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.functional import programs
from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.aged import age
from tests.functional.dashboard.browser import Browser
from tests.functional.dashboard.test_pages import create, wait_for


@pytest.fixture
def server(cleared: None, three_nodes: EmbeddedCloud, member: Browser) -> str:
    """A server that seems to have run for long."""
    create(member, "measured")
    wait_for(member, member.path, "ACTIVE")
    found = member.path.rsplit("/", 1)[-1]
    age(three_nodes, found)
    return found


def html(browser: Browser, path: str) -> str:
    """Return a page's source."""
    browser.get(path)
    return browser.page.text


def calls(cloud: EmbeddedCloud) -> list[str]:
    """Paths of the measurements that Proxmox VE was asked for."""
    return [one["path"] for one in cloud.control("GET", "calls") if "rrddata" in one["path"]]


def test_a_server_has_charts_for_all_who_may_see_it(
    server: str, three_nodes: EmbeddedCloud, member: Browser, reader: Browser, admin: Browser
) -> None:
    three_nodes.control("DELETE", "calls")
    assert f'hx-get="/dashboard/servers/{server}/charts"' in html(member, f"/servers/{server}")
    for person in (member, reader, admin):
        page = person.get(f"/servers/{server}/charts?period=week")
        raw = person.page.text
        assert person.calls == 2
        assert raw.count('<figure class="measured">') == 5
        assert raw.count("<title data-time=") == raw.count(">until ") == 5 * 48
        assert raw.count("<tr>") == 1 + 48
        for text in ("Processors", "Memory", "received", "sent", "Use of all its processors"):
            assert text in page.text
        assert " style=" not in raw
        assert "<script>" not in raw
    assert len(calls(three_nodes)) == 1
    member.get(f"/servers/{server}/charts?period=nonsense")
    assert 'period=hour" hx-trigger="click"' in member.page.text
    assert member.status == 200


def test_what_has_no_measurements_says_so(
    cleared: None, three_nodes: EmbeddedCloud, member: Browser
) -> None:
    create(member, "young")
    wait_for(member, member.path, "ACTIVE")
    path = member.path
    page = member.get(f"{path}/charts?period=year")
    assert "Nothing was measured yet" in page.text
    member.get("/servers/00000000-0000-0000-0000-000000000000/charts")
    assert member.status == 404
    three_nodes.control("POST", "faults", action="fail", path="rrddata", times=0)
    try:
        page = member.get(f"{path}/charts?period=day")
        assert member.status == 200
        assert "Not known: " in page.text
    finally:
        three_nodes.control("DELETE", "faults")


def test_nodes_and_their_storages_are_administrators(
    server: str, member: Browser, admin: Browser
) -> None:
    page = admin.get("/nodes/pve1/charts?period=month")
    assert admin.page.text.count('<figure class="measured">') == 6
    assert "Root file system" in page.text
    assert "charts?storage=shared" in html(admin, "/nodes/pve1")
    page = admin.get("/nodes/pve1/charts?storage=shared&period=year")
    assert admin.page.text.count('<figure class="measured">') == 1
    admin.get("/nodes/pve1/charts?storage=..%2F..&period=year")
    assert admin.status == 200
    member.get("/nodes/pve1/charts")
    assert member.status == 403


def test_the_command_shows_the_same(server: str, three_nodes: EmbeddedCloud) -> None:
    words = ("server", "metrics", "measured", "--period", "day", "-f", "json")
    ran = programs.run("micronova", words, three_nodes.environment("micronova-demo"))
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = {one["Metric"]: one for one in json.loads(ran.stdout)}
    assert 0 < found["cpu"]["Last"] < 100
    assert len(found["cpu"]["Graph"]["values"]) in (144, 145)
    words = ("host", "metrics", "pve1", "--storage", "local")
    ran = programs.run("micronova", words, three_nodes.environment("micronova-admin"))
    assert "used" in ran.stdout, ran.stderr
    ran = programs.run("micronova", words, three_nodes.environment("micronova-demo"))
    assert ran.returncode == 1
