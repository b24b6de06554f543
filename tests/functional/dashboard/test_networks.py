"""Networks: made with a subnet, looked at, drawn, deleted."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.functional.cloud import EmbeddedCloud, eventually
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
        for port in network.ports(network_id=one.id):
            network.delete_port(port)
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


def test_a_server_in_several_networks(member: Browser, three_nodes: EmbeddedCloud) -> None:
    assert "And interfaces in" not in member.get("/servers/create").text
    second = make(member, "second", "192.168.9.0/24").rpartition("/")[2]
    text = member.get("/servers/create").text
    assert "First network" in text
    assert "And interfaces in" in text
    assert f'name="more" value="{second}"' in member.page.text
    choices = member.form("/servers/create").choices["network"]
    assert {"vmbr0", "second", "none"} <= set(choices)
    create(member, "between", more=second)
    wait_for(member, member.path, "ACTIVE")
    network = three_nodes.connection().network
    ports = list(network.ports(device_id=member.path.rpartition("/")[2]))
    assert {one.network_id for one in ports} == {choices["vmbr0"], second}
    create(member, "alone", network=second)
    wait_for(member, member.path, "ACTIVE")
    [port] = network.ports(device_id=member.path.rpartition("/")[2])
    assert port.network_id == second


def add(member: Browser, path: str, **fields: str) -> bool:
    """Give a network another subnet; return whether it is refused."""
    member.get(f"{path}/subnets/create")
    assert member.calls == 1
    member.submit(f"{path}/subnets", **fields)
    return member.status == 400 if member.path != path else False


def test_subnets_are_added_and_deleted(member: Browser, three_nodes: EmbeddedCloud) -> None:
    path = make(member, "mine")
    assert "No subnets: guests get no addresses" in member.parsed.text
    assert not add(member, path, cidr="192.168.8.0/24", gateway="first")
    assert "The subnet 192.168.8.0/24 is made." in member.parsed.text
    assert not add(member, path, cidr="2001:db8:7::/64")
    text = member.parsed.text
    assert "192.168.8.0/24 192.168.8.1 192.168.8.2 to 192.168.8.254 0 of 253" in text
    assert "2001:db8:7::/64 none" in text
    for odd in ("192.168.8.0/25", "everything"):
        assert add(member, path, cidr=odd, servers="192.0.2.53")
        given = member.form(f"{path}/subnets").fields
        assert (given["cidr"], given["servers"]) == (odd, "192.0.2.53")
    network = three_nodes.connection().network
    wanted = network.find_network("mine")
    assert len(wanted.subnet_ids) == 2
    [page] = [
        one.removeprefix("/dashboard")
        for one in member.get(path).links
        if one.endswith("/delete")
        and "/subnets/" in one
        and network.find_subnet(one.split("/")[-2]).ip_version == 4
    ]
    assert "Delete the subnet 192.168.8.0/24?" in member.get(page).text
    assert "The subnet is deleted." in member.submit(page).text
    assert "192.168.8.0/24" not in member.parsed.text
    member.submit(path, name="ours")
    assert "The network is renamed." in member.parsed.text
    assert network.get_network(wanted.id).name == "ours"


def test_an_ipv6_subnet_has_the_modes_that_are_chosen(
    member: Browser, three_nodes: EmbeddedCloud
) -> None:
    path = make(member, "mine")
    six = {"cidr": "2001:db8:7::/64", "dhcp": "1"}
    modes = {"ipv6_ra_mode": "slaac", "ipv6_address_mode": "slaac"}
    assert add(member, path, cidr="192.168.8.0/24", **modes)
    assert "ipv6_ra_mode is not valid when ip_version is 4" in member.parsed.text
    assert member.form(f"{path}/subnets").fields["ipv6_ra_mode"] == "slaac"
    assert not add(member, path, **six, **modes)
    network = three_nodes.connection().network
    [subnet] = network.subnets(network_id=path.rpartition("/")[2])
    assert (subnet.ipv6_ra_mode, subnet.ipv6_address_mode) == ("slaac", "slaac")
    page = f"{path}/subnets/{subnet.id}"
    text = member.get(page).text
    assert "Router advertisements: slaac; addresses: slaac." in text
    assert "ipv6_ra_mode" not in member.form(page).fields
    assert "is changed" in member.submit(page, name="six", dhcp="1").text


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
    assert f"/dashboard{path}/subnets/create" in admin.parsed.links


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


def test_the_life_of_a_port(
    member: Browser, reader: Browser, admin: Browser, three_nodes: EmbeddedCloud
) -> None:
    path = make(member, "mine", "192.168.7.0/24")
    network = three_nodes.connection().network
    group = network.find_security_group("default").id
    assert f"/dashboard{path}/ports/create" in member.parsed.links
    member.get(f"{path}/ports/create")
    assert member.calls == 3
    assert re.search(rf'value="{group}" checked', member.page.text)
    fields = {"name": "vip", "address": "192.168.7.50", "mac": "fa:16:3e:aa:bb:01"}
    text = member.submit(f"{path}/ports/create", **fields, groups=group).text
    assert "The port vip is made." in text
    assert "none: the port is free" in text
    page = member.path
    port = network.find_port("vip")
    assert page == f"{path}/ports/{port.id}"
    assert port.fixed_ips[0]["ip_address"] == "192.168.7.50"
    assert port.mac_address == "fa:16:3e:aa:bb:01"
    assert port.security_group_ids == [group]
    pairs = "192.168.7.60\n192.168.7.64/28"
    text = member.submit(page, name="front", pairs=pairs, filtered="1", groups=group).text
    assert "The port is changed." in text
    assert "192.168.7.64/28" in text
    port = network.get_port(port.id)
    assert (port.name, port.security_group_ids) == ("front", [group])
    assert [one["ip_address"] for one in port.allowed_address_pairs] == pairs.split("\n")
    text = member.submit(page, pairs="", filtered="").text
    assert "not filtered" in text
    port = network.get_port(port.id)
    assert (port.is_port_security_enabled, port.security_group_ids) == (False, [])
    member.submit(page, filtered="1")
    assert "none: nothing reaches it" in member.parsed.text
    text = member.get(f"{page}/delete").text
    assert "Its address 192.168.7.50 may be given to others." in text
    for odd in (reader, admin):
        odd.get(page)
        assert odd.status == 200
        assert odd.calls <= 5
    assert not reader.has_form(page)
    for one in (f"{path}/ports/create", page, f"{page}/delete"):
        reader.post(one, {"csrf": reader.csrf, "name": "theirs"})
        assert reader.status == 403
    assert "The port is deleted." in member.submit(f"{page}/delete").text
    assert member.path == path
    assert network.find_port(port.id) is None


def test_the_addresses_of_a_free_port_are_changed(
    member: Browser, three_nodes: EmbeddedCloud
) -> None:
    path = make(member, "mine", "192.168.7.0/24")
    assert not add(member, path, cidr="2001:db8:7::/64")
    network = three_nodes.connection().network
    port = network.create_port(network_id=path.rpartition("/")[2], name="vip")
    page = f"{path}/ports/{port.id}"
    had = [one["ip_address"] for one in port.fixed_ips]
    text = member.get(page).text
    assert "its subnet: 192.168.7.0/24, 2001:db8:7::/64" in text
    assert member.form(page).fields["addresses"].split() == had
    member.submit(page, name="front", filtered="1")
    assert network.get_port(port.id).fixed_ips == port.fixed_ips
    for asked, expected in (
        ("192.168.7.50\r\n192.168.7.51", ["192.168.7.50", "192.168.7.51"]),
        ("192.168.7.60\r\n2001:db8:7::/64", ["192.168.7.60", "2001:db8:7::"]),
        ("", []),
    ):
        member.get(page)
        assert "The port is changed." in member.submit(page, addresses=asked, filtered="1").text
        now = [one["ip_address"] for one in network.get_port(port.id).fixed_ips]
        assert len(now) == len(expected)
        assert all(map(str.startswith, now, expected)), now
    for odd in ("nothing", "192.0.2.1", "192.0.2.0/24"):
        member.get(page)
        member.submit(page, addresses=odd, filtered="1")
        assert member.status == 400
        assert member.form(page).fields["addresses"] == odd
    assert network.get_port(port.id).fixed_ips == []


def test_a_refused_port_is_asked_for_again(member: Browser, three_nodes: EmbeddedCloud) -> None:
    path = make(member, "mine", "192.168.7.0/24")
    member.get(f"{path}/ports/create")
    for fields in ({"address": "192.0.2.1"}, {"address": "x"}, {"mac": "y"}, {"name": "x" * 256}):
        member.submit(f"{path}/ports/create", **fields)
        assert member.status == 400
        given = member.form(f"{path}/ports/create").fields
        assert {name: given[name] for name in fields} == fields
        member.get(f"{path}/ports/create")
    network = three_nodes.connection().network
    assert not list(network.ports(network_id=path.rpartition("/")[2]))
    port = network.create_port(network_id=path.rpartition("/")[2])
    page = f"{path}/ports/{port.id}"
    member.get(page)
    member.submit(page, pairs="everything", filtered="1", name="odd")
    assert member.status == 400
    assert member.form(page).fields["pairs"] == "everything"
    assert network.get_port(port.id).name == ""
    other = network.find_network("vmbr0").id
    for odd in (f"/networks/{other}/ports/{port.id}", f"{path}/ports/{NOBODY}"):
        for one in ("", "/delete"):
            member.get(f"{odd}{one}")
            assert member.status == 404


def test_a_free_port_is_attached_by_choosing_it(
    member: Browser, three_nodes: EmbeddedCloud
) -> None:
    path = make(member, "mine", "192.168.7.0/24")
    network = three_nodes.connection().network
    port = network.create_port(network_id=path.rpartition("/")[2], name="vip")
    create(member, "inside")
    server = member.path
    wait_for(member, server, "ACTIVE")
    tab = f"{server}/network"
    member.get(tab)
    assert member.calls == 6
    address = port.fixed_ips[0]["ip_address"]
    choices = member.form(tab).choices["port"]
    assert choices[f"vip: {address} in mine"] == port.id
    assert len(choices) == 2, "the ports of servers are not free"
    assert "The interface is attached" in member.submit(tab, port=port.id).text
    assert network.get_port(port.id).device_id == server.rpartition("/")[2]
    assert "port" not in member.form(tab).choices
    text = member.get(f"{path}/ports/{port.id}").text
    assert "inside" in text
    assert "addresses" not in member.form(f"{path}/ports/{port.id}").fields
    assert "While a server has the port, its addresses can't be changed" in text
    member.submit(f"{path}/ports/{port.id}", name="front", filtered="1")
    assert network.get_port(port.id).fixed_ips == port.fixed_ips
    assert "Its server loses this interface" in member.get(f"{path}/ports/{port.id}/delete").text
    member.submit(f"{path}/ports/{port.id}/delete")
    assert "Under way: The port is being detached from its server" in member.parsed.text
    eventually(lambda: network.find_port(port.id) is None)


def test_a_subnet_has_all_that_is_asked_for_and_changes(
    member: Browser, reader: Browser, three_nodes: EmbeddedCloud
) -> None:
    path = make(member, "mine")
    routes = "10.0.0.0/8 via 192.168.8.1\r\n172.16.0.0/12 via 192.168.8.2"
    pools = "192.168.8.10 to 192.168.8.19\r\n192.168.8.30-192.168.8.39"
    asked = {"cidr": "192.168.8.0/24", "name": "front", "gateway": "192.168.8.1", "dhcp": "1"}
    more = {"servers": "192.0.2.53, 192.0.2.54", "pools": pools, "routes": routes}
    assert not add(member, path, **asked, **more)
    text = member.parsed.text
    assert "0 of 20" in text
    assert "10.0.0.0/8 via 192.168.8.1 172.16.0.0/12 via 192.168.8.2" in text
    network = three_nodes.connection().network
    [subnet] = network.subnets(network_id=path.rpartition("/")[2])
    assert (subnet.name, subnet.gateway_ip, subnet.is_dhcp_enabled) == (
        "front",
        "192.168.8.1",
        True,
    )
    assert subnet.dns_nameservers == ["192.0.2.53", "192.0.2.54"]
    assert [one["nexthop"] for one in subnet.host_routes] == ["192.168.8.1", "192.168.8.2"]
    page = f"{path}/subnets/{subnet.id}"
    assert f"/dashboard{page}" in member.parsed.links
    member.get(page)
    assert member.form(page).fields["pools"].splitlines() == [
        "192.168.8.10 to 192.168.8.19",
        "192.168.8.30 to 192.168.8.39",
    ]
    member.submit(page, dhcp="1")
    assert "The subnet 192.168.8.0/24 is changed." in member.parsed.text
    same = network.get_subnet(subnet.id)
    assert (same.allocation_pools, same.host_routes) == (
        subnet.allocation_pools,
        subnet.host_routes,
    )
    member.get(page)
    pools = "192.168.8.100 to 192.168.8.109"
    member.submit(page, name="back", servers="192.0.2.55", gateway="", pools=pools, routes="")
    changed = network.get_subnet(subnet.id)
    assert (changed.name, changed.gateway_ip, changed.is_dhcp_enabled) == ("back", None, False)
    assert (changed.dns_nameservers, changed.host_routes) == (["192.0.2.55"], [])
    assert changed.allocation_pools == [{"start": "192.168.8.100", "end": "192.168.8.109"}]
    for odd in (
        {"gateway": "192.168.8.100"},
        {"pools": "192.168.8.100"},
        {"pools": "192.0.2.1 to 192.0.2.2"},
        {"servers": "nobody"},
        {"routes": "10.0.0.0/8"},
    ):
        member.get(page)
        member.submit(page, **odd)
        assert member.status in (400, 409)
        given = member.form(page).fields
        assert {name: given[name] for name in odd} == odd
    assert network.get_subnet(subnet.id) == changed
    reader.get(page)
    assert reader.status == 403
    reader.post(page, {"csrf": reader.csrf, "name": "theirs"})
    assert reader.status == 403
    member.get(f"/networks/{NOBODY}/subnets/{subnet.id}")
    assert member.status == 404
