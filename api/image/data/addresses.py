"""Where data may be downloaded from: hosts that the operator allows, at addresses of the Internet.

A name is resolved once, its addresses are checked, and the connection is made to one of them: a
DNS record that changes in between has no effect.
"""

from __future__ import annotations

import fnmatch
import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from common.errors import Invalid

_PORTS = {"http": 80, "https": 443}
_LONGEST = 2048

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Origin:
    """A host that data may come from."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True)
class Source:
    """The source of a download: an origin, and a target on it."""

    origin: Origin
    target: str
    """Path and query."""


def parse_pattern(text: str) -> Origin:
    """Return a pattern of hosts, ``scheme://host[:port]``. Raises ValueError."""
    parts = urlsplit(text)
    if parts.scheme not in _PORTS or not parts.hostname or parts.path.strip("/"):
        raise ValueError(f"{text} is not of the form https://host")
    return Origin(parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme])


def source(uri: str, allowed: Sequence[Origin]) -> Source:
    """Return what a URI names. Raises Invalid unless its host is among the allowed ones."""
    refused = Invalid(f"URI for web-download does not pass filtering: {uri[:_LONGEST]}")
    if len(uri) > _LONGEST or not uri.isascii() or not uri.isprintable() or " " in uri:
        raise refused
    try:
        parts = urlsplit(uri)
        port = parts.port or _PORTS[parts.scheme]
    except (KeyError, ValueError) as error:
        raise refused from error
    host = (parts.hostname or "").rstrip(".")
    if not host or parts.username is not None or parts.password is not None or "%" in host:
        raise refused
    found = Origin(parts.scheme, host, port)
    if not any(_matches(found, one) for one in allowed):
        raise refused
    query = f"?{parts.query}" if parts.query else ""
    return Source(found, f"{parts.path or '/'}{query}")


def _matches(found: Origin, pattern: Origin) -> bool:
    same = (found.scheme, found.port) == (pattern.scheme, pattern.port)
    return same and fnmatch.fnmatchcase(found.host, pattern.host)


def resolve(origin: Origin, networks: Sequence[Network]) -> list[str]:
    """Return the host's addresses that may be connected to. Raises Invalid if there is none."""
    try:
        found = socket.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Invalid(f"The host {origin.host} has no address.") from error
    every = [str(one[4][0]) for one in found]
    open_ones = [one for one in dict.fromkeys(every) if is_open(one, networks)]
    if not open_ones:
        raise Invalid(f"The addresses of {origin.host} may not be connected to.")
    return open_ones


def is_open(text: str, networks: Sequence[Network]) -> bool:
    """Return whether an address is one of the Internet, or of a network that is allowed."""
    try:
        address: Address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if any(address in network for network in networks):
        return True
    if isinstance(address, ipaddress.IPv6Address):
        embedded = address.sixtofour is not None or address.teredo is not None
        if embedded or address not in _UNICAST:
            return False
    return address.is_global and not address.is_multicast


#: the addresses that IPv6's Internet gives out; those of IPv4 in other clothes are elsewhere
_UNICAST = ipaddress.ip_network("2000::/3")
