"""Server groups: policies, and what a scheduler is told of a server's group."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

MAX_PER_HOST = "max_server_per_host"
"""The one rule there is, of anti-affinity."""


class Policy(enum.StrEnum):
    """How the servers of a group share hosts; Nova's names."""

    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"
    SOFT_AFFINITY = "soft-affinity"
    SOFT_ANTI_AFFINITY = "soft-anti-affinity"


SOFT = {
    Policy.AFFINITY: Policy.SOFT_AFFINITY,
    Policy.ANTI_AFFINITY: Policy.SOFT_ANTI_AFFINITY,
}
"""The wish that a strict policy would be."""

STRICT = frozenset(SOFT)
"""Held by a constraint of the database; the others are wishes."""


@dataclass(frozen=True)
class GroupFacts:
    """A server's group, as it is when a host is looked for."""

    uuid: str
    policy: str
    max_per_host: int = 1
    """Of anti-affinity: so many of its servers may be on one host."""
    members: Mapping[str, int] = field(default_factory=dict)
    """{host: how many servers of the group it has}."""

    def with_members(self, further: Mapping[str, int]) -> GroupFacts:
        """The group as it would be with these servers too, {host: how many}."""
        sums = Counter(self.members)
        sums.update(further)
        return replace(self, members=dict(sums))

    def less_one(self, host: str) -> GroupFacts:
        """The group as it would be without one of its servers on a host."""
        rest = {**self.members, host: self.members.get(host, 0) - 1}
        return replace(self, members={name: count for name, count in rest.items() if count > 0})

    def without(self, host: str) -> GroupFacts:
        """The group as it would be if a host had none of its servers."""
        rest = {name: number for name, number in self.members.items() if name != host}
        return replace(self, members=rest)


def taken(policy: str, max_per_host: int, host: str, members: Mapping[str, int]) -> str | None:
    """Why a strict policy keeps a further server from a host, or None.

    ``members`` is {host: how many servers of the group it has}. Names no other host, as the
    owner of the server reads it.
    """
    if policy == Policy.ANTI_AFFINITY and members.get(host, 0) >= max_per_host:
        return (
            f"{members[host]} servers of its anti-affinity group are here, {max_per_host} allowed"
        )
    if policy == Policy.AFFINITY and members and host not in members:
        return "the servers of its affinity group are on another host"
    return None
