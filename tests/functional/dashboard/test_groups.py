"""Scaling groups: made, scaled, replaced, explained, deleted."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.functional.cloud import EmbeddedCloud, eventually
from tests.functional.dashboard.browser import Browser, Parsed

NOBODY = "11111111-1111-1111-1111-111111111111"


@pytest.fixture(autouse=True)
def no_groups(three_nodes: EmbeddedCloud) -> Iterator[None]:
    """Delete all scaling groups and profiles after a test."""
    yield
    connection = three_nodes.connection()
    for one in connection.clustering.clusters():
        connection.clustering.delete_cluster(one)
    eventually(lambda: not list(connection.clustering.clusters()))
    for one in connection.compute.servers():
        connection.compute.delete_server(one)
    eventually(lambda: not list(connection.compute.servers()))
    for one in connection.clustering.profiles():
        connection.clustering.delete_profile(one)


def make(browser: Browser, called: str, servers: int = 2, **fields: str) -> str:
    """Make a group by the form; return the path of its page."""
    browser.get("/groups/create")
    choices = browser.form("/groups/create").choices
    [flavor] = [one for text, one in choices["flavor"].items() if text.startswith("m1.nano:")]
    chosen = {"name": called, "image": choices["image"]["cirros"], "flavor": flavor}
    browser.submit("/groups/create", **{**chosen, "desired": str(servers), **fields})
    return browser.path


def wait(browser: Browser, path: str, said: str) -> Parsed:
    """Wait until a group is at rest and says something."""

    def at_rest(page: Parsed) -> bool:
        live = browser.page.text.partition('id="live"')[2].partition(">")[0]
        return "hx-get" not in live and said in page.text

    return browser.until(path, at_rest)


def post(browser: Browser, path: str, **fields: str) -> str:
    """Send one of several forms of a page; return what the next page says."""
    return browser.post(path, {"csrf": browser.csrf, **fields}).text


def test_the_life_of_a_group(member: Browser, three_nodes: EmbeddedCloud) -> None:
    assert "No scaling groups." in member.get("/groups").text
    path = make(member, "shop", max_size="4")
    assert re.fullmatch(r"/groups/[0-9a-f-]{36}", path)
    assert "The group shop is being created." in member.parsed.text
    text = wait(member, path, "2 of 2 servers work.").text
    assert member.calls == 3
    assert "ACTIVE" in text
    assert "0 at least, 4 at most" in text
    servers = {one.id for one in three_nodes.connection().compute.servers()}
    assert {one.rpartition("/")[2] for one in member.parsed.links if "/servers/" in one} == servers
    assert "shop ● ACTIVE 2 of 2 0 to 4 shop" in member.get("/groups").text

    assert "The size is being changed." in post(member, f"{path}/scale", desired="3")
    wait(member, path, "3 of 3 servers work.")
    text = post(member, f"{path}/scale", desired="1", min_size="1", max_size="-1")
    assert "Shrink shop from 3 to 1? 2 servers are deleted with their disks" in text
    assert "The size is being changed." in member.submit(f"{path}/scale").text
    text = wait(member, path, "1 of 1 server works.").text
    assert "Limits 1 at least ID" in text
    assert 'value="0"' not in member.page.text, "it is at its minimum"
    for wrong in ({"desired": "0", "sure": "1"}, {"desired": "many"}, {"min_size": "-7"}):
        assert "Refused: " in post(member, f"{path}/scale", **wrong)

    assert "disks are deleted, and can't be restored." in member.get(f"{path}/delete").text
    assert "The group is being deleted, with its servers." in member.submit(f"{path}/delete").text
    member.until("/groups", lambda page: "No scaling groups." in page.text)
    eventually(lambda: not list(three_nodes.connection().compute.servers()))


def test_servers_are_replaced_and_rolled_back(member: Browser, three_nodes: EmbeddedCloud) -> None:
    path = make(member, "shop")
    wait(member, path, "2 of 2 servers work.")
    compute = three_nodes.connection().compute
    before = {one.id for one in compute.servers()}
    flavors = {one.name: one.id for one in compute.flavors()}
    member.get(f"{path}/replace")
    form = member.form(f"{path}/replace")
    assert form.fields["flavor"] == flavors["m1.nano"], "what there is now is chosen"
    assert "m1.nano, as now" in form.choices["flavor"]
    for one in ("pause", "resume"):
        text = post(member, f"{path}/{one}")
        assert "Refused: The cluster 'shop' is not being updated." in text
    member.get(f"{path}/replace")
    text = member.submit(f"{path}/replace", flavor=flavors["m1.tiny"]).text
    assert "The servers are being replaced." in text
    pause = f"/dashboard{path}/pause"
    assert pause in member.parsed.links
    assert "Under way: The update is being paused." in post(member, f"{path}/pause")
    text = wait(member, path, "It is paused.").text
    assert pause not in member.parsed.links
    assert "Under way: The update is being resumed." in post(member, f"{path}/resume")
    wait(member, path, "2 of 2 servers work.")
    eventually(lambda: not before & {one.id for one in compute.servers()})
    assert {one.flavor["original_name"] for one in compute.servers()} == {"m1.tiny"}
    wait(member, path, "2 of 2 servers work.")
    assert (
        "servers of the former profile take their places" in member.get(f"{path}/roll-back").text
    )
    text = member.submit(f"{path}/roll-back").text
    assert "Under way: The former profile is being brought back." in text
    eventually(lambda: {one.flavor["original_name"] for one in compute.servers()} == {"m1.nano"})
    wait(member, path, "2 of 2 servers work.")


def test_a_member_is_replaced_and_a_group_keeps_its_servers(
    member: Browser, three_nodes: EmbeddedCloud
) -> None:
    path = make(member, "shop", 1)
    wait(member, path, "1 of 1 server works.")
    compute = three_nodes.connection().compute
    [server] = compute.servers()
    assert f"/dashboard{path}" in member.get(f"/servers/{server.id}").links
    member.get(path)
    [link] = [one for one in member.parsed.links if "/members/" in one]
    replace = link.removeprefix("/dashboard")
    assert "Replace shop-1? Its server is deleted with its disks" in member.get(replace).text
    text = member.submit(replace).text
    assert "The server is being replaced." in text
    eventually(lambda: server.id not in {one.id for one in compute.servers()})
    wait(member, path, "1 of 1 server works.")
    for one in ("recover", "check"):
        assert "Under way: " in post(member, f"{path}/{one}")
        wait(member, path, "1 of 1 server works.")
    assert "its servers remain" in post(member, f"{path}/delete", keep="1")
    member.until("/groups", lambda page: "No scaling groups." in page.text)
    assert [one.status for one in compute.servers()] == ["ACTIVE"]


def test_a_member_that_finds_no_room_waits_for_it(
    member: Browser, three_nodes: EmbeddedCloud
) -> None:
    admin = three_nodes.connection("micronova-admin").compute
    hosts = list(admin.services(binary="nova-compute"))
    for one in hosts:
        admin.disable_service(one)
    try:
        path = make(member, "shop", 2)
        said = re.compile(r"shop-2 waits for room, place [12] of 2, until \S+ at most; ")
        text = member.until(path, lambda page: bool(said.search(page.text))).text
        assert "0 of 2 servers work." in text
        assert "It waits for room, place 1 of 2, until" in text
        assert "failed" not in text
    finally:
        for one in hosts:
            admin.enable_service(one)
    wait(member, path, "2 of 2 servers work.")


def test_a_group_that_finds_no_room_says_why(member: Browser, three_nodes: EmbeddedCloud) -> None:
    """Where its members are not to wait for it."""
    admin = three_nodes.connection("micronova-admin").compute
    clustering = three_nodes.connection().clustering
    vast = admin.create_flavor(name="vast", vcpus=1, ram=128, disk=1_000_000)
    try:
        path = make(member, "shop", 0, flavor=vast.id)
        [group] = clustering.clusters()
        clustering.update_cluster(group, config={"micronova.wait_seconds": 0})
        post(member, f"{path}/scale", desired="1")
        text = member.until(path, lambda page: "creations in a row failed" in page.text).text
        assert "0 of 1 server works." in text
        assert "1000000 GiB disk asked" in text
        assert "After 5 failed creations in a row none is tried any more." in text
        post(member, f"{path}/delete")
        member.until("/groups", lambda page: "No scaling groups." in page.text)
    finally:
        admin.delete_flavor(vast)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"desired": "many"},
        {"desired": "3", "max_size": "2"},
        {"flavor": "nothing"},
        {"image": NOBODY},
        {"key": "nobody's"},
    ],
)
def test_a_refused_group_leaves_nothing(
    member: Browser, three_nodes: EmbeddedCloud, fields: dict[str, str]
) -> None:
    make(member, "odd", **fields)
    assert 400 <= member.status < 500, member.parsed.text
    assert member.path == "/groups/create"
    assert member.form("/groups/create").fields["name"] == fields.get("name", "odd")
    clustering = three_nodes.connection().clustering
    assert list(clustering.clusters()) == []
    assert list(clustering.profiles()) == []


def test_who_may_what(member: Browser, reader: Browser, admin: Browser) -> None:
    path = make(member, "shop", 0)
    wait(member, path, "0 of 0 servers work.")
    assert "shop" in reader.get("/groups").text
    reader.get(path)
    assert reader.status == 200
    assert not [one for one in reader.parsed.forms if path in one.action]
    for one in ("/scale", "/recover", "/delete", "/replace"):
        reader.post(f"{path}{one}", {"csrf": reader.csrf, "desired": "1"})
        assert reader.status == 403
    reader.get("/groups/create")
    assert reader.status == 403
    assert "No scaling groups." in admin.get("/groups").text
    assert "Refused: " in post(member, f"{path}/members/{NOBODY}/replace")
    post(member, f"{path}/explode")
    assert member.status == 404
    member.get(f"{path}/explode")
    assert member.status == 404
    member.get(f"/groups/{NOBODY}")
    assert member.status == 404
