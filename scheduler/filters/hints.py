"""Filters by scheduler hints: near or far from other servers, or near an address.

The reasons name no host, as the owner of the server reads them.
"""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Iterable

import numpy as np

from common.counting import counted
from common.messages.scheduling import RequestSpec
from common.resources import hints
from scheduler.columnar.forms import by_facts, for_all_hosts, refusing
from scheduler.columnar.reasons import Codes
from scheduler.filters import host_filter
from scheduler.hosts.columns import HostColumns, Mask
from scheduler.hosts.host import Host


def _on(columns: HostColumns, request: RequestSpec, named: tuple[str, ...]) -> list[int]:
    """Return the positions of the hosts that have one of these servers."""
    there = {request.server_hosts[one] for one in named if one in request.server_hosts}
    return [position for _, position in columns.positions(there)]


def _others(columns: HostColumns, request: RequestSpec) -> Mask | None:
    named = hints.servers(request.hints, hints.SAME_HOST)
    if not named:
        return None
    refused = np.ones(len(columns), np.bool_)
    refused[_on(columns, request, named)] = False
    return refused


@host_filter(after="server_group_anti_affinity", words="no server of the hint same_host")
@refusing(_others, same_reason=for_all_hosts)
def same_host(host: Host, request: RequestSpec) -> str | None:
    """Refuse hosts that have none of the servers of the hint ``same_host``."""
    named = hints.servers(request.hints, hints.SAME_HOST)
    there = request.server_hosts
    if not named or any(there.get(one) == host.name for one in named):
        return None
    somewhere = sum(one in there for one in named)
    return f"no server of the hint same_host is here, {somewhere} of {len(named)} elsewhere"


def _theirs(columns: HostColumns, request: RequestSpec) -> Mask | None:
    positions = _on(columns, request, hints.servers(request.hints, hints.DIFFERENT_HOST))
    if not positions:
        return None
    refused = np.zeros(len(columns), np.bool_)
    refused[positions] = True
    return refused


def _how_many(columns: HostColumns, request: RequestSpec) -> Iterable[Codes]:
    named = hints.servers(request.hints, hints.DIFFERENT_HOST)
    found = np.zeros(len(columns), np.int64)
    for one in named:
        found[_on(columns, request, (one,))] += 1
    return [found]


@host_filter(after="same_host", words="a server of the hint different_host")
@refusing(_theirs, same_reason=_how_many)
def different_host(host: Host, request: RequestSpec) -> str | None:
    """Refuse hosts that have one of the servers of the hint ``different_host``."""
    named = hints.servers(request.hints, hints.DIFFERENT_HOST)
    here = sum(request.server_hosts.get(one) == host.name for one in named)
    return counted(here, *_APART) if here else None


_APART = (
    "server of the hint different_host is here",
    "servers of the hint different_host are here",
)


def _address(host: Host) -> str:
    return host.facts.host_ip


def _number(host: Host) -> float:
    address = _parsed(host.facts.host_ip)
    return int(address) if isinstance(address, ipaddress.IPv4Address) else -1


def _far(columns: HostColumns, request: RequestSpec) -> Mask | None:
    if not request.hints.get(hints.NEAR_IP):
        return None
    try:
        wanted = hints.near(request.hints)
    except ValueError:
        return np.ones(len(columns), np.bool_)
    if isinstance(wanted, ipaddress.IPv4Network):
        # Hardly two hosts have the same address: they are compared as numbers.
        numbers = columns.measure(_number)
        first, last = int(wanted.network_address), int(wanted.broadcast_address)
        outside: Mask = (numbers < first) | (numbers > last)
        return outside
    return columns.where(_address, lambda address: not _within(address, wanted))


def _is_known(host: Host) -> bool:
    return _parsed(host.facts.host_ip) is not None


@host_filter(after="different_host", words="another address than the hint asks")
@refusing(_far, same_reason=by_facts(_is_known))
def near_host_ip(host: Host, request: RequestSpec) -> str | None:
    """Refuse hosts whose address isn't in the network of ``build_near_host_ip`` and ``cidr``."""
    return _outside(host.facts.host_ip, request)


def _outside(address: str, request: RequestSpec) -> str | None:
    try:
        wanted = hints.near(request.hints)
    except ValueError as error:
        return f"the hints {hints.NEAR_IP} and {hints.CIDR} name no network: {error}"
    if wanted is None:
        return None
    if _parsed(address) is None:
        return f"its address is not known, one in {wanted} asked"
    return None if _within(address, wanted) else f"its address is not in {wanted}"


def _within(address: str, network: hints.Network | None) -> bool:
    there = _parsed(address)
    return network is None or (there is not None and there in network)


@functools.lru_cache(maxsize=65_536)
def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address; None for a name, or nothing."""
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        return None
