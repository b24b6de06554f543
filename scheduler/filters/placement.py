"""Where may the server go: zone, forced host, hosts that failed before, networks."""

from __future__ import annotations

from common.messages.scheduling import Requested
from scheduler.hosts import Host


def availability_zone(host: Host, request: Requested) -> str | None:
    """Refuse hosts of another zone than the one asked for."""
    wanted = request.availability_zone
    if wanted is None or host.zone == wanted:
        return None
    return f"in zone {host.zone}, {wanted} asked"


def forced_host(host: Host, request: Requested) -> str | None:
    """Refuse all but the host that an administrator forced."""
    wanted = request.force_host
    if wanted is None or host.name == wanted:
        return None
    return f"host {wanted} was asked for"


def retry(host: Host, request: Requested) -> str | None:
    """Refuse hosts on which an earlier attempt failed."""
    return "an earlier attempt failed here" if host.name in request.ignore_hosts else None


def network_reach(host: Host, request: Requested) -> str | None:
    """Refuse nodes that lack a bridge that the server needs."""
    missing = [bridge for bridge in request.networks if bridge not in host.facts.bridges]
    return f"no bridge {', '.join(missing)} on the node" if missing else None
