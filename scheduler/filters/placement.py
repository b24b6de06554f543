"""Where may the server go: zone, forced host, hosts that failed before, networks."""

from __future__ import annotations

import numpy as np

from common.messages.scheduling import Requested
from scheduler.columnar import by, refusing
from scheduler.fleet import Fleet, Mask
from scheduler.hosts import Host


def _zone(host: Host) -> str:
    return host.zone


def _bridges(host: Host) -> tuple[str, ...]:
    return host.facts.bridges


@by(_zone)
def availability_zone(zone: str, request: Requested) -> str | None:
    """Refuse hosts of another zone than the one asked for."""
    wanted = request.availability_zone
    return None if wanted in (None, zone) else f"in zone {zone}, {wanted} asked"


def _others(fleet: Fleet, request: Requested) -> Mask | None:
    if request.force_host is None:
        return None
    refused = np.ones(len(fleet), np.bool_)
    refused[[position for _, position in fleet.positions([request.force_host])]] = False
    return refused


@refusing(_others)
def forced_host(host: Host, request: Requested) -> str | None:
    """Refuse all but the host that an administrator forced."""
    wanted = request.force_host
    if wanted is None or host.name == wanted:
        return None
    return f"host {wanted} was asked for"


def _tried(fleet: Fleet, request: Requested) -> Mask | None:
    if not request.ignore_hosts:
        return None
    refused = np.zeros(len(fleet), np.bool_)
    refused[[position for _, position in fleet.positions(request.ignore_hosts)]] = True
    return refused


@refusing(_tried)
def retry(host: Host, request: Requested) -> str | None:
    """Refuse hosts on which an earlier attempt failed."""
    return "an earlier attempt failed here" if host.name in request.ignore_hosts else None


@by(_bridges)
def network_reach(bridges: tuple[str, ...], request: Requested) -> str | None:
    """Refuse nodes that lack a bridge that the server needs."""
    missing = [bridge for bridge in request.networks if bridge not in bridges]
    return f"no bridge {', '.join(missing)} on the node" if missing else None
