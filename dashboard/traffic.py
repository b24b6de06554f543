"""Rules of security groups: in words that people use, and from the fields of a form. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.errors import Invalid
from common.resources.security_rules import (
    DIRECTIONS,
    ETHERTYPES,
    EVERYWHERE,
    INGRESS,
    IPV4,
    IPV6,
    PROTOCOLS,
    WITH_PORTS,
    number,
)
from dashboard.visit import as_number

Rule = Mapping[str, Any]


@dataclass(frozen=True)
class Service:
    """What a form offers by its name."""

    title: str
    protocol: str
    port: int
    """Of ICMP the type; of IPv6 `port_v6`."""
    port_v6: int = 0


SERVICES: Mapping[str, Service] = {
    "ssh": Service("SSH", "tcp", 22),
    "http": Service("HTTP", "tcp", 80),
    "https": Service("HTTPS", "tcp", 443),
    "rdp": Service("Remote desktop", "tcp", 3389),
    "ping": Service("Ping", "icmp", 8, 128),
}
EVERYTHING = "everything"
#: protocols of a form that are no service's; others have a number
OFFERED: Mapping[str, str] = {
    "tcp": "TCP",
    "udp": "UDP",
    "icmp": "ICMP",
    "sctp": "SCTP",
    "gre": "GRE",
    "esp": "ESP (IPsec)",
    "ah": "AH (IPsec)",
    "vrrp": "VRRP",
}
FAMILIES = ("both", *ETHERTYPES)
FIELDS = ("direction", "what", "ports", "remote", "group", "family", "description")
_ICMP = ("icmp", "ipv6-icmp", "icmpv6", "1", "58")


# --- in words


def what(rule: Rule) -> str:
    """Return what a rule allows.

    >>> what({"protocol": "tcp", "port_range_min": 22, "port_range_max": 22, "ethertype": "IPv4"})
    'SSH (TCP 22)'
    """
    protocol = rule["protocol"]
    if protocol in (None, "any"):
        return "everything"
    first, last = rule["port_range_min"], rule["port_range_max"]
    if protocol in _ICMP:
        return _icmp(rule, first, last)
    name = str(protocol).upper() if protocol in PROTOCOLS else f"protocol {protocol}"
    if first is None:
        return f"{name}, all ports" if protocol in WITH_PORTS else name
    if first != last:
        return f"{name} {first} to {last}"
    known = [
        one.title for one in SERVICES.values() if (one.protocol, one.port) == (protocol, first)
    ]
    return f"{known[0]} ({name} {first})" if known else f"{name} {first}"


def _icmp(rule: Rule, kind: int | None, code: int | None) -> str:
    ping = SERVICES["ping"]
    if kind is None:
        return "ICMP"
    if kind == (ping.port_v6 if rule["ethertype"] == IPV6 else ping.port):
        return ping.title
    return f"ICMP type {kind}" + ("" if code is None else f" code {code}")


def who(rule: Rule, groups: Mapping[str, str]) -> str:
    """Return from whom, or to whom, a rule allows it; `groups`: names by ID.

    >>> who({"remote_ip_prefix": "192.0.2.0/24"}, {})
    '192.0.2.0/24'
    """
    group = rule.get("remote_group_id")
    if group:
        return f"servers of {groups.get(group, group)}"
    addresses = rule.get("remote_address_group_id")
    if addresses:
        return f"address group {addresses}"
    prefix = rule.get("remote_ip_prefix")
    return "anyone" if not prefix or prefix in EVERYWHERE.values() else str(prefix)


def summary(rules: Iterable[Rule], direction: str, groups: Mapping[str, str]) -> Sequence[str]:
    """Return what rules of a direction allow, each thing once, whatever the family."""
    joint = "from" if direction == INGRESS else "to"
    said = (
        f"{what(one)} {joint} {who(one, groups)}"
        for one in sorted(rules, key=order)
        if one["direction"] == direction
    )
    return list(dict.fromkeys(said))


def order(rule: Rule) -> tuple[Any, ...]:
    """Return by what rules are sorted: a protocol's ports together, what allows all first."""
    protocol = rule["protocol"]
    kind = -1 if protocol == "any" else number(protocol)
    ports = rule["port_range_min"] or 0
    return (-1 if kind is None else kind, ports, who(rule, {}), rule["ethertype"])


# --- from a form


def wanted(given: Mapping[str, str], group_id: str) -> list[dict[str, Any]]:
    """Return the rules that a form asks for, as the API's bodies. Raises Invalid."""
    if given["direction"] not in DIRECTIONS:
        raise Invalid("A rule is for what comes in, or for what is sent out.")
    if given["remote"] and given["group"]:
        raise Invalid("Name an address or a group, not both.")
    base = {"security_group_id": group_id, "direction": given["direction"]}
    if given["description"]:
        base["description"] = given["description"]
    return [
        {**base, "ethertype": family, **_protocol(given, family), **_remote(given)}
        for family in _families(given)
    ]


def _families(given: Mapping[str, str]) -> Sequence[str]:
    """Return an address's own family, else those that are chosen."""
    if not given["remote"]:
        return (given["family"],) if given["family"] in ETHERTYPES else ETHERTYPES
    try:
        version = ipaddress.ip_interface(given["remote"]).version
    except ValueError:
        raise Invalid(
            f"{given['remote'][:80]} is no address: write 192.0.2.0/24 or 2001:db8::/32."
        ) from None
    return (IPV6 if version == 6 else IPV4,)


def _remote(given: Mapping[str, str]) -> dict[str, Any]:
    if given["group"]:
        return {"remote_group_id": given["group"]}
    return {"remote_ip_prefix": given["remote"]} if given["remote"] else {}


def _protocol(given: Mapping[str, str], family: str) -> dict[str, Any]:
    service = SERVICES.get(given["what"])
    if given["ports"] and (service or given["what"] == EVERYTHING):
        raise Invalid("Ports are for TCP, UDP and SCTP: choose one of these.")
    if given["what"] == EVERYTHING:
        return {}
    if service is None:
        return {"protocol": given["what"], **_ports(given["ports"])}
    port = service.port_v6 if service.port_v6 and family == IPV6 else service.port
    last = {} if service.port_v6 else {"port_range_max": port}
    return {"protocol": service.protocol, "port_range_min": port, **last}


def _ports(text: str) -> dict[str, Any]:
    """Return the ports that a text names; what is no number is left to the API to refuse."""
    if not text:
        return {}
    first, _, last = text.replace(" ", "").partition("-")
    return {"port_range_min": as_number(first), "port_range_max": as_number(last or first)}
