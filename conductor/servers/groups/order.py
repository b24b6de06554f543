"""Which members leave first. Pure."""

from __future__ import annotations

import collections
import random
from collections.abc import Collection, Sequence

from common.resources.groups import CLUSTERS, First
from conductor.store.groups.groups import Group, Member


def first(
    group: Group, criteria: First, members: Sequence[Member], working: Collection[str]
) -> list[Member]:
    """Return members in the order in which they leave: the sick, the crowded, then by age.

    ``working``: the IDs of those whose servers work.
    """
    hosts = collections.Counter(str(one.host) for one in members if one.host)
    zones = collections.Counter(str(one.availability_zone) for one in members if one.host)
    clusters = collections.Counter(_cluster(group, one) for one in members)
    shuffled = random.Random(group.id)  # noqa: S311 - the same after a crash
    age = {one.id: (one.server_created_at or one.created_at).timestamp() for one in members}

    def rank(one: Member) -> tuple[object, ...]:
        outdated = one.profile_id != group.profile_id
        by = {
            First.OLDEST: age[one.id],
            First.YOUNGEST: -age[one.id],
            First.OLDEST_PROFILE: age[one.id],
            First.RANDOM: shuffled.random(),
        }[criteria]
        old = not outdated if criteria == First.OLDEST_PROFILE else False
        wide = (-zones[str(one.availability_zone)], -clusters[_cluster(group, one)])
        crowd = (*wide, -hosts[str(one.host)])
        return (one.id in working, old, *crowd, by, one.member_index)

    left = sorted(members, key=lambda one: one.member_index or 0)
    found: list[Member] = []
    while left:
        found.append(min(left, key=rank))
        left.remove(found[-1])
        hosts[str(found[-1].host)] -= 1
        zones[str(found[-1].availability_zone)] -= 1
        clusters[_cluster(group, found[-1])] -= 1
    return found


def _cluster(group: Group, member: Member) -> str:
    """Return a member's cluster, if its group is spread over clusters; else an empty string."""
    return str(member.cluster) if group.config.get(CLUSTERS) else ""
