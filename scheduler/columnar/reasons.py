"""Reasons by group: a sentence, the hosts it applies to, and the numbers in it as columns.

No sentence is formatted before it is read.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.messages.scheduling import Refused
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.usage import Amounts, Rows

#: a sentence, split where a number of each host belongs
Text = tuple[str, ...]
#: hosts with the same number are alike in something
Codes = NDArray[np.int64]

#: characters of the longest sentence
_LONGEST = 1_000


@dataclass(frozen=True)
class Group:
    """Hosts that are refused for the same reason, but for the numbers in it."""

    positions: Rows
    text: Callable[[], Text]
    numbers: tuple[Amounts, ...] = ()
    """For each gap of the text, the number of each host."""

    def refused(self, columns: HostColumns, most: int | None = None) -> Refused:
        """Return the first hosts with their reason, as plain data."""
        text = self.text()
        text = tuple(piece[: _LONGEST // len(text)] for piece in text)
        return _folded(
            text,
            tuple(columns.names(self.positions[:most])),
            [column[:most].tolist() for column in self.numbers],
        )


def _folded(text: Text, hosts: tuple[str, ...], columns: Iterable[list[int]]) -> Refused:
    """Return the group with numbers that all hosts share put into the text."""
    pieces, numbers = [text[0]], []
    for column, after in zip(columns, text[1:], strict=True):
        if column.count(column[0]) == len(column):
            pieces[-1] += f"{column[0]}{after}"
        else:
            numbers.append(tuple(column))
            pieces.append(after)
    return Refused(tuple(pieces), hosts, tuple(numbers))


def constant(text: str) -> Callable[[], Text]:
    """Return a sentence without numbers."""
    return lambda: (text,)


def split(codes: Codes, most: int | None = None) -> Iterator[Rows]:
    """Yield the positions of equal numbers, for the first ``most`` different ones."""
    order = np.argsort(codes, kind="stable")
    found = codes[order]
    ends = [*(np.flatnonzero(found[1:] != found[:-1]) + 1).tolist(), len(order)]
    starts = [0, *ends[:-1]]
    for start, end in itertools.islice(zip(starts, ends, strict=True), most):
        if end > start:
            yield order[start:end]


def joined(columns: Iterable[Codes], length: int) -> Codes:
    """Return one column of numbers that are equal where those of all columns are."""
    found: Codes = np.zeros(length, np.int64)
    for column in columns:
        # Renumbered each time, so that they stay small.
        _, mine = np.unique(column, return_inverse=True)
        _, found = np.unique(found * (length + 1) + mine, return_inverse=True)
    return found


def by_text(reasons: Iterable[tuple[int, str]]) -> list[Group]:
    """Return groups of (position, reason)."""
    found: dict[str, list[int]] = {}
    for position, reason in reasons:
        found.setdefault(reason, []).append(position)
    return [
        Group(np.array(positions, np.int64), constant(reason))
        for reason, positions in found.items()
    ]
