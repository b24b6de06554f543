"""Values of security group rules, checked as Neutron does (pure).

See neutron/extensions/securitygroup.py and neutron/db/securitygroups_db.py.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from api.network import values
from common.errors import Invalid
from common.resources import security_rules
from common.resources.security_rules import (
    DIRECTIONS,
    ETHERTYPES,
    ICMP,
    ICMP_V6,
    IPV4,
    IPV6,
    ONLY_V6,
    PORT_NUMBERS,
    PROTOCOLS,
    WITH_PORTS,
    Rule,
)

_SHOWN = 255


def direction(value: Any) -> str:
    """Check a direction."""
    if not isinstance(value, str) or value not in DIRECTIONS:
        raise ValueError(f"'{str(value)[:_SHOWN]}' is not in {list(DIRECTIONS)}")
    return value


def ethertype(value: Any) -> str:
    """Check a family of addresses, in any case. Raises Invalid."""
    for one in ETHERTYPES:
        if isinstance(value, str) and value.lower() == one.lower():
            return one
    raise _refusal(
        "RuleInvalidEtherType",
        f"Security group rule for ethertype '{str(value)[:_SHOWN]}' not supported. Allowed values "
        f"are {list(ETHERTYPES)}.",
    )


def protocol(value: Any) -> str | None:
    """Check a protocol's name or number; None: any. Raises Invalid."""
    if value is None or value == "any":
        return None
    if isinstance(value, int | str) and not isinstance(value, bool):
        text = str(value).strip().lower()
        if text in PROTOCOLS:
            return text
        if text.isascii() and text.isdigit() and int(text[:4]) <= 255:
            return str(int(text))
    raise _refusal(
        "RuleInvalidProtocol",
        f"Security group rule protocol {str(value)[:_SHOWN]} not supported. Only protocol values "
        f"{[None, 'any', *PROTOCOLS]} and integer representations [0 to 255] are supported.",
    )


def port(value: Any) -> int | None:
    """Check a port, or an ICMP type or code. Raises Invalid."""
    if value is None:
        return None
    if isinstance(value, int | str) and not isinstance(value, bool):
        text = str(value)
        if text.isascii() and text.isdigit() and int(text[:6]) <= 65535:
            return int(text)
    raise _bad_port(value)


def prefix(value: Any) -> str | None:
    """Check an address or a prefix, whose bits of a host stay; None: all. Raises Invalid."""
    if not value:
        return None
    try:
        if isinstance(value, str) and "%" not in value:
            return str(ipaddress.ip_interface(value))
    except ValueError:
        pass
    raise Invalid(f"Invalid CIDR {str(value)[:_SHOWN]} given as IP prefix.", type="InvalidCIDR")


def group(value: Any) -> str | None:
    """Check the ID of a group; None: none."""
    return None if value is None else values.an_id(value)


def rule(asked: Mapping[str, Any]) -> Rule:
    """Return the rule of values that are checked one by one. Raises Invalid."""
    family = asked.get("ethertype", IPV4)
    name = _protocol(asked.get("protocol"), family)
    first, last = asked.get("port_range_min"), asked.get("port_range_max")
    if (first, last) == (1, 65535):
        first = last = None
    _check_ports(name, first, last)
    remote_prefix, remote_group = asked.get("remote_ip_prefix"), asked.get("remote_group_id")
    address_group = asked.get("remote_address_group_id")
    cidr = _cidr(remote_prefix, family)
    if family == IPV4 and security_rules.number(name) in ONLY_V6:
        raise _refusal(
            "EthertypeConflictWithProtocol", f"Invalid ethertype {family} for protocol {name}."
        )
    if len([one for one in (remote_prefix, remote_group, address_group) if one]) > 1:
        raise _refusal(
            "MultipleRemoteEntites",
            "Only one of remote_ip_prefix or remote_group_id or remote_address_group_id may be "
            "provided.",
        )
    remote = (remote_prefix, cidr, remote_group, address_group)
    return Rule(asked["direction"], family, name, first, last, *remote)


def _protocol(name: str | None, family: str) -> str | None:
    """Return ICMP of IPv6 under its own name, as Neutron does."""
    if family == IPV6 and name in {"icmp", "icmpv6"}:
        return "ipv6-icmp"
    return str(ICMP_V6) if family == IPV6 and name == str(ICMP) else name


def _check_ports(name: str | None, first: int | None, last: int | None) -> None:
    if first is None and last is None:
        return
    if name is None:
        raise _refusal(
            "ProtocolRequiredWithPorts", "Must also specify protocol if port range is given."
        )
    number = security_rules.number(name)
    if number in PORT_NUMBERS:
        if 0 in (first, last):
            raise _bad_port(0)
        if first is None or last is None or first > last:
            raise _refusal(
                "InvalidPortRange",
                "For TCP/UDP protocols, port_range_min must be <= port_range_max",
            )
    elif number in (ICMP, ICMP_V6):
        _check_icmp(first, last)
    else:
        raise _refusal(
            "InvalidProtocolForPort",
            f"Ports cannot be specified for protocol {number}. Ports are only supported for "
            f"{', '.join(WITH_PORTS).upper()}.",
        )


def _check_icmp(kind: int | None, code: int | None) -> None:
    for attribute, what, value in (
        ("port_range_min", "type", kind),
        ("port_range_max", "code", code),
    ):
        if value is not None and value > 255:
            raise _refusal(
                "InvalidIcmpValue",
                f"Invalid value for ICMP {what} ({attribute}) {value}. It must be 0 to 255.",
            )
    if kind is None:
        raise _refusal(
            "MissingIcmpType",
            f"ICMP code (port-range-max) {code} is provided but ICMP type (port-range-min) is "
            "missing.",
        )


def _cidr(text: str | None, family: str) -> str | None:
    """Return a prefix without the bits of a host. Raises Invalid for one of another family."""
    if text is None:
        return None
    found = ipaddress.ip_interface(text)
    if family != f"IPv{found.version}":
        raise _refusal(
            "RuleParameterConflict", f"Conflicting value ethertype {family} for CIDR {text}"
        )
    return str(found.network)


def _bad_port(value: Any) -> Invalid:
    return _refusal("InvalidPortValue", f"Invalid value for port {str(value)[:_SHOWN]}")


def _refusal(kind: str, text: str) -> Invalid:
    return Invalid(text, type=f"SecurityGroup{kind}")
