"""Capacity and usage of each host by placement, as columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

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
class Counted:
    """Usage and traits of all hosts, by row."""

    offered: Rows
    """The hosts in placement's answers."""
    usages: Mapping[str, Usage]
    traits: Sequence[frozenset[str]]


def counted(answers: Sequence[Candidates], rows: Mapping[str, int], size: int) -> Counted:
    """Return the usage in placement's answers; ``rows`` are those of ``size`` hosts by UUID.

    Providers that are no known hosts are left out.
    """
    usages: dict[str, Usage] = {}
    traits = [NO_TRAITS] * size
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
        for row, mine in zip(numbers.tolist(), one.traits, strict=True):
            if row >= 0:
                traits[row] = mine
    return Counted(np.unique(np.concatenate(offered)), usages, traits)
