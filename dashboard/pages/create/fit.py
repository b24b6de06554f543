"""Whether servers would fit: what the scheduler would decide, in few words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.story import Decided


@dataclass(frozen=True)
class Fit:
    """The decisions about all servers of a form."""

    fitting: int
    count: int
    places: str
    """How many would be where."""
    refused: Decided | None
    """The first that finds no host; further ones have the same cause."""
    how_many: str
    """How many more there is room for, by the last decision."""


def fit(decisions: Sequence[Decided]) -> Fit:
    """Return what the decisions come to."""
    placed = [one.host for one in decisions if one.host]
    hosts = sorted(Counter(placed).items())
    several = len(decisions) > 1
    return Fit(
        fitting=len(placed),
        count=len(decisions),
        places=", ".join(f"{count} on {host}" if several else host for host, count in hosts),
        refused=next((one for one in decisions if not one.host), None),
        how_many=decisions[-1].how_many if decisions else "",
    )
