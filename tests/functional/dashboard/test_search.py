"""One box finds what the user may see, by name, ID, address, request or VMID."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.cloud import EmbeddedCloud, eventually
from tests.functional.dashboard.browser import Browser, Parsed
from tests.functional.dashboard.conftest import clear


@pytest.fixture(scope="module")
def things(three_nodes: EmbeddedCloud) -> Iterator[dict[str, Any]]:
    """A server with a port, a volume, a network and a port without a server, of the members."""
    connection = three_nodes.connection()
    compute, network = connection.compute, connection.network
    lan = network.create_network(name="find.me lan")
    network.create_subnet(network_id=lan.id, ip_version=4, cidr="192.168.77.0/24", gateway_ip=None)
    lone = network.create_port(network_id=lan.id)
    made = compute.create_server(
        name="find.me server",
        image_id=connection.image.find_image("cirros").id,
        flavor_id=compute.find_flavor("m1.nano").id,
        networks=[{"uuid": lan.id}],
    )
    server = compute.wait_for_server(made, interval=0.2)
    [address] = [ip["addr"] for ips in server.addresses.values() for ip in ips]
    [action] = compute.server_actions(server)
    volume = connection.block_storage.create_volume(name="find.me volume", size=1)
    eventually(lambda: connection.block_storage.get_volume(volume).status == "available")
    [port] = network.ports(device_id=server.id)
    admin = three_nodes.connection("micronova-admin").compute
    vmids = admin.get("/vmids").json()["vmids"]
    yield {
        "server": server.id,
        "address": address,
        "port": port.id,
        "mac": port.mac_address,
        "network": lan.id,
        "lone": lone.fixed_ips[0]["ip_address"],
        "lone_port": lone.id,
        "volume": volume.id,
        "image": connection.image.find_image("cirros").id,
        "request": action.request_id,
        "vmid": next(one["vmid"] for one in vmids if one["server"] == server.id),
    }
    clear(three_nodes)
    network.delete_port(lone)
    network.delete_network(lan)


def search(browser: Browser, wanted: Any) -> Parsed:
    """Send the box of the header."""
    browser.get("/quotas")
    assert browser.has_form("/search")
    return browser.get("/search", params={"for": str(wanted)})


@pytest.mark.parametrize(
    ("wanted", "path"),
    [
        ("find.me s", "/servers/{server}"),
        ("{server}", "/servers/{server}"),
        ("{server:.13}", "/servers/{server}"),
        ("{address}", "/servers/{server}"),
        ("{mac}", "/servers/{server}"),
        ("{port}", "/servers/{server}"),
        ("{lone}", "/networks/{network}"),
        ("{lone_port}", "/networks/{network}"),
        ("FIND.me L", "/networks/{network}"),
        ("{network}", "/networks/{network}"),
        ("cirros", "/images/{image}"),
        ("{image}", "/images/{image}"),
        ("{request}", "/explain"),
    ],
)
def test_a_single_hit_is_gone_to(
    things: dict[str, Any], member: Browser, wanted: str, path: str
) -> None:
    search(member, f" {wanted.format(**things)} ")
    assert member.status == 200
    assert member.path == path.format(**things)


def test_several_are_listed_by_kind(things: dict[str, Any], member: Browser) -> None:
    page = search(member, "find.me")
    assert member.path == "/search"
    assert "Servers find.me server Volumes find.me volume Networks" in page.text
    wanted = {f"/dashboard/{kind}s/{things[kind]}" for kind in ("server", "volume", "network")}
    assert wanted <= set(page.links)
    assert member.calls <= 5
    both = search(member, "192.168.77.")
    assert "Servers find.me server" in both.text
    assert things["lone"] in both.text
    assert things["address"] not in both.text, "its server is there already"


def test_an_operator_finds_every_project_and_vmids(things: dict[str, Any], admin: Browser) -> None:
    for wanted in (things["vmid"], things["address"], "find.me server", things["server"]):
        search(admin, wanted)
        assert admin.path == f"/servers/{things['server']}", wanted


NAMES = ("server", "address", "mac", "port", "network", "lone", "lone_port", "volume", "request")


def test_another_project_finds_nothing(
    things: dict[str, Any], three_nodes: EmbeddedCloud, stranger: Browser
) -> None:
    connection = three_nodes.connection("micronova-admin")
    identity = connection.identity
    project = identity.create_project(name="elsewhere", domain_id="default")
    user = identity.create_user(name="elsewhere", password="p", domain_id="default")
    identity.assign_project_role_to_user(project, user, identity.find_role("member"))
    stranger.log_in(user="elsewhere", password="p", project="elsewhere")
    stranger.secrets.remove(three_nodes.config("micronova-demo").auth["password"])
    for wanted in (*(things[one] for one in NAMES), "find.me", "192.168.77.", things["vmid"]):
        page = search(stranger, wanted)
        assert stranger.path == "/search", wanted
        assert "Nothing has such a name" in page.text, wanted
        assert "Not searched" not in page.text, wanted
    identity.delete_user(user)
    identity.delete_project(project)


@pytest.mark.parametrize(
    "odd",
    ["", "..", "a/b", "%", "(", "\\", "1.2.3.4.5", "::", "0" * 3000, "fe80::1%eth0", "ä", "\x00"],
)
def test_odd_words_find_nothing(member: Browser, odd: str) -> None:
    page = search(member, odd)
    assert member.status in (200, 400)
    assert member.status == 400 or "Search" in page.text or "Found for" in page.text
