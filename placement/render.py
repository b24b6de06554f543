"""Renders answers about candidates as JSON text, from cached pieces.

An answer with a thousand candidates has a few hundred kilobytes. A provider's part changes only
with the provider, so its text is cached with it, and an answer is made by joining.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import orjson

from placement.candidates import Alone, Candidates
from placement.matching import Candidate
from placement.snapshot import Provider, Snapshot

#: placeholder of a UUID, which no JSON contains
_HERE = "\0"


def text(value: Any) -> str:
    """Return a value as JSON."""
    return orjson.dumps(value).decode()


def answer(snapshot: Snapshot, found: Candidates, *, mapped: bool, trees: bool) -> bytes:
    """Return the body with candidates, in the form of microversion 1.27 and newer.

    `mapped` (1.34) adds which provider serves which group, `trees` (1.29) parents and roots.
    """
    if found.alone is not None:
        requests = _alone(snapshot, found.alone, mapped=mapped)
    else:
        requests = ",".join(_requests(snapshot, found.several, mapped=mapped))
    return b"".join(
        (
            b'{"allocation_requests":[',
            requests.encode(),
            b'],"provider_summaries":{',
            _summaries(snapshot, found.summaries, trees=trees),
            b"}}",
        )
    )


def columns(snapshot: Snapshot, slots: Sequence[int]) -> bytes:
    """Return providers as columns in one order, as JSON.

    `usages` is {resource class: [capacities, amounts used]}, 0 where a provider has none of it;
    `traits` are the different sets of traits, `trait_of` the number of each provider's.
    """
    providers, rows = snapshot.providers, np.asarray(slots, np.int64)
    usages = {
        name: counts
        for name, column in snapshot.columns.items()
        if (counts := np.stack((column.capacity[rows], column.used[rows]))).any()
    }
    numbers: dict[frozenset[str], int] = {}
    trait_of = [
        numbers.setdefault(providers[slot].traits, len(numbers))  # type: ignore[union-attr]
        for slot in slots
    ]
    return orjson.dumps(
        {
            "providers": [providers[slot].uuid for slot in slots],  # type: ignore[union-attr]
            "usages": usages,
            "traits": [sorted(names) for names in numbers],
            "trait_of": trait_of,
        },
        option=orjson.OPT_SERIALIZE_NUMPY,
    )


def _alone(snapshot: Snapshot, alone: Alone, *, mapped: bool) -> str:
    """Return the requests of single providers: one text, the UUID filled in."""
    pattern = f'{{"allocations":{{"{_HERE}":{{"resources":{text(alone.amounts)}}}}}'
    if mapped:
        body = ",".join(f'"{suffix}":["{_HERE}"]' for suffix in alone.suffixes)
        pattern += f',"mappings":{{{body}}}'
    pieces = f"{pattern}}}".split(_HERE)
    providers = snapshot.providers
    return ",".join([providers[slot].uuid.join(pieces) for slot in alone.slots])  # type: ignore[union-attr]


def _requests(snapshot: Snapshot, requests: Iterable[Candidate], *, mapped: bool) -> Iterable[str]:
    providers = snapshot.providers
    for request in requests:
        taken = ",".join(
            f'"{snapshot.at(slot).uuid}":{{"resources":{text(resources)}}}'
            for slot, resources in request.amounts.items()
        )
        if mapped:
            body = _mappings(providers, request.mappings)
            yield f'{{"allocations":{{{taken}}},"mappings":{{{body}}}}}'
        else:
            yield f'{{"allocations":{{{taken}}}}}'


def _mappings(providers: Any, mappings: Mapping[str, tuple[int, ...]]) -> str:
    # A suffix has letters, digits, "_" and "-" only.
    return ",".join(
        f'"{suffix}":["{providers[slots[0]].uuid}"]'
        if len(slots) == 1
        else f'"{suffix}":{text([providers[slot].uuid for slot in slots])}'
        for suffix, slots in mappings.items()
    )


def _summaries(snapshot: Snapshot, slots: Sequence[int], *, trees: bool) -> bytes:
    providers = snapshot.providers
    try:
        return b",".join([providers[slot].rendered[trees] for slot in slots])  # type: ignore[union-attr]
    except KeyError:
        return b",".join([_summary(snapshot, slot, trees=trees) for slot in slots])


def _summary(snapshot: Snapshot, slot: int, *, trees: bool) -> bytes:
    provider = snapshot.at(slot)
    body: bytes | None = provider.rendered.get(trees)
    if body is None:
        value = orjson.dumps(summary(snapshot, provider, None, traits=True, trees=trees))
        body = provider.rendered[trees] = b'"%b":%b' % (provider.uuid.encode(), value)
    return body


def summary(
    snapshot: Snapshot,
    provider: Provider,
    asked: frozenset[str] | None,
    *,
    traits: bool,
    trees: bool,
) -> dict[str, Any]:
    """Return a provider's summary, of the requested resource classes (None: all)."""
    body: dict[str, Any] = {
        "resources": {
            name: {"capacity": stock.capacity, "used": stock.used}
            for name, stock in provider.stocks.items()
            if asked is None or name in asked
        }
    }
    if traits:
        body["traits"] = sorted(provider.traits, key=_standard_first)
    if trees:
        parent = snapshot.slots.get(provider.parent_id or 0)
        root = snapshot.slots.get(provider.root_id)
        body["parent_provider_uuid"] = None if parent is None else snapshot.at(parent).uuid
        body["root_provider_uuid"] = provider.uuid if root is None else snapshot.at(root).uuid
    return body


def _standard_first(trait: str) -> tuple[bool, str]:
    return trait.startswith("CUSTOM_"), trait
