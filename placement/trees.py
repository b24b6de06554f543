"""Candidates where providers have parents or share: the combinations within an anchor's tree.

An anchor is the root of the tree that a candidate is about. A sharing provider (trait
MISC_SHARES_VIA_AGGREGATE) may serve any anchor that has a member in one of its aggregates.
Anchors are visited one by one, and combinations are built group by group and dropped as soon as
they fail, so nothing beyond a limit is computed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from placement import sharing
from placement.matching import Candidate, Mask, Span
from placement.request import Group, Query
from placement.snapshot import Provider, Snapshot

Shuffle = Callable[[list[Any]], None]


class Part(NamedTuple):
    """One way to serve a group: (provider, class, amount), and the providers it maps to."""

    takes: tuple[tuple[int, str, int], ...]
    suffix: str
    maps_to: tuple[int, ...]


def ways(
    snapshot: Snapshot, query: Query, *, shuffle: Shuffle | None = None, breadth: bool = False
) -> Iterator[Candidate]:
    """Yield the ways to serve `query`, anchor by anchor, without duplicates.

    With `breadth` (and with `shuffle`, which then mixes the anchors) every anchor gives one
    before any gives another.
    """
    groups = [_made(snapshot, group) for group in query.groups]
    mask = Span(snapshot).accepted(query)
    for group in groups:
        mask &= group.anchors
    anchors: list[int] = np.flatnonzero(mask).tolist()
    if shuffle is not None:
        shuffle(anchors)
    walks = (_ways_at(snapshot, query, groups, anchor) for anchor in anchors)
    found = _in_turn(walks) if breadth or shuffle else itertools.chain.from_iterable(walks)
    seen: set[object] = set()
    for candidate in found:
        key = _key(candidate)
        if key not in seen:
            seen.add(key)
            yield candidate


def _in_turn(walks: Iterator[Iterator[Candidate]]) -> Iterator[Candidate]:
    """Yield the first of each, then the second of each, and so on."""
    turn: list[Iterator[Candidate]] = []
    for walk in walks:
        for first in itertools.islice(walk, 1):
            yield first
            turn.append(walk)
    while turn:
        still = []
        for walk in turn:
            for one in itertools.islice(walk, 1):
                yield one
                still.append(walk)
        turn = still


class _Made(NamedTuple):
    """A group with what is computed once for all anchors.

    `anchors` may have a way to serve it; `fitting` are the providers that may give: {"": all of
    the group} or by resource class.
    """

    group: Group
    anchors: Mask
    fitting: Mapping[str, Mask]
    members: Mask | None
    barred: Mask | None


def _made(snapshot: Snapshot, group: Group) -> _Made:
    span = Span(snapshot)
    if group.suffix:
        mask = span.serving(group)
        return _Made(group, sharing.anchors_of(snapshot, mask), {"": mask}, None, None)
    members = barred = None
    here = span.alive()
    if group.in_tree is not None:
        here &= span.in_tree(group.in_tree)
    if group.forbidden:
        here &= ~span.having(snapshot.by_trait, group.forbidden)
    for uuids in group.member_of:
        both = span.having(snapshot.by_aggregate, uuids)
        members = both if members is None else members & both
    if group.forbidden_aggregates:
        barred = span.having(snapshot.by_aggregate, group.forbidden_aggregates)
    fitting = {
        name: here & span.roomy(name, amount) for name, amount in sorted(group.resources.items())
    }
    anchors = span.alive()
    for mask in fitting.values():
        anchors &= sharing.anchors_of(snapshot, mask)
    return _Made(group, anchors, fitting, members, barred)


def _ways_at(
    snapshot: Snapshot, query: Query, groups: Sequence[_Made], anchor: int
) -> Iterator[Candidate]:
    """Yield the ways to serve `query` at one anchor."""
    inside = snapshot.tree(anchor)
    outside = sharing.sharers(snapshot).get(anchor, ())
    parts: list[Sequence[Part]] = []
    for made in groups:
        if made.group.suffix:
            parts.append(_from_one(made, sorted((*inside, *outside)) if outside else inside))
        else:
            parts.append(list(_from_several(snapshot, made, anchor, inside, outside)))
        if not parts[-1]:
            return
    for chosen in _Choice(snapshot, query, parts).all():
        candidate = _combined(chosen)
        if _known_to_asker(snapshot, query, candidate):
            yield candidate


def _from_one(made: _Made, slots: Sequence[int]) -> list[Part]:
    resources, suffix, mask = made.group.resources, made.group.suffix, made.fitting[""]
    return [
        Part(tuple((slot, name, n) for name, n in resources.items()), suffix, (slot,))
        for slot in slots
        if mask[slot]
    ]


def _from_several(
    snapshot: Snapshot, made: _Made, anchor: int, inside: Sequence[int], outside: Sequence[int]
) -> Iterator[Part]:
    members, barred, group = made.members, made.barred, made.group
    if not made.fitting or (barred is not None and barred[anchor]):
        return
    # An aggregate of the root spans the whole tree, but not those who share with it.
    everyone = members is None or bool(members[anchor])
    here = [
        slot
        for slot in inside
        if (everyone or (members is not None and members[slot]))
        and (barred is None or not barred[slot])
    ]
    if group.in_tree is None:
        here += [
            slot
            for slot in outside
            if (members is None or members[slot]) and (barred is None or not barred[slot])
        ]
        here.sort()
    takes = [
        [(slot, name, group.resources[name]) for slot in here if mask[slot]]
        for name, mask in made.fitting.items()
    ]
    for chosen in itertools.product(*takes):
        slots = tuple(sorted({take[0] for take in chosen}))
        if _traits_met(snapshot, group, slots):
            yield Part(chosen, group.suffix, slots)


def _traits_met(snapshot: Snapshot, group: Group, slots: Sequence[int]) -> bool:
    """Return whether the providers together have the required traits; none has a forbidden one."""
    if not group.required:
        return True
    together = frozenset().union(*(snapshot.at(slot).traits for slot in slots))
    return all(together & names for names in group.required)


class _Choice:
    """One part of each group, built group by group and dropped where it fails."""

    def __init__(self, snapshot: Snapshot, query: Query, parts: Sequence[Sequence[Part]]) -> None:
        self._snapshot = snapshot
        self._isolate = query.isolate
        self._parts = parts
        self._chosen: list[Part] = []
        self._taken: dict[tuple[int, str], int] = {}
        last = {group.suffix: number for number, group in enumerate(query.groups)}
        self._subtrees: dict[int, list[frozenset[str]]] = {}
        for suffixes in query.same_subtrees:
            # It is decided when the last of them is chosen.
            number = max((last[one] for one in suffixes if one in last), default=-1)
            self._subtrees.setdefault(number, []).append(suffixes)

    def all(self) -> Iterator[Sequence[Part]]:
        """Yield every choice that is possible; valid until the next one."""
        number = len(self._chosen)
        if number == len(self._parts):
            yield self._chosen
            return
        for part in self._parts[number]:
            if self._take(part):
                self._chosen.append(part)
                if self._together(number):
                    yield from self.all()
                self._chosen.pop()
            self._give_back(part)

    def _take(self, part: Part) -> bool:
        """Add the part's amounts; return whether it fits with those chosen."""
        fits = True
        columns = self._snapshot.columns
        for slot, name, amount in part.takes:
            taken = self._taken.get((slot, name), 0) + amount
            self._taken[slot, name] = taken
            fits = fits and taken <= columns[name].most[slot]
        if self._isolate and part.suffix:
            (slot,) = part.maps_to
            fits = fits and all(slot not in o.maps_to for o in self._chosen if o.suffix)
        return fits

    def _give_back(self, part: Part) -> None:
        for slot, name, amount in part.takes:
            self._taken[slot, name] -= amount

    def _together(self, number: int) -> bool:
        """Return whether each subtree that is complete now lies below one of its providers."""
        for suffixes in self._subtrees.get(number, ()):
            slots = {s for part in self._chosen if part.suffix in suffixes for s in part.maps_to}
            if len(slots) > 1 and not _one_above_all(self._snapshot, slots):
                return False
        return True


