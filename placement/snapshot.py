"""An immutable snapshot of all providers, in columns, from which candidates are computed.

A change makes a new snapshot that shares unchanged parts, so readers need no lock. A provider's
slot (row number) never changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from common.capacity import usable

SHARING = "MISC_SHARES_VIA_AGGREGATE"
#: slots in ascending order
Slots = NDArray[np.int64]
NO_SLOTS: Slots = np.empty(0, np.int64)
#: a ratio may make a capacity that no column holds
_LARGEST = 2**62


class Inventory(NamedTuple):
    """A provider's inventory of one resource class, and how much of it is allocated."""

    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float
    used: int

    @property
    def capacity(self) -> int:
        """The amount that may be allocated in total."""
        return usable(self.total, self.reserved, self.allocation_ratio)

    @property
    def room(self) -> int:
        """The most that one allocation may still take; negative when over capacity."""
        return min(self.max_unit, self.capacity - self.used)

    @property
    def row(self) -> tuple[int, ...]:
        """Its values in a `Column`."""
        capacity = min(self.capacity, _LARGEST)
        return (self.min_unit, max(-1, self.room), self.step_size, capacity, self.used)


@dataclass(frozen=True, slots=True)
class Provider:
    """One resource provider. `rendered` caches its text for answers."""

    id: int
    uuid: str
    name: str
    parent_id: int | None
    root_id: int
    stocks: Mapping[str, Inventory]
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    rendered: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)


class Column(NamedTuple):
    """One resource class over all slots; where a provider has none of it, `most` is -1.

    `most` is the largest allocation there is room for; `capacity` and `used` are totals.
    """

    least: Slots
    most: Slots
    step: Slots
    capacity: Slots
    used: Slots

    def resized(self, length: int) -> Column:
        """Return a copy with this many slots."""
        return Column(
            *(
                _grown(numbers, length, filler)
                for numbers, filler in zip(self, _ABSENT, strict=True)
            )
        )

    def put(self, slot: int, stock: Inventory | None) -> None:
        """Write one slot; None: the provider has none of the class."""
        row = _ABSENT if stock is None else stock.row
        for numbers, value in zip(self, row, strict=True):
            numbers[slot] = value


