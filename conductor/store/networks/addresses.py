"""Checks the address of a subnet that a create asks for. Pure.

As in Neutron: an address outside of all subnets is refused, and so are IPv4's network and
broadcast addresses and IPv6's subnet-router anycast address; without the right to choose freely
(``create_port:fixed_ips:ip_address``) it must be in the allocation pools.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from common.errors import Forbidden, Invalid

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Subnet(Protocol):
    """The columns of a subnet that are needed."""

    @property
    def cidr(self) -> str:
        """The network, e.g. ``10.0.0.0/24``."""

    @property
    def gateway_ip(self) -> str | None:
        """The router's address."""

    @property
    def pool_start(self) -> str:
        """First address of the allocation pool."""

    @property
    def pool_end(self) -> str:
        """Last address of the allocation pool."""

    @property
    def pools(self) -> Sequence[Sequence[str]] | None:
        """(first, last) of each allocation pool; None: the one from start to end."""


S = TypeVar("S", bound=Subnet)


def chosen(subnets: Sequence[S], asked: str, *, anywhere: bool) -> tuple[S, str]:
    """Return (subnet, normalised address) of a requested address.

    ``anywhere``: also outside of the pools. Raises Invalid for an address that no server can
    have, Forbidden for one outside of the pool.
    """
    invalid = Invalid(
        f"IP address {asked} is not a valid IP for any of the subnets on the specified network."
    )
    address = _parsed(asked)
    if address is None:
        raise invalid
    subnet = next((one for one in subnets if usable(address, _network(one.cidr))), None)
    if subnet is None:
        raise invalid
    if address == _parsed(subnet.gateway_ip):
        raise taken(asked)
    if not anywhere and not in_pools(address, subnet):
        raise Forbidden(
            "Policy doesn't allow create_port:fixed_ips:ip_address to be performed: "
            f"{asked} is not in the subnet's allocation pool."
        )
    return subnet, str(address)


def taken(asked: str) -> Invalid:
    """Return the error for an address in use, in Nova's words."""
    return Invalid(f"Fixed IP {asked} is already in use.")


def usable(address: Address, network: Network) -> bool:
    """Return whether a server may have the address, whatever the pool."""
    if address not in network or address == network.network_address:
        return False
    return address.version == 6 or address != network.broadcast_address


def pools_of(subnet: Subnet) -> list[tuple[str, str]]:
    """Return (first, last) of each allocation pool, in their order."""
    if subnet.pools is None:
        return [(subnet.pool_start, subnet.pool_end)]
    return [(first, last) for first, last in subnet.pools]


def in_pools(address: Address, subnet: Subnet) -> bool:
    """Return whether the address is in an allocation pool."""
    return any(_between(address, first, last) for first, last in pools_of(subnet))


def in_order(subnets: Iterable[S]) -> list[S]:
    """Return subnets in the order in which they give addresses: IPv4 before IPv6, lower first."""
    return sorted(subnets, key=_place)


def _place(subnet: Subnet) -> tuple[int, int]:
    network = _network(subnet.cidr)
    return network.version, int(network.network_address)


def _between(address: Address, first: str, last: str) -> bool:
    low, high = ipaddress.ip_address(first), ipaddress.ip_address(last)
    return address.version == low.version and int(low) <= int(address) <= int(high)


def _network(cidr: str) -> Network:
    return ipaddress.ip_network(cidr)


def _parsed(text: str | None) -> Address | None:
    """Return the address; None for no address, or one with a zone (another text of the same)."""
    try:
        address = ipaddress.ip_address(text or "")
    except ValueError:
        return None
    return None if getattr(address, "scope_id", None) else address
