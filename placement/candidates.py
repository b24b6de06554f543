"""Allocation candidates: which providers can serve a request. Pure, over a snapshot.

Where no provider has a parent or shares, one provider serves the whole request: a walk over
columns, in blocks, that ends at the limit. All other cases are handled by `placement.trees`, which
walks tree by tree and also ends at the limit.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from placement import trees
from placement.matching import Candidate, Span, check_names
from placement.request import Query
from placement.snapshot import Snapshot

#: slots examined at a time: the limit at first, then more and more
_FEWEST, _MOST = 64, 65_536


@dataclass(frozen=True, slots=True)
class Alone:
    """Providers (slots) that each serve a whole request, all with the same amounts."""

    slots: Sequence[int]
    amounts: Mapping[str, int]
    suffixes: Sequence[str]

    def requests(self) -> list[Candidate]:
        """Return them as candidates, which share their amounts."""
        return [
            Candidate({slot: self.amounts}, dict.fromkeys(self.suffixes, (slot,)))
            for slot in self.slots
        ]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The ways to serve a request, and the providers of the summaries (slots).

    Where each way is one provider, `alone` is set instead of `several`.
    """

    several: Sequence[Candidate] = ()
    summaries: Sequence[int] = ()
    alone: Alone | None = None

    @property
    def requests(self) -> Sequence[Candidate]:
        """All ways, in order."""
        return self.several if self.alone is None else self.alone.requests()


def candidates(
    snapshot: Snapshot,
    query: Query,
    *,
    sample: random.Random | None = None,
    most: int = -1,
    breadth: bool = False,
) -> Candidates:
    """Return the ways to serve `query`, in the order of the providers' creation.

    With `sample` the order is random and a limit picks at random. `most` bounds how many are
    examined (negative: all); with `breadth` every tree gives one before any gives another.
    Raises Invalid for a resource class or trait that doesn't exist.
    """
    check_names(snapshot, query)
    limit = query.limit
    if most >= 0:
        limit = most if limit is None else min(most, limit)
    if snapshot.is_flat:
        enough = None if sample else limit
        slots = list(itertools.islice(_flat(snapshot, query, enough), enough))
        if sample is not None:
            slots = sample.sample(slots, min(len(slots), len(slots) if limit is None else limit))
        suffixes = [group.suffix for group in query.groups]
        return Candidates(summaries=slots, alone=Alone(slots, _together(query), suffixes))
    shuffle = None if sample is None else sample.shuffle
    found = trees.ways(snapshot, query, shuffle=shuffle, breadth=breadth)
    requests = list(itertools.islice(found, limit))
    return Candidates(requests, _summarised(snapshot, query, requests))


def _flat(snapshot: Snapshot, query: Query, enough: int | None) -> Iterator[int]:
    """Yield the slots of the providers that alone serve the whole query; `enough` will do."""
    suffixed = sum(bool(group.suffix) for group in query.groups)
    if query.isolate and suffixed > 1:
        return
    together = _together(query)
    length = len(snapshot.providers)
    start, block = 0, _MOST if enough is None else min(max(_FEWEST, enough), _MOST)
    while start < length:
        span = Span(snapshot, start, min(start + block, length))
        mask = span.accepted(query)
        for group in query.groups:
            mask &= span.serving(group)
        if len(query.groups) > 1:
            for name, amount in together.items():
                mask &= span.takes(name, amount)
        yield from (np.flatnonzero(mask) + start).tolist()
        start, block = start + block, min(4 * block, _MOST)


def _together(query: Query) -> dict[str, int]:
    """Return what all groups ask for."""
    together: dict[str, int] = {}
    for group in query.groups:
        for name, amount in group.resources.items():
            together[name] = together.get(name, 0) + amount
    return together


def _summarised(snapshot: Snapshot, query: Query, requests: Sequence[Candidate]) -> list[int]:
    """Return the slots of the summaries: the trees of all providers that give something."""
    giving = dict.fromkeys(slot for request in requests for slot in request.amounts)
    if not snapshot.nested or not query.nested:
        return list(giving)
    roots = dict.fromkeys(int(snapshot.root_of[slot]) for slot in giving)
    return [slot for root in roots for slot in snapshot.tree(root)]
