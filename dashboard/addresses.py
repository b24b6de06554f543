"""How many addresses of subnets are in use. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: of more, such as those of IPv6, nobody counts what is left
_COUNTED = 1 << 24
_ADDRESS = re.compile(r"[0-9]{1,3}(\.[0-9]{0,3}){1,3}|[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){2,7}")


@dataclass(frozen=True)
class Use:
    """Addresses of a subnet."""

    used: int
    total: int
    is_own: bool
    """Whether only those of the user's project are counted."""

    def __str__(self) -> str:
        """Return it in words.

        >>> str(Use(3, 253, False)), str(Use(3, 253, True)), str(Use(3, 1 << 64, False))
        ('3 of 253', '3 of yours, of 253', '3')
        """
        used = f"{self.used} of yours" if self.is_own else f"{self.used}"
        if self.total >= _COUNTED:
            return used
        return f"{used}, of {self.total}" if self.is_own else f"{used} of {self.total}"

    @property
    def percent(self) -> float | None:
        """Return which part is in use; None: nobody knows, or it is next to nothing."""
        if self.is_own or not 0 < self.total < _COUNTED:
            return None
        return min(100.0, 100 * self.used / self.total)


def counted(
    subnets: Iterable[Mapping[str, Any]], ports: Iterable[Mapping[str, Any]], own: Iterable[str]
) -> dict[str, Use]:
    """Return the use of subnets by ID, as far as ports show it.

    `own`: networks of the user's project, whose ports are all among these.
    """
    used = Counter(ip["subnet_id"] for port in ports for ip in port["fixed_ips"])
    known = set(own)
    return {
        one["id"]: Use(
            used[one["id"]], size(one["allocation_pools"]), one["network_id"] not in known
        )
        for one in subnets
    }


def reported(availabilities: Iterable[Mapping[str, Any]]) -> dict[str, Use]:
    """Return the use of subnets by ID, as the API reports it to administrators."""
    return {
        one["subnet_id"]: Use(one["used_ips"], one["total_ips"], is_own=False)
        for network in availabilities
        for one in network["subnet_ip_availability"]
    }


def size(pools: Sequence[Mapping[str, str]]) -> int:
    """Return how many addresses pools have.

    >>> size([{"start": "192.0.2.2", "end": "192.0.2.254"}])
    253
    """
    return sum(
        int(ipaddress.ip_address(one["end"])) - int(ipaddress.ip_address(one["start"])) + 1
        for one in pools
    )


def is_part(text: str) -> bool:
    """Return whether a text is an address, or the beginning of one.

    >>> is_part("192.0.2"), is_part("2001:db8::"), is_part("web.1"), is_part("192")
    (True, True, False, False)
    """
    return _ADDRESS.fullmatch(text) is not None


def is_whole(text: str) -> bool:
    """Return whether a text is an address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
