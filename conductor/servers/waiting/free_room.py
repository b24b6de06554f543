"""What hosts have free now."""

from __future__ import annotations

from collections.abc import Mapping

from common.errors import Invalid
from conductor.cloud import Cloud
from conductor.store.servers.waiting import Amounts

_DISABLED = "COMPUTE_STATUS_DISABLED"

#: provider → its free room
Room = Mapping[str, Amounts]


def now(cloud: Cloud, least: Amounts) -> Room:
    """Return the free room of each host that has at least ``least``. Raises Unavailable."""
    candidates = cloud.placement.candidates
    try:
        found = candidates(least, forbidden=[_DISABLED], limit=None)
    except Invalid:
        # Placement knows no such trait, as no host was ever disabled; or no such class.
        try:
            found = candidates(least, limit=None)
        except Invalid:
            return {}
    return {
        uuid: {
            name: int(usage.capacity[number]) - int(usage.used[number])
            for name, usage in found.usages.items()
        }
        for number, uuid in enumerate(found.uuids)
    }


def has_room(room: Room, needs: Amounts, count: int) -> bool:
    """Return whether ``count`` servers of this size would fit. Pure."""
    places = (
        min(free.get(name, 0) // amount for name, amount in needs.items())
        for free in room.values()
    )
    return sum(places) >= count if needs else True


def has_more(free: Amounts, before: Amounts | None) -> bool:
    """Return whether there is more of any class than before, where that is known. Pure."""
    return before is None or any(free.get(name, 0) > amount for name, amount in before.items())
