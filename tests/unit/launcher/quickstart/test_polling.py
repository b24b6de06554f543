"""What other programs do is looked at until a deadline."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from launcher.quickstart import queues
from launcher.quickstart.polling import looks
from launcher.quickstart.queues import Found


class Clock:
    """Its time passes in pauses only."""

    def __init__(self) -> None:
        self.now = 100.0

    def pause(self, seconds: float) -> None:
        self.now += seconds


def test_the_first_look_is_at_once_and_the_last_one_after_the_deadline() -> None:
    clock, numbers = Clock(), itertools.count(1)
    found = [
        (one, clock.now)
        for one in looks(numbers.__next__, 1.0, 0.4, clock.pause, lambda: clock.now)
    ]
    assert [one for one, _ in found] == [1, 2, 3, 4]
    assert [at for _, at in found] == pytest.approx([100.0, 100.4, 100.8, 101.2])


def test_it_is_looked_once_where_no_time_is_left() -> None:
    assert list(looks(lambda: 7, 0.0, 1.0)) == [7]


def test_queues_that_are_read_no_more_are_found() -> None:
    """The broker notices a moment later which services have ended."""
    seen: Iterator[Found] = iter(
        [Found({"a": 1, "b": 1}), Found({"a": 0, "b": 1}), Found({"a": 0, "b": 0})]
    )
    pauses: list[float] = []
    found = queues.unread(seen.__next__, pauses.append)
    assert found.queues == {"a": 0, "b": 0}
    assert len(pauses) == 2


def test_what_is_in_use_is_left_alone() -> None:
    found = queues.unread(lambda: Found({"a": 0, "b": 2}, frozenset({"x"})), seconds=0.0)
    assert (found.queues, found.exchanges) == ({"a": 0}, frozenset({"x"}))
