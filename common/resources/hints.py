"""Read scheduler hints that name other servers or an address. Pure.

As Nova's filters SameHost, DifferentHost and SimpleCIDRAffinity read them.
"""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Mapping
from typing import Any

SAME_HOST = "same_host"
DIFFERENT_HOST = "different_host"
NEAR_IP = "build_near_host_ip"
CIDR = "cidr"
#: seconds that a request may wait for room on a host; also a flavor's extra spec
WAIT = "micronova:wait"
#: whether all servers of a request are placed together or none is, whatever its ``min_count``
WAIT_ALL = "micronova:wait_all"
#: the cluster of Proxmox VE in which a server is created
CLUSTER = "micronova:cluster"
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
#: the size of the network around the address if the hint has none
_DEFAULT_CIDR = "/24"
_DIGITS = 9
_NAME_MOST = 255

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def servers(hints: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the UUIDs of the servers that a hint names: one, or a list."""
    values = hints.get(name) or ()
    return (values,) if isinstance(values, str) else tuple(values)


def all_servers(hints: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the UUIDs of all servers that the hints name."""
    if not hints:
        return ()
    return tuple(
        dict.fromkeys((*servers(hints, SAME_HOST), *servers(hints, DIFFERENT_HOST))),
    )


def near(hints: Mapping[str, Any]) -> Network | None:
    """Return the network that the host's address must be in; None: any. Raises ValueError."""
    address = hints.get(NEAR_IP)
    return _network(str(address), str(hints.get(CIDR) or _DEFAULT_CIDR)) if address else None


def wait_seconds(hints: Mapping[str, Any], extra_specs: Mapping[str, str]) -> int:
    """Return how many seconds a request may wait for room; 0: not at all. Raises ValueError.

    A hint counts more than what the flavor says.
    """
    asked = hints.get(WAIT, extra_specs.get(WAIT))
    if asked is None:
        return 0
    text = _one(asked)
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise ValueError(f"{WAIT} is a whole number of seconds, not {text[:40]!r}")
    return int(text)


def wait_all(hints: Mapping[str, Any]) -> bool:
    """Return whether a request's servers are placed all or none. Raises ValueError."""
    asked = hints.get(WAIT_ALL)
    if asked is None:
        return False
    text = _one(asked)
    if text.lower() not in _TRUTH:
        raise ValueError(f"{WAIT_ALL} is true or false, not {text[:40]!r}")
    return _TRUTH[text.lower()]


def cluster(hints: Mapping[str, Any]) -> str | None:
    """Return the cluster of Proxmox VE that is asked for; None: any. Raises ValueError."""
    asked = hints.get(CLUSTER)
    if asked is None:
        return None
    text = _one(asked)
    if isinstance(asked, dict) or not 0 < len(text) <= _NAME_MOST:
        raise ValueError(f"{CLUSTER} is the name of a cluster, not {text[:40]!r}")
    return text


def _one(asked: Any) -> str:
    """Return a hint's value, which clients may send as a list of one."""
    return str(asked[0] if isinstance(asked, list) and len(asked) == 1 else asked)


@functools.lru_cache(maxsize=256)
def _network(address: str, cidr: str) -> Network:
    return ipaddress.ip_network(f"{address}{cidr}", strict=False)
