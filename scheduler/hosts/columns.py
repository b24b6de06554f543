"""The hosts of one decision as columns: their states joined with placement's usage.

A plain filter sees one ``Host`` at a time; ``columnar`` ones ask about all hosts at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from placement.messages import Candidates
from scheduler.hosts.host import Host
from scheduler.hosts.host_states import REALLY_THERE, Fact, Floats, HostStates, Measure
from scheduler.hosts.usage import Amounts, Rows, TraitSets, Usage, counted

V = TypeVar("V", bound=Hashable)
Mask = NDArray[np.bool_]


class HostColumns:
    """Hosts in a fixed order; a position is one of them.

    Immutable, but for a ``draft``: its usage grows as the decisions of one pass are made.
    """

    def __init__(
        self,
        states: HostStates,
        rows: Rows,
        silent: Floats,
        failures: Floats,
        usages: Mapping[str, Usage],
        traits: TraitSets,
        others: HostColumns | None = None,
    ) -> None:
        """All but ``states`` and ``others`` go by position; ``rows`` are those of ``states``."""
        self._states, self._rows = states, rows
        self.silent, self.failures = silent, failures
        self._usages, self._traits = usages, traits
        self.reserved_gib = np.zeros(len(rows), np.int64)
        """GiB that decisions of this pass reserved on the storage for root disks."""
        self.others = others
        """The hosts that are no candidates, for weighers that need them."""

    @classmethod
    def of(cls, hosts: HostColumns | Iterable[Host]) -> HostColumns:
        """Return the columns of these hosts; columns are returned as they are."""
        if isinstance(hosts, HostColumns):
            return hosts
        listed = list(hosts)
        classes = dict.fromkeys(name for host in listed for name in (*host.capacity, *host.used))
        made = cls(
            HostStates(listed),
            np.arange(len(listed)),
            np.array([host.silent_seconds for host in listed], np.float64),
            np.array([host.failures for host in listed], np.float64),
            {
                name: Usage(
                    np.array([host.capacity.get(name, 0) for host in listed], np.int64),
                    np.array([host.used.get(name, 0) for host in listed], np.int64),
                )
                for name in classes
            },
            TraitSets.by_host(host.traits for host in listed),
        )
        made.reserved_gib[:] = [host.reserved_gib for host in listed]
        return made

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Host]:
        return map(self.host, range(len(self)))

    def host(self, position: int) -> Host:
        """Return one host as plain filters see it."""
        state = self._states.hosts[self._rows[position]]
        return Host(
            state.facts,
            float(self.silent[position]),
            {name: int(usage.capacity[position]) for name, usage in self._usages.items()},
            {name: int(usage.used[position]) for name, usage in self._usages.items()},
            self._traits.values[self._traits.codes[position]],
            float(self.failures[position]),
            state.memberships,
            state.disabled,
            state.forced_down,
            int(self.reserved_gib[position]),
            state.cloud,
        )

    def name(self, position: int) -> str:
        """Return the name of a host."""
        name: str = self._states.hosts[self._rows[position]].name
        return name

    def names(self, positions: Rows) -> list[str]:
        """Return the names of hosts."""
        found: list[str] = self._states.names[self._rows[positions]].tolist()
        return found

    def states(self) -> Iterator[Host]:
        """Iterate over the hosts as agents report them, without usage and traits."""
        return (self._states.hosts[row] for row in self._rows.tolist())

    # --- columns

    def capacity(self, resource_class: str) -> Amounts:
        """Return the capacity of a class, allocation ratio included."""
        usage = self._usages.get(resource_class)
        return usage.capacity if usage else np.zeros(len(self), np.int64)

    def free(self, resource_class: str) -> Amounts:
        """Return what is free of a class; below 0 where a host is overcommitted."""
        usage = self._usages.get(resource_class)
        return usage.capacity - usage.used if usage else np.zeros(len(self), np.int64)

    def largest(self, resource_class: str) -> Amounts:
        """Return the most of a class that one server may have; see ``Host.largest``."""
        there = REALLY_THERE.get(resource_class)
        return self.measure(there).astype(np.int64) if there else self.capacity(resource_class)

    def room(self, resource_class: str) -> Amounts:
        """Return the most of a class that one more server could have; see ``Host.room``."""
        free, largest = self.free(resource_class), self.largest(resource_class)
        return np.maximum(np.minimum(free, largest), 0)

    def places(self, positions: Rows, amounts: Mapping[str, int]) -> int:
        """Return how many servers of these amounts some hosts have room for, all together."""
        rooms = [self.free(name)[positions] // amount for name, amount in amounts.items()]
        return int(np.maximum(np.minimum.reduce(rooms), 0).sum()) if rooms else 0

    def measure(self, measure: Measure) -> Floats:
        """Return a number of each host, computed from its facts."""
        return self._states.measures(measure)[self._rows]

    def where(self, fact: Fact[Any], predicate: Callable[[Any], bool]) -> Mask:
        """Return for which hosts a predicate of this fact holds."""
        values, codes = self._values_of(fact)
        answers: Mask = np.array([predicate(value) for value in values], np.bool_)[codes]
        return answers

    def having(self, fact: Fact[Any], element: str) -> Mask:
        """Return which hosts have an element in a fact; fast where hardly two facts are equal."""
        values, codes = self._values_of(fact)
        answers: Mask = np.array([element in value for value in values], np.bool_)[codes]
        return answers

    def codes(self, fact: Fact[Any]) -> Rows:
        """Return a number for each host that is equal where the fact is."""
        return self._states.kinds(fact).codes[self._rows].astype(np.int64)

    def each(self, fact: Fact[Any], score: Callable[[Any], float]) -> Floats:
        """Return a score of each host that depends on this fact only."""
        values, codes = self._values_of(fact)
        scores: Floats = np.array([score(value) for value in values], np.float64)[codes]
        return scores

    def _values_of(self, fact: Fact[Any]) -> tuple[list[Any], Rows]:
        """Return the values of a fact and which of them each host has.

        Values that no host here has are left out where there are many of them.
        """
        kinds = self._states.kinds(fact)
        values, codes = kinds.values, self.codes(fact)
        if len(values) <= 2 * len(codes):
            return list(values), codes
        there, codes = np.unique(codes, return_inverse=True)
        return [values[number] for number in there.tolist()], codes

    def sums(self, fact: Fact[V], amounts: Amounts) -> dict[V, int]:
        """Return the sum of amounts over the hosts with each value of a fact."""
        kinds = self._states.kinds(fact)
        found = np.bincount(kinds.codes[self._rows], amounts, len(kinds.numbers))
        return dict(zip(list(kinds.values), found.astype(np.int64).tolist(), strict=False))

    def values(self, fact: Fact[V]) -> list[V]:
        """Return the values of a fact; some may be of hosts that are gone."""
        return list(self._states.kinds(fact).values)

    def with_traits(self, predicate: Callable[[frozenset[str]], bool]) -> Mask:
        """Return for which hosts a predicate of their traits holds."""
        sets = self._traits
        return np.array([predicate(value) for value in sets.values], np.bool_)[sets.codes]

    @property
    def trait_codes(self) -> Rows:
        """A number for each host that is equal where the traits are."""
        return self._traits.codes

    @functools.cached_property
    def tie_hashes(self) -> NDArray[np.uint64]:
        """See ``HostStates``."""
        return self._states.tie_hashes[self._rows]

    def positions(self, names: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Iterate over names and positions of hosts; names that are not here are left out."""
        for name in names:
            row = self._states.by_name.get(name)
            position = -1 if row is None else int(self._positions[row])
            if position >= 0:
                yield name, position

    @functools.cached_property
    def _positions(self) -> Rows:
        positions = np.full(len(self._states), -1, np.int64)
        positions[self._rows] = np.arange(len(self._rows))
        return positions

    # --- others

    def counted(self, answers: Sequence[Candidates], *, everything: bool) -> HostColumns:
        """Return the hosts that placement's answers offer, or ``everything``, with their usage."""
        found = counted(answers, self._states.by_uuid, len(self._states))
        kept = self._rows if everything else found.offered
        return HostColumns(
            self._states,
            kept,
            self.silent[kept],
            self.failures[kept],
            {name: usage.of(kept) for name, usage in found.usages.items()},
            found.traits.of(kept),
        )

    def without(self, names: Iterable[str]) -> HostColumns:
        """Return all but the hosts of these names."""
        gone = [position for _, position in self.positions(names)]
        if not gone:
            return self
        kept = np.delete(np.arange(len(self)), gone)
        usages = {name: usage.of(kept) for name, usage in self._usages.items()}
        return HostColumns(
            self._states,
            self._rows[kept],
            self.silent[kept],
            self.failures[kept],
            usages,
            self._traits.of(kept),
            self.others,
        )

    def draft(self, classes: Iterable[str] = ()) -> HostColumns:
        """Return a copy whose usage may change, these classes included."""
        none = np.zeros(len(self), np.int64)
        usages = {name: Usage(none, none) for name in classes} | dict(self._usages)
        copied = {
            name: Usage(usage.capacity.copy(), usage.used.copy()) for name, usage in usages.items()
        }
        made = self._with(copied, self.others)
        made.reserved_gib[:] = self.reserved_gib
        return made

    def beside(self, whole: HostColumns) -> HostColumns:
        """Return these hosts with all other hosts of ``whole`` as ``others``."""
        return self._with(self._usages, whole.without(self.names(np.arange(len(self)))))

    def _with(self, usages: Mapping[str, Usage], others: HostColumns | None) -> HostColumns:
        return HostColumns(
            self._states, self._rows, self.silent, self.failures, usages, self._traits, others
        )

    def take(self, position: int, amounts: Mapping[str, int]) -> None:
        """Add to the usage of one host of a ``draft``."""
        for name, amount in amounts.items():
            self._usages[name].used[position] += amount

    def fill_up(self, resource_class: str, amounts: Amounts) -> None:
        """Set capacity and usage of the hosts of a ``draft`` that placement omits: exhausted."""
        usage = self._usages[resource_class]
        unreported = usage.capacity == 0
        usage.capacity[unreported] = usage.used[unreported] = amounts[unreported]

    def fill(self, position: int, resource_class: str, amount: int) -> None:
        """Set capacity and usage of one host of a ``draft`` if placement omits it: exhausted."""
        usage = self._usages[resource_class]
        if not usage.capacity[position]:
            usage.capacity[position] = usage.used[position] = amount
