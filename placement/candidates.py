"""Which providers can serve a request: pure, over a snapshot.

Where no provider has a parent or shares, a request of one group is a walk over columns
(`placement.matching`). Everything else goes through `placement.trees`.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from placement import trees
from placement.matching import Candidate, accepted_roots, check_names, matching
from placement.request import Group, Query
from placement.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Candidates:
    """The ways to serve a request, and the providers to tell about (slots)."""

    requests: Sequence[Candidate] = ()
    summaries: Sequence[int] = ()


def candidates(
    snapshot: Snapshot, query: Query, *, sample: random.Random | None = None, most: int = -1
) -> Candidates:
    """Return the ways to serve `query`, in the order of the providers' creation.

    With `sample` the order is random and a limit picks at random. `most` bounds how many are
    looked at (negative: all). Raises Invalid for a resource class or trait that doesn't exist.
    """
    check_names(snapshot, query)
    found = ways(snapshot, query)
    if most >= 0:
        found = itertools.islice(found, most)
    if sample is None:
        requests = list(itertools.islice(found, query.limit))
    else:
        requests = list(found)
        requests = sample.sample(requests, min(len(requests), query.limit or len(requests)))
    return Candidates(requests, _told_about(snapshot, query, requests))


def ways(snapshot: Snapshot, query: Query) -> Iterator[Candidate]:
    """Yield the ways to serve `query`, one at a time."""
    if len(query.groups) == 1 and snapshot.is_flat:
        return _flat(snapshot, query, query.groups[0])

    return trees.ways(snapshot, query)


def _flat(snapshot: Snapshot, query: Query, group: Group) -> Iterator[Candidate]:
    roots = accepted_roots(snapshot, query)
    for slot in matching(snapshot, group):
        if roots is None or slot in roots:
            yield Candidate({slot: group.resources}, {group.suffix: frozenset((slot,))})


def _told_about(snapshot: Snapshot, query: Query, requests: Sequence[Candidate]) -> list[int]:
    """Return the slots of the summaries: the trees of all providers that give something."""
    giving = dict.fromkeys(slot for request in requests for slot in request.amounts)
    if not snapshot.nested or not query.nested:
        return list(giving)
    roots = dict.fromkeys(snapshot.at(slot).root_id for slot in giving)
    return [slot for root in roots for slot in sorted(snapshot.by_root[root])]
