"""Candidates where providers have parents or share: every combination within an anchor's tree.

An anchor is the root of the tree that a candidate is about. A sharing provider (trait
MISC_SHARES_VIA_AGGREGATE) may serve any anchor that has a member in one of its aggregates.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from placement.matching import (
    Candidate,
    accepted_roots,
    any_of,
    having,
    matching,
    tree_of,
    with_room,
)
from placement.request import Group, Query
from placement.snapshot import Provider, Snapshot


class Part(NamedTuple):
    """How one group may be served: (provider, class, amount) and which providers it maps to."""

    takes: tuple[tuple[int, str, int], ...]
    suffix: str
    maps_to: frozenset[int]


def ways(snapshot: Snapshot, query: Query) -> Iterator[Candidate]:
    """Yield the ways to serve `query`, anchor by anchor, none twice."""
    roots = accepted_roots(snapshot, query)
    by_group = [_parts(snapshot, group, roots) for group in query.groups]
    seen: set[object] = set()
    for anchor in by_group[0] if by_group else ():
        if not all(anchor in parts for parts in by_group):
            continue
        for chosen in itertools.product(*(parts[anchor] for parts in by_group)):
            if not _allowed(snapshot, query, chosen):
                continue
            candidate = _combined(chosen)
            if not _fits(snapshot, candidate) or not _known_to_asker(snapshot, query, candidate):
                continue
            key = _key(candidate)
            if key not in seen:
                seen.add(key)
                yield candidate


def _parts(
    snapshot: Snapshot, group: Group, roots: frozenset[int] | None
) -> Mapping[int, Sequence[Part]]:
    """Return the ways to serve one group, by anchor."""
    if group.suffix or snapshot.is_flat:
        return _from_one(snapshot, group, roots)
    return _from_several(snapshot, group, roots)


def _from_one(
    snapshot: Snapshot, group: Group, roots: frozenset[int] | None
) -> dict[int, list[Part]]:
    parts: dict[int, list[Part]] = defaultdict(list)
    slots = matching(snapshot, group) if group.resources else having(snapshot, group)
    for slot in slots:
        takes = tuple((slot, name, amount) for name, amount in group.resources.items())
        part = Part(takes, group.suffix, frozenset((slot,)))
        anchors = {snapshot.root_slot(slot)}
        if slot in snapshot.sharing:
            anchors |= _anchors_of(snapshot, slot)
        for anchor in sorted(anchors):
            if roots is None or anchor in roots:
                parts[anchor].append(part)
    return parts


def _from_several(
    snapshot: Snapshot, group: Group, roots: frozenset[int] | None
) -> dict[int, list[Part]]:
    givers = [_givers(snapshot, group, name, roots) for name in sorted(group.resources)]
    parts: dict[int, list[Part]] = {}
    for anchor in givers[0] if givers else ():
        if not all(anchor in by_anchor for by_anchor in givers):
            continue
        found = [
            Part(takes, group.suffix, slots)
            for takes in itertools.product(*(by_anchor[anchor] for by_anchor in givers))
            for slots in (frozenset(take[0] for take in takes),)
            if _traits_met(snapshot, group, slots)
        ]
        if found:
            parts[anchor] = found
    return parts


def _givers(
    snapshot: Snapshot, group: Group, name: str, roots: frozenset[int] | None
) -> dict[int, list[tuple[int, str, int]]]:
    """Return who can give one class of the group, by anchor."""
    amount = group.resources[name]
    inside = None if group.in_tree is None else tree_of(snapshot, group.in_tree)
    fitting = with_room(snapshot, name, amount, sorted(snapshot.slots.values()))
    members = [any_of(snapshot.by_aggregate, uuids) for uuids in group.member_of]
    wanted = frozenset.intersection(*members) if members else None
    barred = any_of(snapshot.by_aggregate, group.forbidden_aggregates)
    givers: dict[int, list[tuple[int, str, int]]] = defaultdict(list)
    for slot in fitting:
        if inside is not None and slot not in inside:
            continue
        anchors = {snapshot.root_slot(slot)}
        if slot in snapshot.sharing and inside is None and (wanted is None or slot in wanted):
            anchors |= _anchors_of(snapshot, slot)
        for anchor in sorted(anchors):
            # An aggregate of the root spans the whole tree.
            here = {slot, anchor}
            if wanted is not None and not here & wanted:
                continue
            if here & barred or (roots is not None and anchor not in roots):
                continue
            givers[anchor].append((slot, name, amount))
    return givers


def _anchors_of(snapshot: Snapshot, slot: int) -> set[int]:
    together = any_of(snapshot.by_aggregate, snapshot.at(slot).aggregates)
    return {snapshot.root_slot(member) for member in together}


def _traits_met(snapshot: Snapshot, group: Group, slots: frozenset[int]) -> bool:
    """Whether the providers together have the traits required, and none a forbidden one."""
    together = frozenset().union(*(snapshot.at(slot).traits for slot in slots))
    return not together & group.forbidden and all(together & names for names in group.required)


def _allowed(snapshot: Snapshot, query: Query, parts: Sequence[Part]) -> bool:
    if query.isolate:
        alone = [part.maps_to for part in parts if part.suffix]
        if len(frozenset().union(*alone)) != len(alone):
            return False
    for suffixes in query.same_subtrees:
        slots = frozenset().union(*(part.maps_to for part in parts if part.suffix in suffixes))
        if len(slots) > 1 and not _one_above_all(snapshot, slots):
            return False
    return True


def _one_above_all(snapshot: Snapshot, slots: frozenset[int]) -> bool:
    """Whether one of the providers is an ancestor of all the others."""
    lines = [_line(snapshot, snapshot.at(slot)) for slot in slots]
    return bool(frozenset.intersection(*lines) & slots)


def _line(snapshot: Snapshot, provider: Provider) -> frozenset[int]:
    """Return the slots of a provider and its ancestors."""
    line = {snapshot.slots[provider.id]}
    while provider.parent_id is not None:
        slot = snapshot.slots[provider.parent_id]
        line.add(slot)
        provider = snapshot.at(slot)
    return frozenset(line)


def _combined(parts: Sequence[Part]) -> Candidate:
    amounts: dict[int, dict[str, int]] = {}
    mappings: dict[str, frozenset[int]] = {}
    for part in parts:
        mappings[part.suffix] = part.maps_to
        for slot, name, amount in part.takes:
            of = amounts.setdefault(slot, {})
            of[name] = of.get(name, 0) + amount
    return Candidate(amounts, mappings)


def _fits(snapshot: Snapshot, candidate: Candidate) -> bool:
    """Whether what several groups take from one provider still fits together."""
    return all(
        amount <= snapshot.columns[name].most[slot]
        for slot, resources in candidate.amounts.items()
        for name, amount in resources.items()
    )


def _known_to_asker(snapshot: Snapshot, query: Query, candidate: Candidate) -> bool:
    """Whether an asker that knows no trees may see it: one provider of each tree."""
    if query.nested or not snapshot.nested:
        return True
    roots = {snapshot.at(slot).root_id for slot in candidate.amounts}
    return len(roots) == len(candidate.amounts)


def _key(candidate: Candidate) -> object:
    takes = frozenset(
        (slot, name, amount)
        for slot, resources in candidate.amounts.items()
        for name, amount in resources.items()
    )
    return takes, frozenset(candidate.mappings.items())
