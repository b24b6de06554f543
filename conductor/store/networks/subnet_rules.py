"""What a subnet may be: its gateway, its allocation pools, its routes. Pure.

Neutron's rules and words (``_validate_subnet``, ``validate_allocation_pools``).
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from common.errors import Conflict, Invalid
from conductor.store.networks.addresses import Address, Network
from conductor.store.networks.segments import invalid_input

#: Neutron's max_dns_nameservers and max_subnet_host_routes
MOST_DNS, MOST_ROUTES = 5, 20
#: the least MTU of IPv6
LEAST_MTU_6 = 1280
Range = tuple[Address, Address]


def columns_of_new(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a new subnet.

    ``asked`` has ``cidr`` and ``ip_version`` and may have the other attributes of a subnet; a
    missing ``gateway_ip`` is chosen, None means none. Raises Invalid, Conflict.
    """
    network = _network(asked)
    gateway = asked["gateway_ip"] if "gateway_ip" in asked else _first_host(network)
    _check_gateway(network, gateway)
    _check_lists(asked, network.version)
    _check_modes(asked, network)
    found = {
        "cidr": str(network),
        "gateway_ip": gateway,
        "dns_nameservers": list(asked.get("dns_nameservers") or ()),
        "host_routes": [list(one) for one in asked.get("host_routes") or ()] or None,
        "enable_dhcp": asked.get("enable_dhcp", True),
        "ipv6_ra_mode": asked.get("ipv6_ra_mode"),
        "ipv6_address_mode": asked.get("ipv6_address_mode"),
    }
    pools = asked.get("allocation_pools")
    ranges = _around(network, gateway) if pools is None else _checked_pools(network, pools)
    _check_outside(gateway, ranges)
    return found | _pool_columns(network, ranges)


