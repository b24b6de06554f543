"""How much was in use at each time of a period, made of when each server began and ended."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Amounts(NamedTuple):
    """What servers take together."""

    servers: int = 0
    vcpus: int = 0
    memory_mib: int = 0

    def plus(self, other: Amounts, sign: int = 1) -> Amounts:
        """Return the sum; the difference with sign -1."""
        return Amounts(
            self.servers + sign * other.servers,
            self.vcpus + sign * other.vcpus,
            self.memory_mib + sign * other.memory_mib,
        )


class Ran(NamedTuple):
    """A server that was there for a time, in seconds since the epoch."""

    began: float
    ended: float | None
    takes: Amounts


class Window(NamedTuple):
    """A period in equal steps (the last may be shorter); in seconds since the epoch."""

    begin: int
    end: float
    step_seconds: int

    @property
    def steps(self) -> Sequence[int]:
        """When each step begins."""
        return range(self.begin, math.ceil(self.end), self.step_seconds)

    @property
    def hours(self) -> float:
        """How long it is."""
        return (self.end - self.begin) / 3600


@dataclass(frozen=True)
class Period:
    """A time until now that can be asked for."""

    title: str
    seconds: int
    step_seconds: int
    step: str
    """The step in words."""

    def until(self, now: float) -> Window:
        """Return it up to a time; its steps begin at round times."""
        begin = math.ceil((now - self.seconds) / self.step_seconds) * self.step_seconds
        return Window(begin, now, self.step_seconds)


PERIODS: Mapping[str, Period] = {
    "day": Period("24 hours", 86_400, 600, "10 minutes"),
    "week": Period("7 days", 7 * 86_400, 3_600, "an hour"),
    "month": Period("30 days", 30 * 86_400, 14_400, "4 hours"),
}


@dataclass(frozen=True)
class Series:
    """What was in use."""

    window: Window
    most: Sequence[Amounts]
    """Of each step the most at once, each amount by itself."""
    at_end: Amounts

    @property
    def peak(self) -> Amounts:
        """The most at once of all steps."""
        return _largest(self.most)

    def stretches(self) -> list[tuple[int, float, Amounts]]:
        """Return (since, until, most) of neighbouring steps with the same amounts."""
        found = []
        grouped = itertools.groupby(
            zip(self.window.steps, self.most, strict=True), key=lambda step: step[1]
        )
        for most, steps in grouped:
            times = [at for at, _ in steps]
            until = min(times[-1] + self.window.step_seconds, self.window.end)
            found.append((times[0], until, most))
        return found


def series(servers: Iterable[Ran], window: Window) -> Series:
    """Return what servers used within a window. A server's share is free at the time it ends."""
    changes = _changes(servers, window)
    times = iter(sorted(changes))
    following = next(times, math.inf)
    present, most = Amounts(), []
    for begin in window.steps:
        seen = []
        if following > begin:
            seen.append(present)
        while following < min(begin + window.step_seconds, window.end):
            present = present.plus(changes[following])
            seen.append(present)
            following = next(times, math.inf)
        most.append(_largest(seen))
    return Series(window, most, present)


def _changes(servers: Iterable[Ran], window: Window) -> dict[float, Amounts]:
    """Return by how much the amounts change, by the time within the window."""
    found: dict[float, Amounts] = {}
    for one in servers:
        began = max(one.began, window.begin)
        ended = window.end if one.ended is None else min(one.ended, window.end)
        if began >= ended:
            continue
        found[began] = found.get(began, Amounts()).plus(one.takes)
        if ended < window.end:
            found[ended] = found.get(ended, Amounts()).plus(one.takes, -1)
    return found


def _largest(amounts: Iterable[Amounts]) -> Amounts:
    return Amounts(*map(max, zip(Amounts(), *amounts, strict=True)))
