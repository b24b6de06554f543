"""The sums of a day over all nodes and storages, gathered by a few questions a page.

Each source is asked once a day for all browsers; where that takes several pages, the sum so far is
shown.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Add = Callable[[str, Mapping[str, Any] | None, Sequence[Any]], Mapping[str, Any]]
"""Returns a kind's sum with further answers; None: there is no sum yet."""


@dataclass(frozen=True)
class Source:
    """A node, or a storage that a node sees."""

    kind: str
    host: str
    storage: str | None = None


@dataclass(frozen=True)
class Known:
    """What is known of a kind."""

    counted: int
    total: int
    sum: Mapping[str, Any] | None
    """None: nothing was answered yet."""


class Gathered:
    """What was asked on one day."""

    def __init__(self, sources: Sequence[Source], add: Add, *, is_cut: bool = False) -> None:
        self.is_cut = is_cut
        """Whether there are more sources than were listed."""
        self._lock = threading.Lock()
        self._untried, self._failed = list(sources), list[Source]()
        self._add = add
        self._total = Counter(one.kind for one in sources)
        self._counted: Counter[str] = Counter()
        self._sums: dict[str, Mapping[str, Any]] = {}

    def take(self, most: int) -> list[Source]:
        """Return sources to ask now; those that failed come after all others."""
        with self._lock:
            waiting = self._untried or self._failed
            chosen = waiting[:most]
            del waiting[:most]
            return chosen

    def add(self, answers: Sequence[tuple[Source, Any]]) -> None:
        """Count answers of sources that were taken; what is `Missing` is asked again later."""
        with self._lock:
            self._failed += [source for source, answer in answers if not answer]
            for kind in self._total:
                new = [answer for source, answer in answers if answer and source.kind == kind]
                self._counted[kind] += len(new)
                self._sums[kind] = self._add(kind, self._sums.get(kind), new)

    def give_back(self, sources: Sequence[Source]) -> None:
        """Return sources whose questions were not sent, or not answered, for others to ask."""
        with self._lock:
            self._untried += sources

    @property
    def is_open(self) -> bool:
        """Whether a source wasn't asked yet."""
        with self._lock:
            return bool(self._untried)

    def known(self, kind: str) -> Known:
        """Return what is known of a kind."""
        with self._lock:
            return Known(self._counted[kind], self._total[kind], self._sums.get(kind))


class Days:
    """Has what was gathered today. One for a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._today: tuple[str, Gathered] | None = None

    def of(self, day: str, begin: Callable[[], Gathered]) -> Gathered:
        """Return what was gathered on a day; `begin` lists the sources of a new one."""
        with self._lock:
            found = self._today
        if found is not None and found[0] == day:
            return found[1]
        made = begin()
        with self._lock:
            if self._today is None or self._today[0] != day:
                self._today = day, made
            return self._today[1]
