"""Capacity and usage of each host by placement, as columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from placement.messages import Candidates

Rows = NDArray[np.int64]
Amounts = NDArray[np.int64]
NO_ROWS: Rows = np.empty(0, np.int64)
NO_TRAITS: frozenset[str] = frozenset()


@dataclasses.dataclass
class Usage:
    """Capacity and usage of one resource class, by host."""

    capacity: Amounts
    used: Amounts

    def of(self, positions: Rows) -> Usage:
        """Return a copy for some hosts."""
        return Usage(self.capacity[positions], self.used[positions])


@dataclasses.dataclass(frozen=True)
class TraitSets:
    """The traits of hosts: the different sets, and which of them each host has."""

    values: Sequence[frozenset[str]]
    codes: Rows

    @classmethod
    def by_host(cls, traits: Iterable[frozenset[str]]) -> TraitSets:
        """Return them for the traits of each host."""
        numbers: dict[frozenset[str], int] = {}
        codes = [numbers.setdefault(one, len(numbers)) for one in traits]
        return cls(list(numbers), np.array(codes, np.int64))

    @classmethod
    def unknown(cls, size: int) -> TraitSets:
        """Return them for hosts without traits."""
        return cls([NO_TRAITS], np.zeros(size, np.int64))

    def of(self, positions: Rows) -> TraitSets:
        """Return those of some hosts."""
        return TraitSets(self.values, self.codes[positions])


@dataclasses.dataclass(frozen=True)
class Counted:
    """Usage and traits of all hosts, by row."""

    offered: Rows
    """The hosts in placement's answers."""
    usages: Mapping[str, Usage]
    traits: TraitSets


def counted(answers: Sequence[Candidates], rows: Mapping[str, int], size: int) -> Counted:
    """Return the usage in placement's answers; ``rows`` are those of ``size`` hosts by UUID.

    Providers that are no known hosts are left out.
    """
    usages: dict[str, Usage] = {}
    sets = {NO_TRAITS: 0}
    codes = np.zeros(size, np.int64)
    offered = [NO_ROWS]
    for one in answers:
        numbers = np.array([rows.get(uuid, -1) for uuid in one.uuids], np.int64)
        there = numbers >= 0
        offered.append(numbers[there])
        for name, usage in one.usages.items():
            taken = usages.setdefault(
                name, Usage(np.zeros(size, np.int64), np.zeros(size, np.int64))
            )
            taken.capacity[numbers[there]] = np.array(usage.capacity, np.int64)[there]
            taken.used[numbers[there]] = np.array(usage.used, np.int64)[there]
        mine = np.array([sets.setdefault(traits, len(sets)) for traits in one.traits], np.int64)
        codes[numbers[there]] = mine[there]
    return Counted(np.unique(np.concatenate(offered)), usages, TraitSets(list(sets), codes))
