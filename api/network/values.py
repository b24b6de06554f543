"""Values that clients set: each check returns the value as it is kept, or raises ValueError.

The reasons are those of neutron_lib/api/validators and converters.
"""

from __future__ import annotations

import ipaddress
import re
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from conductor.messages import FixedIp

_MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", re.ASCII)
LONGEST_TAG = 255
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
    """Check a port's addresses; None: it gets one by itself. It can have one here."""
    if value is None:
        return None
    if not isinstance(value, list):
        raise ValueError(f"Invalid data format for fixed IP: '{_shown(value)}'")
    if len(value) > 1:
        raise ValueError("Exceeded maximum amount of fixed ips per port")
    return tuple(_fixed_ip(one) for one in value)


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
        try:
            number = int(value) if isinstance(value, str | int) else None
        except ValueError:
            number = None
        if number is None or isinstance(value, bool):
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
