"""What forms of ports and subnets say, as the API takes it, and the other way round. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Given = Mapping[str, str]
#: what stands for the first address of a subnet
FIRST = "first"
#: what an IPv6 subnet may say, when it is made, of how guests get their addresses
MODES = ("ipv6_ra_mode", "ipv6_address_mode")
_BETWEEN = re.compile(r"[\s,;]+")
_JOINS = ("to", "via")


def words(text: str) -> list[str]:
    """Return what blanks and commas separate.

    >>> words("192.0.2.1, 192.0.2.2")
    ['192.0.2.1', '192.0.2.2']
    """
    return [one for one in _BETWEEN.split(text) if one]


def _lines(text: str, first: str, second: str) -> list[dict[str, str]]:
    """Return a mapping for each line: the first word of it, and what else there is."""
    found = []
    for line in text.splitlines():
        parts = [one for one in line.split() if one not in _JOINS]
        if parts:
            found.append({first: parts[0], second: " ".join(parts[1:])})
    return found


def pools_of(text: str) -> list[dict[str, str]]:
    """Return the allocation pools of lines.

    >>> pools_of("192.0.2.9 to 192.0.2.20")
    [{'start': '192.0.2.9', 'end': '192.0.2.20'}]
    """
    return _lines(text.replace("-", " "), "start", "end")


def routes_of(text: str) -> list[dict[str, str]]:
    """Return the routes of lines.

    >>> routes_of("10.0.0.0/8 via 192.0.2.1")
    [{'destination': '10.0.0.0/8', 'nexthop': '192.0.2.1'}]
    """
    return _lines(text, "destination", "nexthop")


def pairs_of(text: str) -> list[dict[str, str]]:
    """Return address pairs: each line has an address or a range, and a MAC address if any.

    >>> pairs_of("192.0.2.7")
    [{'ip_address': '192.0.2.7'}]
    """
    found = _lines(text, "ip_address", "mac_address")
    return [{name: part for name, part in one.items() if part} for one in found]


def addresses_of(text: str, subnets: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return a port's addresses: of a line that is a subnet's prefix, any free one of the subnet.

    >>> addresses_of("192.0.2.7 198.51.100.0/24", [{"cidr": "198.51.100.0/24", "id": "s"}])
    [{'ip_address': '192.0.2.7'}, {'subnet_id': 's'}]
    """
    known = {one["cidr"]: one["id"] for one in subnets}
    return [
        {"subnet_id": known[one]} if one in known else {"ip_address": one} for one in words(text)
    ]


def shown_addresses(port: Mapping[str, Any]) -> str:
    """Return the lines of a port's addresses."""
    return "\n".join(one["ip_address"] for one in port["fixed_ips"])


def shown_pools(pools: Iterable[Mapping[str, str]]) -> str:
    """Return the lines of allocation pools."""
    return "\n".join(f"{one['start']} to {one['end']}" for one in pools)


def shown_routes(routes: Iterable[Mapping[str, str]]) -> str:
    """Return the lines of routes."""
    return "\n".join(f"{one['destination']} via {one['nexthop']}" for one in routes)


def shown_pairs(port: Mapping[str, Any]) -> str:
    """Return the lines of a port's address pairs, without the port's own MAC address."""
    pairs = port.get("allowed_address_pairs") or ()
    return "\n".join(
        one["ip_address"]
        + ("" if one["mac_address"] == port["mac_address"] else f" {one['mac_address']}")
        for one in pairs
    )


def new_subnet(given: Given, network_id: str) -> dict[str, Any]:
    """Return the body of a subnet that a form asks for."""
    body: dict[str, Any] = {
        "network_id": network_id,
        "cidr": given["cidr"],
        "ip_version": 6 if ":" in given["cidr"] else 4,
        **{name: value for name, value in edited_subnet(given).items() if value},
        "enable_dhcp": bool(given.get("dhcp")),
        "gateway_ip": given["gateway"] or None,
        **{name: given[name] for name in MODES if given.get(name)},
    }
    if given["gateway"] == FIRST:
        # what the API does where no gateway is given
        del body["gateway_ip"]
    return body


def edited_subnet(given: Given) -> dict[str, Any]:
    """Return what a form says of a subnet that can be changed later."""
    return {
        "name": given.get("name", ""),
        "gateway_ip": given["gateway"] or None,
        "dns_nameservers": words(given.get("servers", "")),
        "allocation_pools": pools_of(given.get("pools", "")),
        "host_routes": routes_of(given.get("routes", "")),
        "enable_dhcp": bool(given.get("dhcp")),
    }


def shown_subnet(subnet: Mapping[str, Any]) -> dict[str, str]:
    """Return a subnet as the fields of its form."""
    return {
        "name": subnet["name"],
        "cidr": subnet["cidr"],
        "gateway": subnet["gateway_ip"] or "",
        "servers": ", ".join(subnet["dns_nameservers"]),
        "pools": shown_pools(subnet["allocation_pools"]),
        "routes": shown_routes(subnet["host_routes"]),
        "dhcp": "1" if subnet["enable_dhcp"] else "",
        **{name: subnet.get(name) or "" for name in MODES},
    }


def new_port(given: Given, groups: Sequence[str] | None, network_id: str) -> dict[str, Any]:
    """Return the body of a port that a form asks for. `groups`: None where it isn't filtered."""
    address = {"subnet_id": given["subnet"], "ip_address": given["address"]}
    fixed = {name: text for name, text in address.items() if text}
    return {
        "network_id": network_id,
        "name": given["name"],
        "description": given["description"],
        **({"fixed_ips": [fixed]} if fixed else {}),
        **({"mac_address": given["mac"]} if given["mac"] else {}),
        **({} if groups is None else {"security_groups": list(groups)}),
    }


def changes(now: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is asked for and isn't so already."""
    return {name: value for name, value in asked.items() if value != now.get(name)}
