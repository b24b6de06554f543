"""Security group rules: which values are taken, and which two say the same."""

from __future__ import annotations

from typing import Any

import pytest

from api.network import rules
from common.errors import Invalid
from common.resources import security_rules
from common.resources.security_rules import Rule
from db.migrations import first_rows


def made(**asked: Any) -> Rule:
    checks = {
        "direction": rules.direction,
        "ethertype": rules.ethertype,
        "protocol": rules.protocol,
        "port_range_min": rules.port,
        "port_range_max": rules.port,
        "remote_ip_prefix": rules.prefix,
        "remote_group_id": rules.group,
    }
    values = {"direction": "ingress", **asked}
    return rules.rule({name: checks[name](value) for name, value in values.items()})


TCP = {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22}
GROUP = "00000000-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ({"ethertype": "IPv5"}, "RuleInvalidEtherType"),
        ({"ethertype": None}, "RuleInvalidEtherType"),
        *(({"protocol": one}, "RuleInvalidProtocol") for one in ("x", 256, -1, True, [], 1.5)),
        *(({"protocol": "tcp", "port_range_min": one}, "InvalidPortValue") for one in (-1, "x")),
        (TCP | {"port_range_max": 65536}, "InvalidPortValue"),
        (TCP | {"port_range_min": 0}, "InvalidPortValue"),
        (TCP | {"port_range_max": 21}, "InvalidPortRange"),
        (TCP | {"port_range_max": None}, "InvalidPortRange"),
        (TCP | {"protocol": None}, "ProtocolRequiredWithPorts"),
        (TCP | {"protocol": "gre"}, "InvalidProtocolForPort"),
        (TCP | {"protocol": "icmp", "port_range_min": 256}, "InvalidIcmpValue"),
        (TCP | {"protocol": "icmp", "port_range_min": None}, "MissingIcmpType"),
        ({"protocol": "ipv6-icmp"}, "EthertypeConflictWithProtocol"),
        ({"protocol": "58"}, "EthertypeConflictWithProtocol"),
        ({"remote_ip_prefix": "::/0"}, "RuleParameterConflict"),
        ({"remote_ip_prefix": "10.0.0.0/8", "remote_group_id": GROUP}, "MultipleRemoteEntites"),
    ],
)
def test_what_neutron_refuses(asked: dict[str, Any], kind: str) -> None:
    with pytest.raises(Invalid) as refused:
        made(**asked)
    assert refused.value.details["type"] == f"SecurityGroup{kind}"


@pytest.mark.parametrize("value", ["x", 3, "10.0.0.0/33", "fe80::1%eth0", ["10.0.0.0/8"]])
def test_prefixes_that_are_none(value: Any) -> None:
    with pytest.raises(Invalid, match="Invalid CIDR"):
        made(remote_ip_prefix=value)


def test_values_are_kept_as_neutron_keeps_them() -> None:
    assert made(protocol="TCP", port_range_min="1", port_range_max=65535) == Rule(
        "ingress", "IPv4", "tcp"
    )
    assert made(protocol=6, ethertype="ipv6") == Rule("ingress", "IPv6", "6")
    assert made(protocol="any") == made(protocol=None) == Rule("ingress")
    assert made(ethertype="IPv6", protocol="icmp").protocol == "ipv6-icmp"
    assert made(ethertype="IPv6", protocol="1").protocol == "58"
    one = made(remote_ip_prefix="10.0.0.7/24")
    assert (one.remote_ip_prefix, one.normalized_cidr) == ("10.0.0.7/24", "10.0.0.0/24")
    assert made(remote_ip_prefix="10.0.0.7").remote_ip_prefix == "10.0.0.7/32"
    icmp = made(protocol="icmp", port_range_min=8, port_range_max=0)
    assert (icmp.port_range_min, icmp.port_range_max) == (8, 0)
    assert made(protocol="icmp", port_range_min=8).port_range_max is None


def test_two_that_say_the_same() -> None:
    for one, other in (
        ({"protocol": "tcp"}, {"protocol": "6"}),
        ({"ethertype": "IPv6", "protocol": "icmpv6"}, {"ethertype": "IPv6", "protocol": 58}),
        ({}, {"remote_ip_prefix": "0.0.0.0/0"}),
        ({"ethertype": "IPv6"}, {"ethertype": "IPv6", "remote_ip_prefix": "::/0"}),
    ):
        assert made(**one).meaning() == made(**other).meaning()
    meanings = [made(**one).meaning() for one in ({}, TCP, {"direction": "egress"})]
    meanings += [
        made(remote_group_id=GROUP).meaning(),
        made(remote_ip_prefix="::1/128", ethertype="IPv6").meaning(),
    ]
    assert len(set(meanings)) == 5


def test_every_meaning_fits_its_column() -> None:
    longest = made(
        direction="ingress",
        ethertype="IPv6",
        protocol="udplite",
        port_range_min=65534,
        port_range_max=65535,
        remote_ip_prefix="1111:2222:3333:4444:5555:6666:7777:8888/128",
    )
    assert len(longest.meaning()) + len(GROUP) < 160


def test_the_migration_writes_the_first_default_rules() -> None:
    written = [first_rows._default_rule(*one) for one in first_rows._DEFAULT_RULES]
    assert [(one["direction"], one["ethertype"], one["meaning"]) for one in written] == [
        (rule.direction, rule.ethertype, rule.meaning()) for rule in security_rules.FIRST_DEFAULTS
    ]
