"""Values that clients set: each check returns the value as it is kept, or raises ValueError.

The reasons are those of neutron_lib/api/validators and converters.
"""

from __future__ import annotations

import ipaddress
import re
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from common import digits
from common.errors import Invalid
from conductor.rpc.networks.ports import AddressPair, FixedIp

_MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", re.ASCII)
LONGEST_TAG = 255
MOST_PAIRS = 10
"""Neutron's max_allowed_address_pair."""
_SHOWN = 255
"""The maximum length of a value in a reason."""


def text(longest: int) -> Callable[[Any], str]:
    """Return the check of a text of so many characters."""

    def check(value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError(f"'{_shown(value)}' is not a valid string")
        if len(value) > longest:
            raise ValueError(f"'{_shown(value)}' exceeds maximum length of {longest}")
        return value

    return check


def an_id(value: Any) -> str:
    """Check a UUID."""
    try:
        if isinstance(value, str) and len(value) in (32, 36):
            return str(uuid.UUID(value))
    except ValueError:
        pass
    raise ValueError(f"'{_shown(value)}' is not a valid UUID")


def mac(value: Any) -> str | None:
    """Check a MAC address that a machine may have; None: any."""
    if value is None:
        return None
    found = str(value).lower().replace("-", ":")
    # A group's address, or none.
    if not _MAC.fullmatch(found) or int(found[:2], 16) & 1 or found == "00:00:00:00:00:00":
        raise ValueError(f"'{_shown(value)}' is not a valid MAC address")
    return found


def fixed_ips(value: Any) -> tuple[FixedIp, ...] | None:
    """Check a port's addresses; None: it gets them by itself."""
    if value is None:
        return None
    if not isinstance(value, list):
        raise ValueError(f"Invalid data format for fixed IP: '{_shown(value)}'")
    found = tuple(_fixed_ip(one) for one in value)
    addresses = [one.ip_address for one in found if one.ip_address is not None]
    for number, address in enumerate(addresses):
        if address in addresses[:number]:
            raise ValueError(f"Duplicate IP address '{address}'")
    return found


def _fixed_ip(value: Any) -> FixedIp:
    if not isinstance(value, dict) or not value.keys() <= {"subnet_id", "ip_address"}:
        raise ValueError(f"Invalid data format for fixed IP: '{_shown(value)}'")
    subnet_id, address = value.get("subnet_id"), value.get("ip_address")
    if subnet_id is None and address is None:
        raise ValueError("IP allocation requires subnet_id or ip_address")
    return FixedIp(
        None if subnet_id is None else an_id(subnet_id),
        None if address is None else ip_address(address),
    )


def ip_address(value: Any) -> str:
    """Check an IP address, without a zone."""
    try:
        if isinstance(value, str) and "%" not in value:
            return str(ipaddress.ip_address(value))
    except ValueError:
        pass
    raise ValueError(f"'{_shown(value)}' is not a valid IP address")


def tags(value: Any) -> tuple[str, ...]:
    """Check a list of different tags."""
    if not isinstance(value, list):
        raise ValueError(f"'{_shown(value)}' is not a list")
    check = text(LONGEST_TAG)
    found = tuple(check(one) for one in value)
    if len(set(found)) != len(found):
        raise ValueError(f"Duplicate items in the list: '{_shown(', '.join(found))}'")
    return found


def ids(value: Any) -> tuple[str, ...]:
    """Check a list of different UUIDs; None: none."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ValueError(f"'{_shown(value)}' is not a list")
    found = tuple(an_id(one) for one in value)
    if len(set(found)) != len(found):
        raise ValueError(f"Duplicate items in the list: '{_shown(', '.join(found))}'")
    return found


def address_pairs(value: Any) -> tuple[AddressPair, ...]:
    """Check a list of different pairs (neutron_lib/api/validators/allowedaddresspairs.py).

    Raises Invalid where Neutron has an error of its own.
    """
    if value is None:
        return ()
    if not isinstance(value, list):
        raise Invalid("Allowed address pairs must be a list.")
    if len(value) > MOST_PAIRS:
        raise Invalid(
            f"The number of allowed address pair exceeds the maximum {MOST_PAIRS}.",
            type="AllowedAddressPairExhausted",
        )
    found = tuple(_address_pair(one) for one in value)
    for number, one in enumerate(found):
        if one in found[:number]:
            raise Invalid(
                "Invalid input for operation: Request contains duplicate address pair: "
                f"mac_address {one.mac_address} ip_address {one.ip_address}.",
                type="DuplicateAddressPairInRequest",
            )
    return found


def _address_pair(value: Any) -> AddressPair:
    if not isinstance(value, dict):
        raise ValueError(f"'{_shown(value)}' is not a dictionary")
    if value.get("ip_address") is None:
        raise Invalid(
            "AllowedAddressPair must contain ip_address", type="AllowedAddressPairsMissingIP"
        )
    unknown = value.keys() - {"ip_address", "mac_address"}
    if unknown:
        raise Invalid(f"Unrecognized attribute(s) '{_shown(', '.join(sorted(unknown)))}'")
    return AddressPair(_range(value["ip_address"]), mac(value.get("mac_address")))


def _range(value: Any) -> str:
    """Check an address or a range of them, none of them a group's."""
    if not isinstance(value, str) or "/" not in value:
        found = ip_address(value)
        multicast = ipaddress.ip_address(found).is_multicast
    else:
        try:
            parsed = ipaddress.ip_network("" if "%" in value else value)
        except ValueError as error:
            raise ValueError(f"'{_shown(value)}' is not a valid IP subnet") from error
        found, multicast = str(parsed), parsed.is_multicast
    if multicast:
        raise ValueError(f"'{_shown(value)}' is a multicast IP address")
    return found


def only(*wanted: Any, why: str) -> Callable[[Any], Any]:
    """Return the check of an attribute that can have these values alone."""

    def check(value: Any) -> Any:
        given = boolean(value) if wanted and isinstance(wanted[0], bool) else value
        # 0 and False are equal in Python, and not in JSON.
        if not any(type(given) is type(one) and given == one for one in wanted):
            raise ValueError(why)
        return given

    return check


def boolean(value: Any) -> bool:
    """Check a truth value, which may be a word or a number."""
    words = {"true": True, "1": True, "false": False, "0": False}
    if isinstance(value, bool):
        return value
    if str(value).lower() not in words or isinstance(value, float):
        raise ValueError(f"'{_shown(value)}' cannot be converted to boolean")
    return words[str(value).lower()]


def integer(least: int, most: int) -> Callable[[Any], int]:
    """Return the check of a number from ``least`` to ``most``."""

    def check(value: Any) -> int:
        number = digits.integer(value) if isinstance(value, str) else value
        if not isinstance(number, int) or isinstance(value, bool):
            raise ValueError(f"'{_shown(value)}' is not an integer")
        if not least <= number <= most:
            raise ValueError(f"'{_shown(value)}' is not from {least} to {most}")
        return number

    return check


def maybe(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a check that takes None, too."""
    return lambda value: None if value is None else check(value)


def one_of(*wanted: Any) -> Callable[[Any], Any]:
    """Return the check of a value that is one of these."""

    def check(value: Any) -> Any:
        if not any(type(value) is type(one) and value == one for one in wanted):
            raise ValueError(f"'{_shown(value)}' is not in {list(wanted)}")
        return value

    return check


def texts(value: Any) -> tuple[str, ...]:
    """Check a list of short texts."""
    check = text(255)
    return tuple(check(one) for one in _list(value))


def cidr(value: Any) -> str:
    """Check a network with its prefix length; bits of a host are dropped."""
    try:
        if isinstance(value, str) and "/" in value and "%" not in value:
            return str(ipaddress.ip_network(value, strict=False))
    except ValueError:
        pass
    raise ValueError(f"'{_shown(value)}' is not a valid IP subnet")


def ip_pools(value: Any) -> list[list[str]]:
    """Check allocation pools; return [first, last] of each."""
    return [_pair(one, ("start", "end"), "IP pool", ip_address) for one in _list(value)]


def nameservers(value: Any) -> list[str]:
    """Check name servers; None: none."""
    return _different([ip_address(one) for one in _list(value or [])], "nameserver")


def host_routes(value: Any) -> list[list[str]]:
    """Check routes; return [destination, next hop] of each. None: none."""
    found = [
        _pair(one, ("destination", "nexthop"), "hostroute", cidr) for one in _list(value or [])
    ]
    return _different(found, "hostroute")


def _pair(value: Any, names: tuple[str, str], what: str, first: Callable[[Any], str]) -> list[str]:
    if not isinstance(value, dict) or value.keys() != set(names):
        raise ValueError(f"Invalid data format for {what}: '{_shown(value)}'")
    return [first(value[names[0]]), ip_address(value[names[1]])]


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"'{_shown(value)}' is not a list")
    return value


_T = TypeVar("_T")


def _different(found: list[_T], what: str) -> list[_T]:
    for number, one in enumerate(found):
        if one in found[:number]:
            raise ValueError(f"Duplicate {what} '{_shown(one)}'")
    return found


def _shown(value: Any) -> str:
    shown = str(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