#: a column's values where a provider has none of the class
_ABSENT = (1, -1, 1, 0, 0)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All providers at one moment.

    `providers` is by slot (None: deleted); `slots` by internal ID; `columns` by resource class;
    `by_trait` and `by_aggregate` have slots; `ids` and `root_ids` are internal IDs by slot (-1:
    deleted), `root_of` has the root's slot of each slot (-1: deleted) and `trees` the members of
    every tree with more than one, by the slot of its root.
    `memo` caches what is computed from the structure.
    """

    providers: Sequence[Provider | None] = ()
    slots: Mapping[int, int] = field(default_factory=dict)
    slot_of_uuid: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[str, Column] = field(default_factory=dict)
    by_trait: Mapping[str, Slots] = field(default_factory=dict)
    by_aggregate: Mapping[str, Slots] = field(default_factory=dict)
    ids: Slots = field(default_factory=lambda: NO_SLOTS)
    root_ids: Slots = field(default_factory=lambda: NO_SLOTS)
    root_of: Slots = field(default_factory=lambda: NO_SLOTS)
    trees: Mapping[int, Sequence[int]] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    resource_classes: frozenset[str] = frozenset()
    memo: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def sharing(self) -> Slots:
        """The providers that others may use through a common aggregate."""
        return self.by_trait.get(SHARING, NO_SLOTS)

    @property
    def nested(self) -> bool:
        """Whether any provider has a parent."""
        return bool(self.trees)

    @property
    def is_flat(self) -> bool:
        """Whether every provider stands alone: no trees, no sharing."""
        return not self.trees and not len(self.sharing)

    def at(self, slot: int) -> Provider:
        """Return the provider in a slot that is taken."""
        provider = self.providers[slot]
        assert provider is not None
        return provider

    def tree(self, root: int) -> Sequence[int]:
        """Return the slots of the tree below the slot of its root."""
        return self.trees.get(root, (root,))

    def named(self, traits: Iterable[str], resource_classes: Iterable[str]) -> Snapshot:
        """Return the snapshot with other lists of existing traits and resource classes."""
        return replace(
            self, traits=frozenset(traits), resource_classes=frozenset(resource_classes)
        )

    def used(self, stocks: Mapping[tuple[int, str], Inventory]) -> Snapshot:
        """Return the snapshot with other usages; keys are (internal ID, resource class).

        Only providers and classes of the snapshot are changed, and of a column only how much is
        used and how much is free.
        """
        providers = list(self.providers)
        columns: dict[str, Column] = {}
        for (provider_id, name), stock in stocks.items():
            slot = self.slots.get(provider_id, -1)
            provider = providers[slot] if slot >= 0 else None
            if provider is None or name not in provider.stocks:
                continue
            providers[slot] = replace(
                provider, stocks={**provider.stocks, name: stock}, rendered={}
            )
            if name not in columns:
                before = self.columns[name]
                columns[name] = before._replace(most=before.most.copy(), used=before.used.copy())
            columns[name].most[slot] = max(-1, stock.room)
            columns[name].used[slot] = stock.used
        return replace(self, providers=providers, columns={**self.columns, **columns})

    def changed(self, providers: Iterable[Provider], removed: Iterable[int] = ()) -> Snapshot:
        """Return the snapshot with providers added or replaced, and others removed.

        `removed` are internal IDs; unknown ones are ignored.
        """
        new = {provider.id: provider for provider in providers}
        slots = dict(self.slots)
        rows = list(self.providers)
        pairs: list[tuple[int, Provider | None, Provider | None]] = []
        for provider_id in set(removed) - set(new):
            if provider_id in slots:
                slot = slots.pop(provider_id)
                pairs.append((slot, rows[slot], None))
        for provider_id in sorted(new):
            slot = slots.setdefault(provider_id, len(rows))
            if slot == len(rows):
                rows.append(None)
            pairs.append((slot, rows[slot], new[provider_id]))
        for slot, _, after in pairs:
            rows[slot] = after
        ids, root_ids = _ids(self.ids, self.root_ids, pairs, len(rows))
        root_of = _roots(ids, root_ids)
        return replace(
            self,
            providers=rows,
            slots=slots,
            slot_of_uuid=_uuids(self.slot_of_uuid, pairs),
            columns=_columns(self.columns, pairs, len(rows)),
            by_trait=_index(self.by_trait, pairs, lambda one: one.traits),
            by_aggregate=_index(self.by_aggregate, pairs, lambda one: one.aggregates),
            ids=ids,
            root_ids=root_ids,
            root_of=root_of,
            trees=_trees(root_of),
            memo={},
        )


_Pairs = Sequence[tuple[int, Provider | None, Provider | None]]


def _grown(numbers: Slots, length: int, filler: int) -> Slots:
    """Return a copy, extended by `more` fillers."""
    return np.concatenate([numbers, np.full(length - len(numbers), filler, np.int64)])


def _ids(ids: Slots, root_ids: Slots, pairs: _Pairs, length: int) -> tuple[Slots, Slots]:
    ids, root_ids = _grown(ids, length, -1), _grown(root_ids, length, -1)
    for slot, _, after in pairs:
        ids[slot], root_ids[slot] = (-1, -1) if after is None else (after.id, after.root_id)
    return ids, root_ids


def _roots(ids: Slots, root_ids: Slots) -> Slots:
    """Return the slot of each slot's root; itself while its root isn't known."""
    itself = np.arange(len(ids))
    order = np.argsort(ids, kind="stable")
    place = np.minimum(np.searchsorted(ids, root_ids, sorter=order), len(ids) - 1)
    roots = np.where(ids[order[place]] == root_ids, order[place], itself)
    roots[ids < 0] = -1
    return roots


def _trees(root_of: Slots) -> dict[int, Sequence[int]]:
    """Return the members of every tree with more than one, ascending."""
    children = np.flatnonzero((root_of >= 0) & (root_of != np.arange(len(root_of))))
    if not len(children):
        return {}
    trees: dict[int, list[int]] = {root: [root] for root in root_of[children].tolist()}
    for slot, root in zip(children.tolist(), root_of[children].tolist(), strict=True):
        trees[root].append(slot)
    return {root: sorted(members) for root, members in trees.items()}


def _columns(before: Mapping[str, Column], pairs: _Pairs, length: int) -> dict[str, Column]:
    columns = {name: column.resized(length) for name, column in before.items()}
    for slot, gone, after in pairs:
        stocks = after.stocks if after else {}
        for name in gone.stocks if gone else ():
            if name not in stocks:
                columns[name].put(slot, None)
        for name, stock in stocks.items():
            if name not in columns:
                columns[name] = Column(*[NO_SLOTS] * len(_ABSENT)).resized(length)
            columns[name].put(slot, stock)
    return columns


def _uuids(before: Mapping[str, int], pairs: _Pairs) -> dict[str, int]:
    uuids = dict(before)
    for _, gone, _ in pairs:
        if gone is not None:
            uuids.pop(gone.uuid, None)
    for slot, _, after in pairs:
        if after is not None:
            uuids[after.uuid] = slot
    return uuids


def _index(
    before: Mapping[str, Slots], pairs: _Pairs, keys: Callable[[Provider], frozenset[str]]
) -> dict[str, Slots]:
    """Return the index {key: slots} after the change; only keys that change are touched."""
    plus: dict[str, list[int]] = defaultdict(list)
    minus: dict[str, list[int]] = defaultdict(list)
    nothing: frozenset[str] = frozenset()
    for slot, old, new in pairs:
        had = keys(old) if old else nothing
        has = keys(new) if new else nothing
        for key in has - had:
            plus[key].append(slot)
        for key in had - has:
            minus[key].append(slot)
    index = dict(before)
    for key in plus.keys() | minus.keys():
        slots = index.get(key, NO_SLOTS)
        if key in minus:
            slots = np.setdiff1d(slots, np.array(minus[key], np.int64), assume_unique=True)
        slots = np.union1d(slots, np.array(plus.get(key, ()), np.int64))
        if len(slots):
            index[key] = slots
        else:
            index.pop(key, None)
    return index
