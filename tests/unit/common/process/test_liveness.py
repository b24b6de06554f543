"""Whether others could be heard at all."""

from __future__ import annotations

from common.process.liveness import INTERVAL_SECONDS, Hearing, interval


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_silence_means_nothing_while_nobody_can_be_heard() -> None:
    clock = Clock()
    hearing = Hearing(25, clock)
    assert hearing.for_seconds() == 0
    for _ in range(10):
        hearing.note()
        clock.now += 10
    assert hearing.for_seconds() == 100
    clock.now += 16
    assert hearing.for_seconds() == 0
    hearing.note()
    assert hearing.for_seconds() == 0
    clock.now += 20
    hearing.note()
    assert hearing.for_seconds() == 20


def test_who_is_soon_taken_for_down_is_soon_heard() -> None:
    assert interval(60) == INTERVAL_SECONDS
    assert interval(10) == 2.5
