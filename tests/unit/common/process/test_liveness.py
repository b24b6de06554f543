"""Whether anything from others could be received at all."""

from __future__ import annotations

from common.process.liveness import INTERVAL_SECONDS, Hearing, interval


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_silence_means_nothing_while_nothing_can_be_received() -> None:
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


def test_who_is_soon_taken_for_down_reports_more_often() -> None:
    assert interval(60) == INTERVAL_SECONDS
    assert interval(10) == 2.5
