"""How many more hosts of a kind would take all servers that wait for room. Pure.

Only room, availability zones and traits count; other filters are ignored.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from common.guest.requirements import requirements

#: resource class → amount, in a fixed order
_Amounts = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Kind:
    """Hosts that are alike in zone, capacity and traits."""

    like: str
    """One of them, by name."""
    zone: str
    capacity: Mapping[str, int]
    """Resource class → what may be allocated on an empty one."""
    hosts: int
    """How many there are."""
    traits: frozenset[str] = frozenset()
    """Only traits that a waiting server requires or forbids."""
    largest: Mapping[str, int] = field(default_factory=dict)
    """See ``Empty``."""


class Empty(Protocol):
    """What a host, or a kind of hosts, has for servers when it is empty."""

    @property
    def zone(self) -> str:
        """Return its availability zone."""

    @property
    def capacity(self) -> Mapping[str, int]:
        """Return what may be allocated: resource class → amount."""

    @property
    def traits(self) -> frozenset[str]:
        """Return its traits, at least all that a server requires or forbids."""

    @property
    def largest(self) -> Mapping[str, int]:
        """Return the most that a single server may have: the physical amount of each class.

        The capacity may be more, by the allocation ratio. A missing class has no such bound.
        """


class Host(NamedTuple):
    """A host when it is empty; see ``Empty``."""

    name: str
    zone: str
    capacity: Mapping[str, int]
    traits: frozenset[str] = frozenset()
    largest: Mapping[str, int] = MappingProxyType({})


class Wanted(NamedTuple):
    """What a server asks of its host."""

    needs: Mapping[str, int]
    """Resource class → amount."""
    zone: str | None
    """The zone that it must be in; None: any."""
    required: frozenset[str] = frozenset()
    """Traits."""
    forbidden: frozenset[str] = frozenset()

    def may_be_on(self, host: Empty) -> bool:
        """Return whether a host could take it if that were empty."""
        return (
            self.zone in (None, host.zone)
            and self.required <= host.traits
            and not self.forbidden & host.traits
            and holds(host.capacity, self.needs)
            and holds({**self.needs, **host.largest}, self.needs)
        )


def wanted_of(
    needs: Mapping[str, int],
    zone: str | None,
    flavor: Mapping[str, Any],
    properties: Mapping[str, str],
) -> Wanted:
    """Return what a build asks of its host, with the traits of its flavor and image."""
    asked = requirements(0, 0, 0, flavor.get("extra_specs") or {}, properties)
    return Wanted(needs, zone, asked.required, asked.forbidden)


def holds(room: Mapping[str, int], needs: Mapping[str, int]) -> bool:
    """Return whether the room has at least the needed amount of each class."""
    return all(room.get(name, 0) >= amount for name, amount in needs.items())


@dataclass(frozen=True)
class More:
    """How many hosts of a kind are missing, and for how many servers."""

    kind: Kind
    hosts: int
    """How many more would take all waiting servers that fit on an empty host of this kind."""
    takes: int
    """The number of those servers."""


def kinds(hosts: Iterable[Host], matter: frozenset[str] = frozenset()) -> list[Kind]:
    """Return the kinds of hosts, the most frequent first.

    ``matter``: traits that a server requires or forbids; kinds do not differ in others.
    """
    found: dict[tuple[str, frozenset[str], _Amounts, _Amounts], list[str]]
    found = collections.defaultdict(list)
    for one in hosts:
        amounts = tuple(sorted(one.capacity.items())), tuple(sorted(one.largest.items()))
        found[one.zone, one.traits & matter, *amounts].append(one.name)
    made = [
        Kind(min(names), zone, dict(capacity), len(names), traits, dict(largest))
        for (zone, traits, capacity, largest), names in found.items()
    ]
    return sorted(made, key=lambda one: (-one.hosts, one.like))


def more(kind: Kind, waiting: Iterable[Wanted]) -> More:
    """Return how many more hosts of a kind would take those that wait, the largest first."""
    asked = collections.Counter(
        tuple(sorted(one.needs.items())) for one in waiting if one.may_be_on(kind)
    )
    free: dict[_Amounts, int] = {}
    new = 0
    for needs, count in sorted(asked.items(), key=lambda one: -_share(kind, one[0])):
        rest = count - _place(free, needs, count)
        whole = _fit(kind.capacity, needs)
        new += -(-rest // whole)
        for number, times in ((whole, rest // whole), (rest % whole, 1)):
            if number and times:
                left = _without(kind.capacity, needs, number)
                free[left] = free.get(left, 0) + times
    return More(kind, new, asked.total())


def _place(free: dict[_Amounts, int], needs: _Amounts, count: int) -> int:
    """Place up to ``count`` servers on new hosts that have some already; return how many fit."""
    placed = 0
    for there in sorted(free):
        each = _fit(dict(there), needs)
        if not each or placed == count:
            continue
        times = min(free[there], (count - placed) // each)
        rest = count - placed - times * each
        used = [(each, times)]
        if times < free[there] and 0 < rest < each:
            used.append((rest, 1))
        for number, hosts in used:
            _move(free, there, _without(dict(there), needs, number), hosts)
            placed += number * hosts
    return placed


def _move(free: dict[_Amounts, int], before: _Amounts, after: _Amounts, hosts: int) -> None:
    if not hosts:
        return
    free[before] -= hosts
    if not free[before]:
        del free[before]
    free[after] = free.get(after, 0) + hosts


def _fit(capacity: Mapping[str, int], needs: _Amounts) -> int:
    """Return how many such servers fit on one host; for servers that need nothing: all."""
    parts = [capacity.get(name, 0) // amount for name, amount in needs if amount]
    return min(parts, default=2**31)


def _without(capacity: Mapping[str, int], needs: _Amounts, number: int) -> _Amounts:
    taken = dict(needs)
    return tuple(
        sorted((name, amount - number * taken.get(name, 0)) for name, amount in capacity.items())
    )


def _share(kind: Kind, needs: _Amounts) -> float:
    """Return the largest part of an empty host that a server takes."""
    return max((amount / kind.capacity[name] for name, amount in needs if amount), default=0.0)
