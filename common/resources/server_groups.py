"""Server groups: policies, and the facts of a group that schedulers need."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from common.counting import counted

MAX_PER_HOST = "max_server_per_host"
"""The only rule, of anti-affinity."""


class Policy(enum.StrEnum):
    """How the servers of a group share hosts, under Nova's names."""

    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"
    SOFT_AFFINITY = "soft-affinity"
    SOFT_ANTI_AFFINITY = "soft-anti-affinity"


SOFT = {
    Policy.AFFINITY: Policy.SOFT_AFFINITY,
    Policy.ANTI_AFFINITY: Policy.SOFT_ANTI_AFFINITY,
}
"""The soft policy of each strict one."""

STRICT = frozenset(SOFT)
"""Policies enforced by a database constraint; the others are soft."""


@dataclass(frozen=True)
class GroupFacts:
    """A server's group at the time of scheduling."""

    uuid: str
    policy: str
    max_per_host: int = 1
    """For anti-affinity: how many of its servers one host may have."""
    members: Mapping[str, int] = field(default_factory=dict)
    """{host: how many servers of the group it has}."""

    def with_members(self, further: Mapping[str, int]) -> GroupFacts:
        """Return the group with these servers added, {host: how many}."""
        sums = Counter(self.members)
        sums.update(further)
        return replace(self, members=dict(sums))

    def less_one(self, host: str) -> GroupFacts:
        """Return the group without one of its servers on a host."""
        rest = {**self.members, host: self.members.get(host, 0) - 1}
        return replace(self, members={name: count for name, count in rest.items() if count > 0})

    def without(self, host: str) -> GroupFacts:
        """Return the group without its servers on a host."""
        rest = {name: number for name, number in self.members.items() if name != host}
        return replace(self, members=rest)


_OF_GROUP = (
    "server of its anti-affinity group is",
    "servers of its anti-affinity group are",
)


def taken(policy: str, max_per_host: int, host: str, members: Mapping[str, int]) -> str | None:
    """Return why a strict policy refuses another server on a host, or None.

    ``members`` is {host: how many servers of the group it has}. Names no other host, as the
    server's owner reads it.
    """
    if policy == Policy.ANTI_AFFINITY and members.get(host, 0) >= max_per_host:
        there = counted(members[host], *_OF_GROUP)
        return f"{there} here, {max_per_host} allowed"
    if policy == Policy.AFFINITY and members and host not in members:
        return "the servers of its affinity group are on another host"
    return None
