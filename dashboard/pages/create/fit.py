"""Whether servers would fit: what the scheduler would decide, in few words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Room:
    """What those read who see no hosts."""

    fits: bool
    text: str


def room(answer: Mapping[str, Any]) -> Room:
    """Return whether all servers would have a host, and what kind of reason is in the way.

    >>> room({"fit": {"fits": False, "servers": 1, "lacks_room": True, "refused_by": []}}).text
    'Not now: no host has room for it.'
    """
    found = answer["fit"]
    several = found["servers"] > 1
    if found["fits"]:
        return Room(True, f"Yes, there is room for {'all of them' if several else 'it'} now.")
    if found["lacks_room"]:
        what = f"all {found['servers']}" if several else "it"
        return Room(
            False, f"Not now: {'hosts have no' if several else 'no host has'} room for {what}."
        )
    filters = ", ".join(one.replace("_", " ") for one in found["refused_by"])
    by = f" The hosts are refused by: {filters}." if filters else ""
    return Room(False, f"Not now: no host can take {'all of them' if several else 'it'}.{by}")


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
