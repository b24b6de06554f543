"""How little placement may be asked: a request that few hosts can have needs no others. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from common import hints
from common.aggregates import ZONE
from common.messages.scheduling import RequestSpec
from common.server_groups import Policy
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host import Host

#: a zone, and the aggregates that make it; none: the host says so of itself
_Zone = tuple[str, frozenset[str]]


@dataclass(frozen=True)
class Prefilter:
    """What else placement is asked, so that a limited answer has the hosts that matter."""

    provider: str | None = None
    """Only this one would do."""
    aggregates: frozenset[str] = frozenset()
    """Only those in one of them would; placement may not have been told of all yet."""


def prefilter(columns: HostColumns, request: RequestSpec) -> Prefilter:
    """What the request says of the hosts that it can have, where placement understands it."""
    for names in _named(request):
        if len(names) == 1:
            for _, position in columns.positions(names):
                return Prefilter(provider=columns.host(position).facts.uuid)
    return Prefilter(aggregates=_of_zone(columns, request.availability_zone))


def _named(request: RequestSpec) -> Iterator[frozenset[str]]:
    """Hosts outside of which the filters refuse everything, for each reason that there is."""
    if request.force_host is not None:
        yield frozenset({request.force_host})
    near = hints.servers(request.hints, hints.SAME_HOST)
    yield frozenset(request.server_hosts[one] for one in near if one in request.server_hosts)
    group = request.group
    if group is not None and group.policy == Policy.AFFINITY:
        yield frozenset(host for host, count in group.members.items() if count)


def _zone(host: Host) -> _Zone:
    made_by = host.memberships.aggregates if host.memberships.zone is not None else ()
    return host.zone, frozenset(one.uuid for one in made_by if one.metadata.get(ZONE) == host.zone)


def _of_zone(columns: HostColumns, zone: str | None) -> frozenset[str]:
    """The aggregates of a zone; none where hosts are in it by their own word too."""
    if zone is None:
        return frozenset()
    found = [made_by for name, made_by in columns.values(_zone) if name == zone]
    return frozenset().union(*found) if all(found) else frozenset()
