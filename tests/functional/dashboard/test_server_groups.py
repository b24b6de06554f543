"""Server groups: made, with members, deleted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.browser import Browser
from tests.functional.dashboard.conftest import clear


@pytest.fixture(autouse=True)
def no_groups(three_nodes: EmbeddedCloud) -> Iterator[None]:
    """Delete all server groups after a test."""
    yield
    compute = three_nodes.connection("micronova-admin").compute
    for one in compute.server_groups(all_projects=True):
        compute.delete_server_group(one)


def test_the_life_of_a_group(member: Browser, three_nodes: EmbeddedCloud) -> None:
    assert "No server groups." in member.get("/server-groups").text
    policies = member.form("/server-groups").choices["policy"]
    assert set(policies.values()) == {
        "anti-affinity",
        "affinity",
        "soft-anti-affinity",
        "soft-affinity",
    }
    member.submit("/server-groups", name="apart", policy="anti-affinity", per_host="2")
    text = member.parsed.text
    assert "The group apart is made: choose it when a server is created." in text
    assert "each on another host, or not at all, at most 2 on a host anti-affinity none" in text
    connection = three_nodes.connection()
    [group] = connection.compute.server_groups()
    server = connection.compute.create_server(
        name="inside",
        image_id=connection.image.find_image("cirros").id,
        flavor_id=connection.compute.find_flavor("m1.nano").id,
        networks="auto",
        scheduler_hints={"group": group.id},
    )
    connection.compute.wait_for_server(server, wait=60)
    page = member.get("/server-groups")
    assert "anti-affinity inside" in page.text
    assert f"/dashboard/servers/{server.id}" in page.links
    path = f"/server-groups/{group.id}/delete"
    assert "Delete apart? The group is deleted. Its servers remain" in member.get(path).text
    assert "The group is deleted." in member.submit(path).text
    assert "No server groups." in member.parsed.text
    assert connection.compute.get_server(server).status == "ACTIVE"
    clear(three_nodes)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"name": "odd", "policy": "affinity", "per_host": "2"}, "Only anti-affinity policy"),
        ({"name": "odd", "policy": "alone"}, "Invalid input for field/attribute policy"),
        ({"name": "", "policy": "affinity"}, "Invalid input for field/attribute name"),
        ({"name": "odd", "policy": "anti-affinity", "per_host": "many"}, "Invalid input for"),
    ],
)
def test_what_the_api_refuses(member: Browser, fields: dict[str, str], sentence: str) -> None:
    member.get("/server-groups")
    text = member.submit("/server-groups", **fields).text
    assert f"Refused: {sentence}" in text
    assert "No server groups." in text


def test_they_come_in_pages(member: Browser) -> None:
    for name in ("first", "second"):
        member.get("/server-groups")
        member.submit("/server-groups", name=name)
    first = member.get("/server-groups?limit=1&offset=none")
    [following] = [one for one in first.links if "offset=1" in one]
    second = member.get(following.removeprefix("/dashboard"))
    assert ("second" in first.text) != ("second" in second.text)


def test_who_may_what(
    member: Browser, reader: Browser, admin: Browser, three_nodes: EmbeddedCloud
) -> None:
    member.get("/server-groups")
    member.submit("/server-groups", name="theirs")
    [group] = three_nodes.connection().compute.server_groups()
    assert "theirs" in reader.get("/server-groups").text
    assert not reader.has_form("/server-groups")
    for path in ("/server-groups", f"/server-groups/{group.id}/delete"):
        reader.post(path, {"csrf": reader.csrf, "name": "x", "policy": "affinity"})
        assert reader.status == 403
    assert "theirs" not in admin.get("/server-groups").text
    member.get(f"/server-groups/{'1' * 8}-1111-1111-1111-{'1' * 12}/delete")
    assert member.status == 404
