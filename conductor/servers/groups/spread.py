"""How members are spread over zones. Pure.

Where the zones that work differ by two members or more, one more member is created in the zone
that has the fewest; once it is ready, one of the crowded zone leaves.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence

from common.resources.groups import UNEVEN
from conductor.servers.groups.seen import Condition, condition
from conductor.store.groups.groups import Member


def zone(zones: Sequence[str], usable: Iterable[str], members: Sequence[Member]) -> str | None:
    """Return the zone that has the fewest of these members, the first of those; None: no zones.

    Zones without a host that works get none, unless all are like that.
    """
    found = counts(zones, members)
    there = [one for one in zones if one in usable] or list(zones)
    return min(there, key=lambda one: (found[one], zones.index(one)), default=None)


def counts(zones: Sequence[str], members: Iterable[Member]) -> Mapping[str, int]:
    """Return how many of these members have servers in each zone."""
    found = collections.Counter(
        one.pinned_zone for one in members if condition(one) != Condition.NONE
    )
    return {one: found[one] for one in zones}


def is_uneven(zones: Sequence[str], members: Iterable[Member]) -> bool:
    """Return whether a zone has too many members more than another one."""
    found = counts(zones, members).values()
    return len(found) > 1 and max(found) - min(found) >= UNEVEN
