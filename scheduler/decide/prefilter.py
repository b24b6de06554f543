"""Pre-filter: conditions on hosts that placement can check, so that a limit cuts no host that
matters. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from common.messages.scheduling import RequestSpec
from common.resources import hints
from common.resources.aggregates import ZONE
from common.resources.server_groups import Policy
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host import Host

#: a zone, and the aggregates that make it; none: the host reports it
_Zone = tuple[str, frozenset[str]]


@dataclass(frozen=True)
class Prefilter:
    """Conditions that a request to placement has besides resources and traits."""

    provider: str | None = None
    """The only provider that would do."""
    aggregates: frozenset[str] = frozenset()
    """Only hosts in one of them would do; placement may not know all of them yet."""


def prefilter(columns: HostColumns, request: RequestSpec) -> Prefilter:
    """Return the conditions of a request that placement understands."""
    for names in _named(request):
        if len(names) == 1:
            for _, position in columns.positions(names):
                return Prefilter(provider=columns.host(position).facts.uuid)
    return Prefilter(aggregates=_of_zone(columns, request.availability_zone))


def _named(request: RequestSpec) -> Iterator[frozenset[str]]:
    """Yield sets of hosts; the filters refuse every host outside of any of them."""
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
    """Return the aggregates of a zone; none where hosts are in it by their own report too."""
    if zone is None:
        return frozenset()
    found = [made_by for name, made_by in columns.values(_zone) if name == zone]
    return frozenset().union(*found) if all(found) else frozenset()