def columns_of_change(
    row: Any, pools: Sequence[Sequence[str]], asked: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the columns that change of a subnet's ``row``, whose pools are these.

    Raises Invalid, Conflict.
    """
    network = ipaddress.ip_network(row.cidr)
    _check_lists(asked, network.version)
    _check_dhcp(row, asked)
    found = {name: asked[name] for name in ("dns_nameservers", "enable_dhcp") if name in asked}
    if "host_routes" in asked:
        found["host_routes"] = [list(one) for one in asked["host_routes"]] or None
    gateway = asked.get("gateway_ip", row.gateway_ip)
    if "gateway_ip" in asked:
        _check_gateway(network, gateway)
        found["gateway_ip"] = gateway
    given = asked.get("allocation_pools")
    ranges = _ranges(pools) if given is None else _checked_pools(network, given)
    if given is not None or gateway != row.gateway_ip:
        _check_outside(gateway, ranges)
    return found if given is None else found | _pool_columns(network, ranges)


def overlaps(cidr: str, others: Iterable[str]) -> bool:
    """Return whether a network has addresses in common with one of the others."""
    network = ipaddress.ip_network(cidr)
    return any(
        network.version == other.version and network.overlaps(other)
        for other in map(ipaddress.ip_network, others)
    )


# --- inner


def _network(asked: Mapping[str, Any]) -> Network:
    network = ipaddress.ip_network(asked["cidr"])
    version = asked["ip_version"]
    _check_version(network.version, version, "cidr", str(network))
    if not network.prefixlen:
        raise invalid_input("0 is not allowed as CIDR prefix length")
    if version == 6 and not int(network.network_address):
        raise invalid_input("IPv6 subnet '::' is not supported")
    if asked.get("enable_dhcp", True):
        _check_dhcp_network(network)
    return network


def _check_dhcp_network(network: Network) -> None:
    if network.max_prefixlen - network.prefixlen < 2:
        raise invalid_input(
            "Subnet has a prefix length that is incompatible with DHCP service enabled"
        )
    if network.is_multicast:
        raise invalid_input("Multicast IP subnet is not supported if enable_dhcp is True")
    if network.is_loopback:
        raise invalid_input("Loopback IP subnet is not supported if enable_dhcp is True")
    if not int(network.network_address):
        raise invalid_input(
            "First IP '0.0.0.0' of network is not supported if enable_dhcp is True."
        )


def _check_dhcp(row: Any, asked: Mapping[str, Any]) -> None:
    if not asked.get("enable_dhcp", row.enable_dhcp):
        if row.ipv6_ra_mode or row.ipv6_address_mode:
            raise _modes_without_dhcp()
    elif not row.enable_dhcp:
        _check_dhcp_network(ipaddress.ip_network(row.cidr))


def _check_version(version: int, wanted: int, name: str, shown: str) -> None:
    if version != wanted:
        raise invalid_input(f"{name} '{shown}' does not match the ip_version '{wanted}'")


def _first_host(network: Network) -> str | None:
    return str(network[1]) if network.num_addresses > 1 else None


def _check_gateway(network: Network, gateway: str | None) -> None:
    if gateway is None:
        return
    address = ipaddress.ip_address(gateway)
    _check_version(address.version, network.version, "gateway_ip", gateway)
    ends = (network.network_address, network.broadcast_address)
    if network.version == 4 and address in ends:
        raise invalid_input("Gateway is not valid on subnet")


def _check_lists(asked: Mapping[str, Any], version: int) -> None:
    names = asked.get("dns_nameservers") or ()
    if len(names) > MOST_DNS:
        raise _too_many("DNS nameservers", MOST_DNS, "DNSNameServersExhausted")
    for one in names:
        _check_version(ipaddress.ip_address(one).version, version, "dns_nameserver", one)
    routes = asked.get("host_routes") or ()
    if len(routes) > MOST_ROUTES:
        raise _too_many("host routes", MOST_ROUTES, "HostRoutesExhausted")
    for destination, nexthop in routes:
        _check_version(ipaddress.ip_address(nexthop).version, version, "nexthop", nexthop)
        there = ipaddress.ip_network(destination)
        _check_version(there.version, version, "destination", destination)


def _too_many(what: str, most: int, kind: str) -> Invalid:
    return Invalid(
        f"Unable to complete operation for new subnet. The number of {what} exceeds the limit "
        f"{most}.",
        type=kind,
    )


def _check_modes(asked: Mapping[str, Any], network: Network) -> None:
    modes = {name: asked.get(name) for name in ("ipv6_ra_mode", "ipv6_address_mode")}
    given = [mode for mode in modes.values() if mode is not None]
    for name, mode in modes.items():
        if network.version == 4 and mode is not None:
            raise invalid_input(f"{name} is not valid when ip_version is 4")
    if not given:
        return
    if not asked.get("enable_dhcp", True):
        raise _modes_without_dhcp()
    if len(set(given)) > 1:
        raise invalid_input(
            f"ipv6_ra_mode set to '{modes['ipv6_ra_mode']}' with ipv6_address_mode set to "
            f"'{modes['ipv6_address_mode']}' is not valid. If both attributes are set, they must "
            "be the same value"
        )
    if given[0] != "dhcpv6-stateful" and network.prefixlen != 64:
        raise invalid_input(
            f"Invalid CIDR {network} for IPv6 address mode. OpenStack uses the EUI-64 address "
            "format, which requires the prefix to be /64"
        )


def _modes_without_dhcp() -> Invalid:
    return invalid_input(
        "ipv6_ra_mode or ipv6_address_mode cannot be set when enable_dhcp is set to False"
    )


def _ends(network: Network) -> Range:
    """Return the first and the last address that a pool may have."""
    if network.version == 6:
        return network[0 if network.num_addresses == 1 else 1], network[-1]
    return (network[1], network[-2]) if network.prefixlen <= 30 else (network[0], network[-1])


def _ranges(pools: Iterable[Sequence[str]]) -> list[Range]:
    return [(ipaddress.ip_address(first), ipaddress.ip_address(last)) for first, last in pools]


def _around(network: Network, gateway: str | None) -> list[Range]:
    """Return all addresses but the gateway's."""
    first, last = _ends(network)
    middle = None if gateway is None else ipaddress.ip_address(gateway)
    if middle is None or not int(first) <= int(middle) <= int(last):
        return [(first, last)]
    parts = [(first, middle - 1) if middle != first else None]
    parts.append((middle + 1, last) if middle != last else None)
    return [part for part in parts if part is not None]


def _checked_pools(network: Network, pools: Iterable[Sequence[str]]) -> list[Range]:
    lowest, highest = _ends(network)
    found = _ranges(pools)
    for first, last in found:
        fits = first.version == last.version == network.version
        if not fits or int(first) > int(last):
            raise Invalid(
                f"The allocation pool {first}-{last} is not valid.", type="InvalidAllocationPool"
            )
        if first < lowest or last > highest:  # type: ignore[operator]
            raise Invalid(
                f"The allocation pool {first}-{last} spans beyond the subnet cidr {network}.",
                type="OutOfBoundsAllocationPool",
            )
    found.sort(key=lambda one: int(one[0]))
    for one, other in itertools.pairwise(found):
        if int(other[0]) <= int(one[1]):
            raise Conflict(
                f"Found overlapping allocation pools: {one[0]}-{one[1]} {other[0]}-{other[1]} "
                f"for subnet {network}.",
                type="OverlappingAllocationPools",
            )
    return found


def _check_outside(gateway: str | None, ranges: Iterable[Range]) -> None:
    if gateway is None:
        return
    number = int(ipaddress.ip_address(gateway))
    for first, last in ranges:
        if int(first) <= number <= int(last):
            raise Conflict(
                f"Gateway ip {gateway} conflicts with allocation pool {first}-{last}.",
                type="GatewayConflictWithAllocationPools",
            )


def _pool_columns(network: Network, ranges: Sequence[Range]) -> dict[str, Any]:
    lowest, _ = _ends(network)
    first, last = (ranges[0][0], ranges[-1][1]) if ranges else (lowest, lowest)
    return {
        "pools": [[str(low), str(high)] for low, high in ranges],
        "pool_start": str(first),
        "pool_end": str(last),
        "next_ip": str(first),
    }
