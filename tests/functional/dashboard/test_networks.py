"""Networks: made with a subnet, looked at, drawn, deleted."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.browser import Browser
from tests.functional.dashboard.conftest import clear
from tests.functional.dashboard.test_pages import create, wait_for

NOBODY = "11111111-1111-1111-1111-111111111111"


@pytest.fixture(autouse=True)
def no_networks(three_nodes: EmbeddedCloud) -> Iterator[None]:
    """Delete the servers and networks of projects after a test."""
    yield
    network = three_nodes.connection("micronova-admin").network
    made = [one for one in network.networks() if one.project_id]
    if made:
        clear(three_nodes)
    for one in made:
        network.delete_network(one)


def make(browser: Browser, name: str, cidr: str = "", gateway: str = "") -> str:
    """Make a network; return the path of its page."""
    browser.get("/networks")
    browser.submit("/networks", name=name, cidr=cidr, gateway=gateway)
    assert browser.status == 200, browser.parsed.text
    assert re.fullmatch(r"/networks/[0-9a-f-]{36}", browser.path)
    return browser.path


def test_the_life_of_a_network(member: Browser, three_nodes: EmbeddedCloud) -> None:
    path = make(member, "mine", "192.168.7.0/24")
    text = member.parsed.text
    assert "The network mine is made." in text
    assert "192.168.7.0/24 none 192.168.7.1 to 192.168.7.254 0 of 254" in text
    create(member, "inside", network=path.rpartition("/")[2])
    server = member.path
    wait_for(member, server, "ACTIVE")
    text = member.get(path).text
    assert re.search(r"inside ● ACTIVE 192\.168\.7\.\d+ fa:16:3e:\S+ default", text)
    assert "1 of 254" in text
    assert f"/dashboard{server}" in member.parsed.links
    page = member.get("/networks")
    assert "1 of 254" in page.text
    assert "inside: mine" in page.text
    assert member.page.text.count("<circle") == 2
    assert 'aria-label="1 server on 1 network;' in member.page.text
    member.get(f"{path}/delete")
    assert (
        "Refused: Unable to complete operation on network" in member.submit(f"{path}/delete").text
    )
    assert member.path == path
    clear(three_nodes)
    member.get(f"{path}/delete")
    assert "The network is deleted." in member.submit(f"{path}/delete").text
    assert member.path == "/networks"
    member.get(path)
    assert member.status == 404


def test_subnets_are_added_and_deleted(member: Browser, three_nodes: EmbeddedCloud) -> None:
    path = make(member, "mine")
    assert "No subnets: guests get no addresses" in member.parsed.text
    member.submit(f"{path}/subnets", cidr="192.168.8.0/24", gateway="first")
    assert "The subnet is made." in member.parsed.text
    member.submit(f"{path}/subnets", cidr="2001:db8:7::/64")
    text = member.parsed.text
    assert "192.168.8.0/24 192.168.8.1 192.168.8.2 to 192.168.8.254 0 of 253" in text
    assert "2001:db8:7::/64 none" in text
    assert "Refused: " in member.submit(f"{path}/subnets", cidr="192.168.8.0/25").text
    assert "Refused: " in member.submit(f"{path}/subnets", cidr="everything").text
    network = three_nodes.connection().network
    wanted = network.find_network("mine")
    assert len(wanted.subnet_ids) == 2
    [page] = [
        one.removeprefix("/dashboard")
        for one in member.parsed.links
        if "/subnets/" in one and network.find_subnet(one.split("/")[-2]).ip_version == 4
    ]
    assert "Delete the subnet 192.168.8.0/24?" in member.get(page).text
    assert "The subnet is deleted." in member.submit(page).text
    assert "192.168.8.0/24" not in member.parsed.text
    member.submit(path, name="ours")
    assert "The network is renamed." in member.parsed.text
    assert network.get_network(wanted.id).name == "ours"


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"name": "odd", "cidr": "everything"}, 400),
        ({"name": "odd", "cidr": "192.168.7.0/99"}, 400),
        ({"name": "odd", "cidr": ":::/64"}, 400),
        ({"name": "x" * 256, "cidr": "192.168.7.0/24"}, 400),
    ],
)
def test_a_refused_network_leaves_nothing(
    member: Browser, three_nodes: EmbeddedCloud, fields: dict[str, str], status: int
) -> None:
    member.get("/networks")
    member.submit("/networks", **fields)
    assert member.status == status
    assert member.form("/networks").fields["cidr"] == fields["cidr"]
    found = three_nodes.connection().network.networks()
    assert [one.name for one in found] == ["vmbr0"]


def test_a_network_of_the_nodes_is_only_looked_at(
    member: Browser, admin: Browser, three_nodes: EmbeddedCloud
) -> None:
    shared = three_nodes.connection().network.find_network("vmbr0").id
    path = f"/networks/{shared}"
    text = member.get(path).text
    assert "shared with all projects" in text
    assert "No ports of this project." in text
    assert "0 of yours, of" in text
    assert not [one for one in member.parsed.forms if path in one.action]
    member.post(f"{path}/delete", {"csrf": member.csrf})
    assert "Refused: " in member.parsed.text
    text = admin.get(path).text
    assert admin.calls == 6
    assert "flat, vmbr0" in text
    assert re.search(r"\d+ of 65\d{3}", text), "an administrator sees those of everybody"
    assert admin.has_form(f"{path}/subnets")


def test_who_may_what(member: Browser, reader: Browser, admin: Browser) -> None:
    path = make(member, "mine", "192.168.7.0/24")
    reader.get(path)
    assert reader.status == 200
    assert not [one for one in reader.parsed.forms if path in one.action]
    reader.get("/networks")
    assert not reader.has_form("/networks")
    for one in ("/networks", path, f"{path}/subnets", f"{path}/delete"):
        reader.post(one, {"csrf": reader.csrf, "name": "theirs", "cidr": "192.0.2.0/24"})
        assert reader.status == 403
    assert "another project's" in admin.get("/networks").text
    for one in ("", "/delete", f"/subnets/{NOBODY}/delete"):
        member.get(f"/networks/{NOBODY}{one}")
        assert member.status == 404