def _one_above_all(snapshot: Snapshot, slots: set[int]) -> bool:
    """Return whether one of the providers is an ancestor of all the others."""
    lines = [_line(snapshot, snapshot.at(slot)) for slot in slots]
    return bool(set.intersection(*lines) & slots)


def _line(snapshot: Snapshot, provider: Provider) -> set[int]:
    """Return the slots of a provider and its ancestors."""
    line = {snapshot.slots[provider.id]}
    while provider.parent_id is not None and provider.parent_id in snapshot.slots:
        slot = snapshot.slots[provider.parent_id]
        line.add(slot)
        provider = snapshot.at(slot)
    return line


def _combined(parts: Sequence[Part]) -> Candidate:
    amounts: dict[int, dict[str, int]] = {}
    mappings: dict[str, tuple[int, ...]] = {}
    for part in parts:
        mappings[part.suffix] = part.maps_to
        for slot, name, amount in part.takes:
            of = amounts.setdefault(slot, {})
            of[name] = of.get(name, 0) + amount
    return Candidate(amounts, mappings)


def _known_to_asker(snapshot: Snapshot, query: Query, candidate: Candidate) -> bool:
    """Return whether a client without trees may see it: one provider of each tree."""
    if query.nested or not snapshot.nested:
        return True
    roots = {int(snapshot.root_of[slot]) for slot in candidate.amounts}
    return len(roots) == len(candidate.amounts)


def _key(candidate: Candidate) -> object:
    takes = frozenset(
        (slot, name, amount)
        for slot, resources in candidate.amounts.items()
        for name, amount in resources.items()
    )
    return takes, frozenset(candidate.mappings.items())
