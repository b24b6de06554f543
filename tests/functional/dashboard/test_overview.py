"""The first page: the whole cloud to administrators, the project to others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from dashboard.pages.meters import CLAIMED, OF_NODE, STORED
from tests.functional.cloud import EmbeddedCloud, eventually
from tests.functional.dashboard.browser import Browser


@pytest.fixture
def failed(cleared: None, three_nodes: EmbeddedCloud) -> Iterator[Any]:
    """A server of the members' project that no node has room for."""
    operator = three_nodes.connection("micronova-admin").compute
    vast = operator.create_flavor(name="vast", vcpus=1, ram=512, disk=1_000_000)
    compute = three_nodes.connection().compute
    image = next(three_nodes.connection().image.images(name="cirros")).id
    server = compute.create_server(
        name="too-large", image_id=image, flavor_id=vast.id, networks="none"
    )
    eventually(lambda: compute.get_server(server).status == "ERROR")
    yield server
    operator.delete_flavor(vast)


@pytest.fixture
def waiting(three_nodes: EmbeddedCloud, cleared: None) -> Iterator[Any]:
    """A server that is being built until the fault ends."""
    three_nodes.control("POST", "faults", action="hold", method="POST", path=r"/status/start$")
    compute = three_nodes.connection().compute
    image = next(three_nodes.connection().image.images(name="cirros")).id
    flavor = compute.find_flavor("m1.nano").id
    server = compute.create_server(
        name="patient", image_id=image, flavor_id=flavor, networks="none"
    )
    yield server
    three_nodes.control("DELETE", "faults")


def tile(page: Any, title: str) -> str:
    """Return the number of a tile."""
    found = re.search(rf"{title} (✕ )?(\d+)", page.text)
    assert found, page.text
    return found[2]


def test_an_administrator_sees_the_errors_of_all_projects(
    failed: Any, admin: Browser, member: Browser
) -> None:
    page = admin.get("/")
    assert tile(page, "Servers in error") == "1"
    assert "/dashboard/servers?all_tenants=1&status=ERROR" in page.links
    assert f"/dashboard/servers/{failed.id}" in page.links
    assert "too-large" in admin.get("/servers?all_tenants=1&status=ERROR").text
    # others see their own, and nothing of the cloud
    page = member.get("/")
    assert "too-large" in page.text
    for text in ("Nodes up", "Operations that wait longest", "Open findings"):
        assert text not in page.text
    assert not any("all_tenants" in one for one in page.links)


def test_what_waits_longest_leads_to_its_explanation(waiting: Any, admin: Browser) -> None:
    page = admin.until("/", lambda page: "create patient" in page.text)
    assert tile(page, "Servers being built") == "1"
    assert re.search(r"create patient ◌ running.*demo", page.text)
    [explained] = [one for one in page.links if "/explain?what=req-" in one]
    text = admin.get(explained.removeprefix("/dashboard")).text
    assert "create ◌ running" in text
    assert "building (spawning)" in text


def test_a_node_that_is_off_is_said_in_words(
    cleared: None, three_nodes: EmbeddedCloud, admin: Browser
) -> None:
    assert tile(admin.get("/"), "Nodes that are off") == "0"
    three_nodes.control("POST", "faults", action="node-down", node="pve3")
    try:
        page = admin.until("/", lambda page: tile(page, "Nodes that are off") == "1")
        assert "✕ down pve3 The node is offline." in page.text
        assert 'class="alarm"' in admin.page.text
        assert "1 node is off, ill or disabled, and not counted." in page.text
        assert re.search(r"Nodes up 2 of 3", page.text)
        assert "Nodes up 2 of 3" in admin.get("/nodes").text
    finally:
        three_nodes.control("DELETE", "faults")
    admin.until("/", lambda page: tile(page, "Nodes that are off") == "0")


def test_each_number_is_said_once(three_nodes: EmbeddedCloud, admin: Browser) -> None:
    found = three_nodes.connection("micronova-admin").compute.get("/capacity/total").json()
    sums, memory = found["total_capacity"], found["total_capacity"]["resources"][1]
    page = admin.get("/")
    assert sums["storage_gib"]["total"] >= 1024
    assert re.search(
        rf"Storages {STORED} [0-9.]+ (GiB )?of [0-9.]+ TiB [0-9.]+ TiB free in all", page.text
    )
    [said] = set(re.findall(rf"Memory {CLAIMED} [0-9.]+ (?:[MG]iB )?of ([0-9.]+) TiB", page.text))
    assert float(said) == pytest.approx(memory["total"] / (1 << 20), abs=0.005)
    assert f"on one node ({memory['most_free']['name']})" in page.text
    assert "on one storage (" in page.text


def test_what_is_counted_is_said_where_a_title_stands_twice(admin: Browser) -> None:
    page = admin.get("/nodes")
    for title, measure in OF_NODE.items():
        assert f"{title} {measure}" in page.text
        assert admin.page.text.count(f'<small class="on-card">{measure}</small>') == 3
    assert f"VCPUs {CLAIMED}" in page.text
    assert f"Memory {CLAIMED}" in page.text
    page = admin.get("/nodes/pve1")
    assert all(f"{title} {measure}" in page.text for title, measure in OF_NODE.items())
    assert "Memory that the nodes use" in admin.get("/trend").text


def test_its_requests_are_bounded(admin: Browser, member: Browser) -> None:
    admin.get("/")
    assert admin.calls == 9
    member.get("/")
    assert member.calls == 3


def test_the_capacity_of_a_year_is_a_bounded_number_of_questions(
    three_nodes: EmbeddedCloud, admin: Browser, member: Browser
) -> None:
    page = admin.get("/trend")
    # may be the first page of the day: two lists, four storages and three nodes
    assert admin.calls in (1, 1 + 2 + 4 + 3)
    page = admin.get("/trend")
    assert admin.calls == 1
    assert "all 4 storages and all 3 nodes" in page.text
    assert "hx-get" not in admin.page.text.partition('id="trend"')[2].partition(">")[0]
    assert admin.page.text.count('<figure class="measured">') == 2
    assert "TiB" in page.text
    admin.get("/")
    assert 'hx-get="/dashboard/trend" hx-trigger="load"' in admin.page.text
    member.get("/trend")
    assert member.status == 403
