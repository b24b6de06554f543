"""Allocation candidates: which providers can serve a request."""

from __future__ import annotations

import random
from typing import Any

import orjson

from placement.candidates import Candidates, candidates
from placement.db.names import CUSTOM
from placement.operation import Answer, Call, Services, operation
from placement.queries import candidates_query
from placement.request import Query
from placement.schemas import allocations as schemas
from placement.snapshot import Provider, Snapshot


class AllocationCandidates:
    """`/allocation_candidates`."""

    def __init__(self, services: Services) -> None:
        self.services = services
        options = services.conf.placement
        self._most = options.max_allocation_candidates
        self._sample = random.SystemRandom() if options.randomize_allocation_candidates else None

    @operation("allocation_candidates:list", since=(1, 10), query=schemas.CANDIDATES, accept=True)
    def on_get(self, call: Call) -> Answer:
        """List the ways to serve a request, and the providers they involve."""
        query = candidates_query(call)
        snapshot = self.services.follower.current()
        found = candidates(snapshot, query, sample=self._sample, most=self._most)
        return Answer(
            {
                "allocation_requests": _requests(call, snapshot, found),
                "provider_summaries": _summaries(call, snapshot, query, found),
            }
        )


def _requests(call: Call, snapshot: Snapshot, found: Candidates) -> list[dict[str, Any]]:
    if not call.at_least(1, 12):
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
    told = []
    mapped = call.at_least(1, 34)
    for request in found.requests:
        one: dict[str, Any] = {
            "allocations": {
                snapshot.at(slot).uuid: {"resources": resources}
                for slot, resources in request.amounts.items()
            }
        }
        if mapped:
            one["mappings"] = {
                suffix: [snapshot.at(slot).uuid for slot in sorted(slots)]
                for suffix, slots in request.mappings.items()
            }
        told.append(one)
    return told


def _summaries(call: Call, snapshot: Snapshot, query: Query, found: Candidates) -> dict[str, Any]:
    """Return the summaries by UUID; the rendered text of each is kept with its provider."""
    traits, everything, trees = (call.at_least(1, n) for n in (17, 27, 29))
    asked = frozenset(name for group in query.groups for name in group.resources)
    shape = (traits, trees, None if everything else asked)
    told = {}
    for slot in found.summaries:
        provider = snapshot.at(slot)
        if everything:
            text = provider.rendered.get(shape)
            if text is None:
                summary = _summary(snapshot, provider, None, traits=traits, trees=trees)
                text = provider.rendered[shape] = orjson.Fragment(orjson.dumps(summary))
            told[provider.uuid] = text
        else:
            told[provider.uuid] = _summary(snapshot, provider, asked, traits=traits, trees=trees)
    return told


def _standard_first(trait: str) -> tuple[bool, str]:
    return trait.startswith(CUSTOM), trait


def _summary(
    snapshot: Snapshot,
    provider: Provider,
    asked: frozenset[str] | None,
    *,
    traits: bool,
    trees: bool,
) -> dict[str, Any]:
    told: dict[str, Any] = {
        "resources": {
            name: {"capacity": stock.capacity, "used": stock.used}
            for name, stock in provider.stocks.items()
            if asked is None or name in asked
        }
    }
    if traits:
        told["traits"] = sorted(provider.traits, key=_standard_first)
    if trees:
        parent = provider.parent_id
        told["parent_provider_uuid"] = (
            None if parent is None else snapshot.at(snapshot.slots[parent]).uuid
        )
        told["root_provider_uuid"] = snapshot.at(snapshot.slots[provider.root_id]).uuid
    return told
