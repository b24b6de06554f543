from __future__ import annotations

from typing import Any

import pytest

from common.errors import Invalid
from dashboard import traffic

GROUP = "11111111-1111-1111-1111-111111111111"


def rule(**more: Any) -> dict[str, Any]:
    """Return a rule as the API shows it."""
    return {
        "direction": "ingress",
        "ethertype": "IPv4",
        "protocol": None,
        "port_range_min": None,
        "port_range_max": None,
        "remote_ip_prefix": None,
        "remote_group_id": None,
        "remote_address_group_id": None,
        **more,
    }


def tcp(first: int | None, last: int | None = None, **more: Any) -> dict[str, Any]:
    return rule(protocol="tcp", port_range_min=first, port_range_max=last or first, **more)


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (rule(), "everything"),
        (rule(protocol="any"), "everything"),
        (tcp(22), "SSH (TCP 22)"),
        (tcp(8080), "TCP 8080"),
        (tcp(8000, 8100), "TCP 8000 to 8100"),
        (tcp(None), "TCP, all ports"),
        (rule(protocol="udp", port_range_min=22, port_range_max=22), "UDP 22"),
        (rule(protocol="gre"), "GRE"),
        (rule(protocol="99"), "protocol 99"),
        (rule(protocol="icmp"), "ICMP"),
        (rule(protocol="icmp", port_range_min=8), "Ping"),
        (rule(protocol="ipv6-icmp", port_range_min=128, ethertype="IPv6"), "Ping"),
        (rule(protocol="ipv6-icmp", port_range_min=8, ethertype="IPv6"), "ICMP type 8"),
        (rule(protocol="icmp", port_range_min=3, port_range_max=1), "ICMP type 3 code 1"),
    ],
)
def test_what_a_rule_allows(shown: dict[str, Any], said: str) -> None:
    assert traffic.what(shown) == said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "anyone"),
        ({"remote_ip_prefix": "0.0.0.0/0"}, "anyone"),
        ({"remote_ip_prefix": "::/0"}, "anyone"),
        ({"remote_ip_prefix": "192.0.2.7/32"}, "192.0.2.7/32"),
        ({"remote_group_id": GROUP}, "servers of web"),
        ({"remote_group_id": "gone"}, "servers of gone"),
        ({"remote_address_group_id": "office"}, "address group office"),
    ],
)
def test_for_whom(more: dict[str, Any], said: str) -> None:
    assert traffic.who(rule(**more), {GROUP: "web"}) == said


def test_a_summary_says_each_thing_once() -> None:
    rules = [
        tcp(443),
        tcp(22, ethertype="IPv6"),
        tcp(22),
        rule(remote_group_id=GROUP),
        rule(direction="egress"),
    ]
    assert traffic.summary(rules, "ingress", {GROUP: "web"}) == [
        "everything from servers of web",
        "SSH (TCP 22) from anyone",
        "HTTPS (TCP 443) from anyone",
    ]
    assert traffic.summary(rules, "egress", {}) == ["everything to anyone"]


def form(**more: str) -> dict[str, str]:
    return {**dict.fromkeys(traffic.FIELDS, ""), "direction": "ingress", "what": "ssh", **more}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (form(family="IPv4"), {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22}),
        (form(family="IPv4", what="ping"), {"protocol": "icmp", "port_range_min": 8}),
        (form(family="IPv6", what="ping"), {"protocol": "icmp", "port_range_min": 128}),
        (form(family="IPv4", what="everything"), {}),
        (form(family="IPv4", what="gre"), {"protocol": "gre"}),
        (form(family="IPv4", what="tcp"), {"protocol": "tcp"}),
        (
            form(family="IPv4", what="udp", ports="53"),
            {"protocol": "udp", "port_range_min": 53, "port_range_max": 53},
        ),
        (
            form(family="IPv4", what="tcp", ports="8000 - 8100"),
            {"protocol": "tcp", "port_range_min": 8000, "port_range_max": 8100},
        ),
        (
            form(family="IPv4", what="tcp", ports="many"),
            {"protocol": "tcp", "port_range_min": "many", "port_range_max": "many"},
        ),
        (
            form(family="IPv4", what="everything", group=GROUP, description="ours"),
            {"remote_group_id": GROUP, "description": "ours"},
        ),
    ],
)
def test_the_rule_of_a_form(given: dict[str, str], expected: dict[str, Any]) -> None:
    [found] = traffic.wanted(given, GROUP)
    base = {"security_group_id": GROUP, "direction": "ingress", "ethertype": given["family"]}
    assert found == {**base, **expected}


@pytest.mark.parametrize(
    ("more", "families"),
    [
        ({"family": "both"}, ["IPv4", "IPv6"]),
        ({"family": "IPv6"}, ["IPv6"]),
        ({"family": "both", "remote": "192.0.2.0/24"}, ["IPv4"]),
        ({"family": "IPv4", "remote": "2001:db8::/32"}, ["IPv6"]),
    ],
)
def test_an_address_has_its_own_family(more: dict[str, str], families: list[str]) -> None:
    assert [one["ethertype"] for one in traffic.wanted(form(**more), GROUP)] == families


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"direction": "sideways"}, "comes in"),
        ({"remote": "192.0.2.0/24", "group": GROUP}, "not both"),
        ({"remote": "my office"}, "my office is no address"),
        ({"ports": "2222"}, "Ports are for TCP"),
        ({"what": "everything", "ports": "1"}, "Ports are for TCP"),
    ],
)
def test_what_no_rule_can_be_made_of(more: dict[str, str], sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence):
        traffic.wanted(form(**more), GROUP)
