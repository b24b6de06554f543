from __future__ import annotations

import pytest

from common.errors import Invalid
from common.messages.commands import Nic
from conductor.servers.guest_data import addresses, network_data
from conductor.store.networks.networks import parse_subnet

FIRST = Nic(
    "p1", "n1", "vmbr0", "vmbr0", "fa:16:3e:00:00:01", 1500, None,
    "10.0.0.5", "10.0.0.0/24", "10.0.0.1", ("9.9.9.9",),
)  # fmt: skip
SECOND = Nic("p2", "n2", "vmbr1", "vmbr1", "fa:16:3e:00:00:02", 1500)


def test_network_data_names_links_addresses_and_name_servers() -> None:
    data = network_data([FIRST, SECOND])
    assert [link["ethernet_mac_address"] for link in data["links"]] == [FIRST.mac, SECOND.mac]
    static, dhcp = data["networks"]
    assert static["ip_address"] == "10.0.0.5"
    assert static["netmask"] == "255.255.255.0"
    assert static["routes"] == [
        {"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": "10.0.0.1"}
    ]
    assert dhcp == {
        "id": "network1",
        "link": "interface1",
        "network_id": "n2",
        "type": "ipv4_dhcp",
    }
    assert data["services"] == [{"type": "dns", "address": "9.9.9.9"}]


def test_only_the_first_interface_has_the_default_route() -> None:
    assert network_data([SECOND, FIRST])["networks"][1]["routes"] == []


def test_interfaces_without_an_address_are_no_addresses() -> None:
    assert [item["ip"] for item in addresses([FIRST, SECOND])] == ["10.0.0.5"]


def test_a_subnet_has_sensible_defaults() -> None:
    subnet = parse_subnet("vmbr0=10.20.0.0/16")
    assert (subnet.gateway, subnet.first, subnet.last) == (
        "10.20.0.1",
        "10.20.0.2",
        "10.20.255.254",
    )
    full = parse_subnet(
        "b=10.0.0.0/24;gateway=10.0.0.254;pool=10.0.0.10-10.0.0.20;dns=1.1.1.1+9.9.9.9"
    )
    assert (full.gateway, full.first, full.last) == ("10.0.0.254", "10.0.0.10", "10.0.0.20")
    assert full.dns == ("1.1.1.1", "9.9.9.9")


@pytest.mark.parametrize(
    "text",
    ["", "vmbr0", "vmbr0=x", "=10.0.0.0/24", "b=10.0.0.0/24;gateway=10.0.1.1", "b=10.0.0.0/31"],
)
def test_a_wrong_subnet_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        parse_subnet(text)
