"""How members are spread over zones, or over clusters of Proxmox VE. Pure.

Where the zones that work differ by two members or more, one more member is created in the zone
that has the fewest; once it is ready, one of the crowded zone leaves. Clusters are the same in a
group that names no zones; where a group names both, they decide within a new member's zone.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from common.resources.groups import UNEVEN
from conductor.servers.groups.seen import Condition, condition
from conductor.store.groups.groups import Member

Place = Callable[[Member], str | None]


def by_zone(member: Member) -> str | None:
    """Return the zone of a member's server."""
    return member.pinned_zone


def by_cluster(member: Member) -> str | None:
    """Return the cluster of a member's server."""
    return member.cluster


def fewest(
    names: Sequence[str], usable: Collection[str], members: Iterable[Member], of: Place
) -> str | None:
    """Return the place that has the fewest of these members, the first of those; None: no places.

    Places without a host that works get none, unless all are like that.
    """
    found = counts(names, members, of)
    there = [one for one in names if one in usable] or list(names)
    return min(there, key=lambda one: (found[one], names.index(one)), default=None)


def counts(names: Sequence[str], members: Iterable[Member], of: Place) -> Mapping[str, int]:
    """Return how many of these members have servers in each place."""
    found = collections.Counter(of(one) for one in members if condition(one) != Condition.NONE)
    return {one: found[one] for one in names}


def is_uneven(names: Sequence[str], members: Iterable[Member], of: Place) -> bool:
    """Return whether a place has too many members more than another one."""
    found = counts(names, members, of).values()
    return len(found) > 1 and max(found) - min(found) >= UNEVEN


def clusters_in(works: Iterable[tuple[str, str]], zones: Collection[str | None]) -> frozenset[str]:
    """Return the clusters with a host that works in each of these zones; None: in any.

    ``works``: (zone, cluster) of hosts that work.
    """
    pairs = set(works)
    everywhere = frozenset(cluster for _, cluster in pairs)
    return frozenset(
        one for one in everywhere if all(zone is None or (zone, one) in pairs for zone in zones)
    )
