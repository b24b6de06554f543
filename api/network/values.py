"""Values that clients set: each check returns the value as it is kept, or raises ValueError.

The reasons are those of neutron_lib/api/validators and converters.
"""

from __future__ import annotations

import ipaddress
import re
import uuid
from collections.abc import Callable
from typing import Any

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
        given = _boolean(value) if wanted and isinstance(wanted[0], bool) else value
        # 0 and False are equal in Python, and not in JSON.
        if not any(type(given) is type(one) and given == one for one in wanted):
            raise ValueError(why)
        return given

    return check


def _boolean(value: Any) -> bool:
    words = {"true": True, "1": True, "false": False, "0": False}
    if isinstance(value, bool):
        return value
    if str(value).lower() not in words or isinstance(value, float):
        raise ValueError(f"'{_shown(value)}' cannot be converted to boolean")
    return words[str(value).lower()]


def _shown(value: Any) -> str:
    shown = str(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
