"""Allocation candidates: which providers can serve a request."""

from __future__ import annotations

import random
from typing import Any

from placement.candidates import Candidates, candidates
from placement.operation import Answer, Call, Services, operation
from placement.queries import candidates_query
from placement.render import answer, columns, summary
from placement.request import Query
from placement.schemas import allocations as schemas
from placement.snapshot import Snapshot


class AllocationCandidates:
    """`/allocation_candidates`."""

    def __init__(self, services: Services) -> None:
        self.services = services
        options = services.conf.placement
        self._most = options.max_allocation_candidates
        self._breadth = options.allocation_candidates_generation_strategy == "breadth-first"
        self._sample = random.SystemRandom() if options.randomize_allocation_candidates else None

    def _found(self, call: Call) -> tuple[Snapshot, Query, Candidates]:
        query = candidates_query(call)
        snapshot = self.services.follower.current()
        found = candidates(
            snapshot, query, sample=self._sample, most=self._most, breadth=self._breadth
        )
        return snapshot, query, found

    @operation("allocation_candidates:list", since="1.10", query=schemas.CANDIDATES, accept=True)
    def on_get(self, call: Call) -> Answer:
        """List the ways to serve a request, and the providers they involve."""
        snapshot, query, found = self._found(call)
        if call.version >= 27:
            mapped, trees = call.version >= 34, call.version >= 29
            return Answer(raw=answer(snapshot, found, mapped=mapped, trees=trees))
        return Answer(
            {
                "allocation_requests": _requests(call, snapshot, found),
                "provider_summaries": _summaries(call, snapshot, query, found),
            }
        )


class CandidateColumns(AllocationCandidates):
    """`/micronova/allocation_candidates`: the same search; the answer is a tenth in size."""

    @operation("allocation_candidates:list", since="1.10", query=schemas.CANDIDATES, accept=True)
    def on_get(self, call: Call) -> Answer:
        """List the providers that a request involves, as columns: `placement.render.columns`."""
        snapshot, _, found = self._found(call)
        return Answer(raw=columns(snapshot, found.summaries), dated=False)


def _requests(call: Call, snapshot: Snapshot, found: Candidates) -> list[dict[str, Any]]:
    if call.version < 12:
        return [
            {
                "allocations": [
                    {
                        "resource_provider": {"uuid": snapshot.at(slot).uuid},
                        "resources": resources,
                    }
                    for slot, resources in request.amounts.items()
                ]
            }
            for request in found.requests
        ]
    return [
        {
            "allocations": {
                snapshot.at(slot).uuid: {"resources": resources}
                for slot, resources in request.amounts.items()
            }
        }
        for request in found.requests
    ]


def _summaries(call: Call, snapshot: Snapshot, query: Query, found: Candidates) -> dict[str, Any]:
    traits = call.version >= 17
    asked = frozenset(name for group in query.groups for name in group.resources)
    providers = [snapshot.at(slot) for slot in found.summaries]
    return {
        one.uuid: summary(snapshot, one, asked, traits=traits, trees=False) for one in providers
    }
