from __future__ import annotations

from typing import Any

import pytest

from dashboard.pages.networks import forms

PORT: dict[str, Any] = {
    "mac_address": "fa:16:3e:00:00:01",
    "allowed_address_pairs": [
        {"ip_address": "192.0.2.7", "mac_address": "fa:16:3e:00:00:01"},
        {"ip_address": "192.0.2.0/28", "mac_address": "fa:16:3e:00:00:02"},
    ],
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("\r\n  \r\n", []),
        ("192.0.2.9-192.0.2.20", [{"start": "192.0.2.9", "end": "192.0.2.20"}]),
        ("192.0.2.9 - 192.0.2.20\n", [{"start": "192.0.2.9", "end": "192.0.2.20"}]),
        ("a to b\r\nc d", [{"start": "a", "end": "b"}, {"start": "c", "end": "d"}]),
        ("a", [{"start": "a", "end": ""}]),
        ("a b c", [{"start": "a", "end": "b c"}]),
    ],
)
def test_pools_are_lines(text: str, expected: list[dict[str, str]]) -> None:
    assert forms.pools_of(text) == expected


def test_pairs_are_lines_with_a_mac_that_is_another() -> None:
    shown = forms.shown_pairs(PORT)
    assert shown == "192.0.2.7\n192.0.2.0/28 fa:16:3e:00:00:02"
    assert forms.pairs_of(shown) == [
        {"ip_address": "192.0.2.7"},
        {"ip_address": "192.0.2.0/28", "mac_address": "fa:16:3e:00:00:02"},
    ]


def test_a_port_has_what_is_given() -> None:
    given = dict.fromkeys(("name", "description", "subnet", "address", "mac"), "")
    assert forms.new_port(given, None, "net") == {
        "network_id": "net",
        "name": "",
        "description": "",
    }
    given = {**given, "name": "vip", "subnet": "s", "address": "192.0.2.9", "mac": "fa:1"}
    assert forms.new_port(given, [], "net") == {
        "network_id": "net",
        "name": "vip",
        "description": "",
        "fixed_ips": [{"subnet_id": "s", "ip_address": "192.0.2.9"}],
        "mac_address": "fa:1",
        "security_groups": [],
    }


def test_the_addresses_of_a_port_are_lines() -> None:
    shown = forms.shown_addresses(
        {"fixed_ips": [{"ip_address": "192.0.2.7"}, {"ip_address": "::7"}]}
    )
    assert shown == "192.0.2.7\n::7"
    assert forms.addresses_of(shown, []) == [{"ip_address": "192.0.2.7"}, {"ip_address": "::7"}]
    assert forms.addresses_of("", []) == []
    known = [{"cidr": "192.0.2.0/24", "id": "four"}, {"cidr": "2001:db8::/64", "id": "six"}]
    assert forms.addresses_of("192.0.2.0/24\r\n198.51.100.0/24", known) == [
        {"subnet_id": "four"},
        {"ip_address": "198.51.100.0/24"},
    ]


SUBNET: dict[str, Any] = {
    "name": "",
    "cidr": "192.0.2.0/24",
    "gateway_ip": None,
    "dns_nameservers": ["192.0.2.53", "192.0.2.54"],
    "allocation_pools": [{"start": "192.0.2.9", "end": "192.0.2.20"}],
    "host_routes": [{"destination": "10.0.0.0/8", "nexthop": "192.0.2.1"}],
    "enable_dhcp": False,
}


def test_a_subnet_is_the_same_after_its_form() -> None:
    given = forms.shown_subnet(SUBNET)
    assert given["servers"] == "192.0.2.53, 192.0.2.54"
    assert forms.changes(SUBNET, forms.edited_subnet(given)) == {}


@pytest.mark.parametrize(
    ("gateway", "expected"),
    [("", {"gateway_ip": None}), ("first", {}), ("fe80::1", {"gateway_ip": "fe80::1"})],
)
def test_the_gateway_of_a_new_subnet(gateway: str, expected: dict[str, Any]) -> None:
    made = forms.new_subnet({"cidr": "2001:db8::/64", "gateway": gateway}, "net")
    assert made == {
        "network_id": "net",
        "cidr": "2001:db8::/64",
        "ip_version": 6,
        "enable_dhcp": False,
        **expected,
    }


def test_the_modes_of_a_new_subnet_are_those_chosen() -> None:
    given = {"cidr": "2001:db8::/64", "gateway": "", "ipv6_ra_mode": "slaac"}
    made = forms.new_subnet({**given, "ipv6_address_mode": ""}, "net")
    assert made["ipv6_ra_mode"] == "slaac"
    assert "ipv6_address_mode" not in made
    shown = forms.shown_subnet({**SUBNET, "ipv6_ra_mode": "slaac", "ipv6_address_mode": None})
    assert (shown["ipv6_ra_mode"], shown["ipv6_address_mode"]) == ("slaac", "")


def test_only_what_differs_is_changed() -> None:
    assert forms.changes({"a": 1, "b": [2]}, {"a": 1, "b": []}) == {"b": []}
