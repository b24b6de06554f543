"""Filters by place: zone, forced host, hosts that failed before, networks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from common.messages.scheduling import RequestSpec
from common.resources import hints
from scheduler.columnar.forms import by_facts, for_all_hosts, host_fact, refusing
from scheduler.columnar.reasons import Codes
from scheduler.filters import host_filter
from scheduler.hosts.columns import HostColumns, Mask
from scheduler.hosts.host import Host


def _zone(host: Host) -> str:
    return host.zone


@host_filter(after="retry", words="another zone")
@host_fact(_zone)
def availability_zone(zone: str, request: RequestSpec) -> str | None:
    """Refuse hosts of another zone than the one asked for."""
    wanted = request.availability_zone
    return None if wanted in (None, zone) else f"in zone {zone}, {wanted} asked"


def _cluster(host: Host) -> str:
    return host.facts.cluster


def _stays(request: RequestSpec) -> bool:
    """Return whether it is about a server that can't leave its cluster: a new one asks for one."""
    is_new = request.vm is None and hints.cluster(request.hints) == request.cluster
    return request.cluster is not None and not is_new


def _others(columns: HostColumns, request: RequestSpec) -> Mask | None:
    outside = None
    if request.cluster is not None:
        outside = ~columns.where(_cluster, lambda name: name == request.cluster)
    if request.force_host is None:
        return outside
    refused = np.ones(len(columns), np.bool_)
    refused[[position for _, position in columns.positions([request.force_host])]] = False
    return refused if outside is None else refused | outside


@host_filter(after="node_healthy", words="not the host that was asked for")
@refusing(_others, same_reason=by_facts(_cluster))
def forced_host(host: Host, request: RequestSpec) -> str | None:
    """Refuse all but the host that an administrator forced, and hosts of other clusters: for a
    server that moves, and for one whose hint names its cluster."""
    wanted = request.force_host
    if wanted is not None and host.name != wanted:
        return f"host {wanted} was asked for"
    if request.cluster not in (None, host.facts.cluster):
        if not _stays(request):
            return f"in cluster {host.facts.cluster}, {request.cluster} asked"
        return f"in cluster {host.facts.cluster}, the server can't leave {request.cluster}"
    return None


def _named(columns: HostColumns, names: Sequence[str]) -> Mask | None:
    if not names:
        return None
    refused = np.zeros(len(columns), np.bool_)
    refused[[position for _, position in columns.positions(names)]] = True
    return refused


def _tried(columns: HostColumns, request: RequestSpec) -> Mask | None:
    return _named(columns, request.ignore_hosts)


@host_filter(after="forced_host", words="an earlier attempt that failed")
@refusing(_tried, same_reason=for_all_hosts)
def retry(host: Host, request: RequestSpec) -> str | None:
    """Refuse hosts on which an earlier attempt failed, and the source host of a move."""
    if host.name not in request.ignore_hosts:
        return None
    if _stays(request):
        return "the server's own host, or a host that can't take it"
    return "an earlier attempt failed here"


def _kept(columns: HostColumns, request: RequestSpec) -> Mask | None:
    return _named(columns, request.kept_hosts)


@host_filter(after="retry", words="room that is kept for a server that waits longer")
@refusing(_kept, same_reason=for_all_hosts)
def kept_host(host: Host, request: RequestSpec) -> str | None:
    """Refuse hosts that are kept for servers that have waited long for room."""
    return "kept for a server that waits longer" if host.name in request.kept_hosts else None


def _bridges(host: Host) -> frozenset[str]:
    return frozenset(host.facts.bridges)


def _unreached(columns: HostColumns, request: RequestSpec) -> Mask | None:
    reached = [columns.having(_bridges, bridge) for bridge in dict.fromkeys(request.networks)]
    return ~np.logical_and.reduce(reached) if reached else None


def _unready(host: Host) -> frozenset[tuple[str, str]]:
    return frozenset(host.facts.unready_bridges.items())


def _missing(columns: HostColumns, request: RequestSpec) -> Iterable[Codes]:
    for bridge in dict.fromkeys(request.networks):
        yield columns.having(_bridges, bridge).astype(np.int64)
    yield columns.codes(_unready)


@host_filter(after="image_reach", words="not the network")
@refusing(_unreached, same_reason=_missing)
def network_reach(host: Host, request: RequestSpec) -> str | None:
    """Refuse nodes that lack a bridge, or a vnet, that the server needs."""
    bridges, unready = _bridges(host), host.facts.unready_bridges
    missing = [bridge for bridge in request.networks if bridge not in bridges]
    if not missing:
        return None
    vnets = [f"vnet {n} isn't on the node ({unready[n]})" for n in missing if n in unready]
    plain = [name for name in missing if name not in unready]
    return "; ".join(vnets + ([f"no bridge {', '.join(plain)} on the node"] if plain else []))
