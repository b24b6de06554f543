"""The picture of all providers that candidates are computed from: columns, never changed in place.

A change makes a new picture that shares all that stayed the same, so readers need no lock. Slots
(row numbers) are stable for as long as a provider lives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

SHARING = "MISC_SHARES_VIA_AGGREGATE"
_NOBODY: frozenset[int] = frozenset()


class Stock(NamedTuple):
    """What a provider has of one resource class, and what of it is allocated."""

    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float
    used: int

    @property
    def capacity(self) -> int:
        """What may be allocated in all."""
        return int((self.total - self.reserved) * self.allocation_ratio)

    @property
    def room(self) -> int:
        """The most that one allocation may still take; negative when over capacity."""
        return min(self.max_unit, self.capacity - self.used)


@dataclass(frozen=True, slots=True)
class Provider:
    """One resource provider. `rendered` keeps what was made of it for answers."""

    id: int
    uuid: str
    name: str
    parent_id: int | None
    root_id: int
    stocks: Mapping[str, Stock]
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    rendered: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)


class Column(NamedTuple):
    """One resource class over all slots; where a provider has none of it, `most` is -1."""

    least: list[int]
    most: list[int]
    step: list[int]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All providers at one value of the change sequence.

    `providers` is by slot (None: deleted); `slots` by internal ID; `columns` by resource class;
    the rest are sets of slots: by trait, by aggregate, by internal ID of the root.
    """

    value: int = 0
    providers: Sequence[Provider | None] = ()
    slots: Mapping[int, int] = field(default_factory=dict)
    slot_of_uuid: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[str, Column] = field(default_factory=dict)
    by_trait: Mapping[str, frozenset[int]] = field(default_factory=dict)
    by_aggregate: Mapping[str, frozenset[int]] = field(default_factory=dict)
    by_root: Mapping[int, frozenset[int]] = field(default_factory=dict)
    nested: frozenset[int] = _NOBODY
    traits: frozenset[str] = frozenset()
    resource_classes: frozenset[str] = frozenset()

    @property
    def sharing(self) -> frozenset[int]:
        """The providers that others may use through a common aggregate."""
        return self.by_trait.get(SHARING, _NOBODY)

    @property
    def is_flat(self) -> bool:
        """Whether every provider stands alone: no trees, no sharing."""
        return not self.nested and not self.sharing

    def at(self, slot: int) -> Provider:
        """Return the provider in a slot that is taken."""
        provider = self.providers[slot]
        assert provider is not None
        return provider

    def root_slot(self, slot: int) -> int:
        """Return the slot of the root of the tree that the slot's provider is in."""
        return self.slots[self.at(slot).root_id]

    def named(self, traits: Iterable[str], resource_classes: Iterable[str]) -> Snapshot:
        """Return the picture with other lists of what traits and resource classes there are."""
        return replace(
            self, traits=frozenset(traits), resource_classes=frozenset(resource_classes)
        )

    def used(self, value: int, stocks: Mapping[tuple[int, str], Stock]) -> Snapshot:
        """Return the picture with other stocks; keys are (internal ID, resource class).

        Only providers and classes that are in the picture already are touched.
        """
        providers = list(self.providers)
        columns = dict(self.columns)
        fresh: set[str] = set()
        for (provider_id, name), stock in stocks.items():
            slot = self.slots.get(provider_id, -1)
            provider = providers[slot] if slot >= 0 else None
            if provider is None or name not in provider.stocks:
                continue
            providers[slot] = replace(
                provider, stocks={**provider.stocks, name: stock}, rendered={}
            )
            if name not in fresh:
                columns[name] = _copied(columns[name])
                fresh.add(name)
            _put(columns[name], slot, stock)
        return replace(self, value=value, providers=providers, columns=columns)

    def changed(
        self, value: int, providers: Iterable[Provider], removed: Iterable[int] = ()
    ) -> Snapshot:
        """Return the picture with these providers new or as they are now, and others gone.

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
        return replace(
            self,
            value=value,
            providers=rows,
            slots=slots,
            slot_of_uuid=_uuids(self.slot_of_uuid, pairs),
            columns=_columns(self.columns, pairs, len(rows)),
            by_trait=_index(self.by_trait, pairs, lambda one: one.traits),
            by_aggregate=_index(self.by_aggregate, pairs, lambda one: one.aggregates),
            by_root=_index(self.by_root, pairs, lambda one: (one.root_id,)),
            nested=_index({0: self.nested}, pairs, _nesting).get(0, _NOBODY),
        )


_Pairs = Sequence[tuple[int, Provider | None, Provider | None]]


def _nesting(provider: Provider) -> tuple[int, ...]:
    return () if provider.parent_id is None else (0,)


def _copied(column: Column) -> Column:
    return Column(*(list(numbers) for numbers in column))


def _put(column: Column, slot: int, stock: Stock | None) -> None:
    column.least[slot] = stock.min_unit if stock else 1
    column.most[slot] = stock.room if stock else -1
    column.step[slot] = stock.step_size if stock else 1


def _columns(before: Mapping[str, Column], pairs: _Pairs, length: int) -> dict[str, Column]:
    columns = {name: _copied(column) for name, column in before.items()}
    for _, _, after in pairs:
        for name in after.stocks if after else ():
            columns.setdefault(name, Column([], [], []))
    for column in columns.values():
        missing = length - len(column.most)
        column.least.extend([1] * missing)
        column.most.extend([-1] * missing)
        column.step.extend([1] * missing)
    for slot, _, after in pairs:
        stocks = after.stocks if after else {}
        for name, column in columns.items():
            _put(column, slot, stocks.get(name))
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


def _index(before: Mapping[Any, frozenset[int]], pairs: _Pairs, keys: Any) -> dict[Any, Any]:
    """Return the index {key: slots} after the change; only keys that change are touched."""
    plus: dict[Any, set[int]] = {}
    minus: dict[Any, set[int]] = {}
    for slot, old, new in pairs:
        had = set(keys(old)) if old else set()
        has = set(keys(new)) if new else set()
        for key in has - had:
            plus.setdefault(key, set()).add(slot)
        for key in had - has:
            minus.setdefault(key, set()).add(slot)
    index = dict(before)
    for key in plus.keys() | minus.keys():
        slots = (index.get(key, _NOBODY) - minus.get(key, set())) | plus.get(key, set())
        if slots:
            index[key] = slots
        else:
            index.pop(key, None)
    return index
