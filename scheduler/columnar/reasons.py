"""Why hosts are refused, by group: a sentence, the hosts of which it is true, and the numbers in
it as columns. Nothing is said twice, and no sentence is written before somebody reads it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.messages.scheduling import Refused
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.usage import Amounts, Rows

#: a sentence, cut where a number of each host belongs
Text = tuple[str, ...]
#: hosts with the same number here are alike in something
Codes = NDArray[np.int64]

#: characters of a sentence, at the most
_LONGEST = 1_000


@dataclass(frozen=True)
class Group:
    """Hosts that are refused for the same reason, but for the numbers in it."""

    positions: Rows
    text: Callable[[], Text]
    numbers: tuple[Amounts, ...] = ()
    """For each cut of the text, that of each host."""

    def refused(self, columns: HostColumns, most: int | None = None) -> Refused:
        """The first hosts with their reason, as it is kept: what needs no fleet any more."""
        text = self.text()
        text = tuple(piece[: _LONGEST // len(text)] for piece in text)
        return _folded(
            text,
            tuple(columns.names(self.positions[:most])),
            [column[:most].tolist() for column in self.numbers],
        )


def _folded(text: Text, hosts: tuple[str, ...], columns: Iterable[list[int]]) -> Refused:
    """Numbers that are the same of all become part of the text."""
    pieces, numbers = [text[0]], []
    for column, after in zip(columns, text[1:], strict=True):
        if column.count(column[0]) == len(column):
            pieces[-1] += f"{column[0]}{after}"
        else:
            numbers.append(tuple(column))
            pieces.append(after)
    return Refused(tuple(pieces), hosts, tuple(numbers))


def constant(text: str) -> Callable[[], Text]:
    """A sentence without numbers."""
    return lambda: (text,)


def split(codes: Codes, most: int | None = None) -> Iterator[Rows]:
    """Where the same numbers are; of the first ``most`` different ones only."""
    order = np.argsort(codes, kind="stable")
    found = codes[order]
    ends = [*(np.flatnonzero(found[1:] != found[:-1]) + 1).tolist(), len(order)]
    starts = [0, *ends[:-1]]
    for start, end in itertools.islice(zip(starts, ends, strict=True), most):
        if end > start:
            yield order[start:end]


def joined(columns: Iterable[Codes], length: int) -> Codes:
    """One column of numbers that are the same where those of all columns are."""
    found: Codes = np.zeros(length, np.int64)
    for column in columns:
        # Small again each time, whatever the numbers are.
        _, mine = np.unique(column, return_inverse=True)
        _, found = np.unique(found * (length + 1) + mine, return_inverse=True)
    return found


def by_text(reasons: Iterable[tuple[int, str]]) -> list[Group]:
    """Groups of (position, reason)."""
    found: dict[str, list[int]] = {}
    for position, reason in reasons:
        found.setdefault(reason, []).append(position)
    return [
        Group(np.array(positions, np.int64), constant(reason))
        for reason, positions in found.items()
    ]
