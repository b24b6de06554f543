"""All hosts that agents reported, as rows and columns; immutable.

Thousands of hosts have few different zones, bridges or images. So a fact of the hosts is a column
of small numbers, one for each different value, and a predicate is evaluated once for each value
instead of once for each host. New states take over the columns of those before: only rows that
changed are computed again.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduler.hosts.host import Host

V = TypeVar("V", bound=Hashable)
#: something about a host that depends on its facts and its memberships only
Fact = Callable[[Host], V]
Measure = Callable[[Host], float]
Codes = NDArray[np.int32]
Floats = NDArray[np.float64]

REALLY_THERE: Mapping[str, Measure] = {
    "VCPU": lambda host: host.facts.vcpus,
    "MEMORY_MB": lambda host: host.facts.memory_mib,
    "DISK_GB": lambda host: host.facts.disk_gib,
}
"""The most that one server may have of a class: what the node has, without ratios."""

#: unused values are kept up to this many times the number of rows
_STALE = 2


@dataclass(frozen=True)
class Kinds:
    """One fact of all rows: its different values, and which of them each row has."""

    values: list[Any]
    numbers: dict[Any, int]
    codes: Codes

    @classmethod
    def of(cls, found: Iterable[Hashable]) -> Kinds:
        """Return the column of these values, one for each row."""
        numbers: dict[Any, int] = {}
        codes = [numbers.setdefault(value, len(numbers)) for value in found]
        return cls(list(numbers), numbers, np.array(codes, np.int32))

    def with_rows(self, size: int, changes: Mapping[int, Hashable]) -> Kinds | None:
        """Return the column with rows changed or added; None when most values are unused."""
        codes = _grown(self.codes, size)
        for row, value in changes.items():
            number = self.numbers.get(value)
            if number is None:
                # Readers of older columns never meet the numbers that are new.
                self.values.append(value)
                number = self.numbers[value] = len(self.values) - 1
            codes[row] = number
        return (
            None
            if len(self.values) > _STALE * size + 64
            else Kinds(self.values, self.numbers, codes)
        )


class HostStates:
    """All hosts, one row each; a host's row number never changes."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self.hosts = list(hosts)
        self._kinds: dict[Fact[Any], Kinds] = {}
        self._measures: dict[Measure, Floats] = {}

    def __len__(self) -> int:
        return len(self.hosts)

    @functools.cached_property
    def by_name(self) -> Mapping[str, int]:
        """Host name → row."""
        return {host.name: row for row, host in enumerate(self.hosts)}

    @functools.cached_property
    def by_uuid(self) -> Mapping[str, int]:
        """Resource provider's UUID → row."""
        return {host.facts.uuid: row for row, host in enumerate(self.hosts)}

    @functools.cached_property
    def names(self) -> NDArray[np.object_]:
        """The name of each host."""
        return np.array([host.name for host in self.hosts], np.object_)

    @functools.cached_property
    def tie_hashes(self) -> NDArray[np.uint64]:
        """The tie-break hash of each host."""
        return np.array([tie_hash(host.name) for host in self.hosts], np.uint64)

    def kinds(self, fact: Fact[Any]) -> Kinds:
        """Return the column of a fact."""
        found = self._kinds.get(fact)
        if found is None:
            found = self._kinds[fact] = Kinds.of(map(fact, self.hosts))
        return found

    def measures(self, measure: Measure) -> Floats:
        """Return the column of a number."""
        found = self._measures.get(measure)
        if found is None:
            found = np.array([measure(host) for host in self.hosts], np.float64)
            self._measures[measure] = found
        return found

    def with_hosts(self, changed: Iterable[Host]) -> HostStates:
        """Return states in which these hosts are changed; new hosts come at the end."""
        hosts, rows = list(self.hosts), self.by_uuid
        changes: dict[int, Host] = {}
        for host in changed:
            row = rows.get(host.facts.uuid, len(hosts))
            if row == len(hosts):
                hosts.append(host)
            hosts[row] = changes[row] = host
        made = HostStates(hosts)
        same = all(
            row < len(self.hosts) and self.hosts[row].name == host.name
            for row, host in changes.items()
        )
        if same:
            made.__dict__.update(
                by_name=self.by_name, by_uuid=rows, names=self.names, tie_hashes=self.tie_hashes
            )
        for fact, kinds in dict(self._kinds).items():
            grown = kinds.with_rows(len(hosts), {r: fact(h) for r, h in changes.items()})
            if grown is not None:
                made._kinds[fact] = grown
        for measure, column in dict(self._measures).items():
            taken = made._measures[measure] = _grown(column, len(hosts))
            for row, host in changes.items():
                taken[row] = measure(host)
        return made


def tie_hash(name: str) -> int:
    """Return a hash of 64 bits that is always the same for a name."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")


def _grown(column: NDArray[Any], size: int) -> NDArray[Any]:
    """Return a copy of a column with this many rows."""
    made = np.zeros(size, column.dtype)
    made[: len(column)] = column
    return made
