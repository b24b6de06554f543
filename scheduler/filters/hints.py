"""What the creator of a server hints of its host: near or far from other servers, or addresses.

The reasons name no host, as the owner of the server reads them.
"""

from __future__ import annotations

import ipaddress

from common import hints
from common.messages.scheduling import Requested
from scheduler.columnar import when
from scheduler.hosts import Host


@when(lambda request: request.hints)
def same_host(host: Host, request: Requested) -> str | None:
    """Refuse hosts that have none of the servers of the hint ``same_host``."""
    named = hints.servers(request.hints, hints.SAME_HOST)
    there = request.server_hosts
    if not named or any(there.get(one) == host.name for one in named):
        return None
    somewhere = sum(one in there for one in named)
    return (
        f"0 of the {len(named)} servers of the hint same_host are here, "
        f"{somewhere} are on other hosts"
    )


@when(lambda request: request.hints)
def different_host(host: Host, request: Requested) -> str | None:
    """Refuse hosts that have one of the servers of the hint ``different_host``."""
    named = hints.servers(request.hints, hints.DIFFERENT_HOST)
    here = sum(request.server_hosts.get(one) == host.name for one in named)
    return (
        f"{here} of the {len(named)} servers of the hint different_host are here" if here else None
    )


@when(lambda request: request.hints)
def near_host_ip(host: Host, request: Requested) -> str | None:
    """Refuse hosts whose address isn't in the network of ``build_near_host_ip`` and ``cidr``."""
    if hints.NEAR_IP not in request.hints:
        return None
    try:
        wanted = hints.near(request.hints)
    except ValueError as error:
        return f"the hints {hints.NEAR_IP} and {hints.CIDR} name no network: {error}"
    if wanted is None:
        return None
    if not host.facts.host_ip:
        return f"its address is not known, one in {wanted} asked"
    if ipaddress.ip_address(host.facts.host_ip) in wanted:
        return None
    return f"its address is not in {wanted}"
