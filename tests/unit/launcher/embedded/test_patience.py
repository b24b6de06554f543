"""The deadline of a start follows progress."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import pytest

from common.errors import Unavailable
from launcher.embedded.patience import Missing, Patience


class Hosts:
    """Hosts that come up, and a clock: a look takes its time."""

    def __init__(self, up: Iterable[int], *, wanted: int = 1000, seconds: float = 60) -> None:
        self.now = 0.0
        self._up, self._wanted, self._seconds = iter(up), wanted, seconds
        self._last = 0

    def clock(self) -> float:
        return self.now

    def look(self) -> Missing | None:
        self.now += self._seconds
        self._last = next(self._up, self._last)
        text = f"{self._last} of {self._wanted} hosts are up"
        return None if self._last >= self._wanted else Missing(text, self._last)


class NoPause(threading.Event):
    """Doesn't wait: the clock of these tests is not the real one."""

    def wait(self, timeout: float | None = None) -> bool:
        return self.is_set()


def waited(hosts: Hosts) -> list[str]:
    reported: list[str] = []
    Patience(NoPause(), reported.append, seconds=90, clock=hosts.clock).until(hosts.look)
    return reported


def test_what_moves_may_take_any_time_and_is_reported() -> None:
    hosts = Hosts(range(0, 1001, 50))
    reported = waited(hosts)
    assert hosts.now == 21 * 60
    assert reported[:2] == ["0 of 1000 hosts are up", "50 of 1000 hosts are up"]


def test_what_stands_still_is_given_up_and_says_what_is_missing() -> None:
    hosts = Hosts([100, 400, 730])
    with pytest.raises(Unavailable) as caught:
        waited(hosts)
    assert caught.value.message == (
        "The cloud isn't ready: 730 of 1000 hosts are up; for 90 s nothing has moved."
    )
    assert hosts.now == (3 + 2) * 60


def test_what_comes_and_goes_is_no_progress() -> None:
    with pytest.raises(Unavailable, match="nothing has moved"):
        waited(Hosts([500, 400] * 1000))


def test_details_are_reported_every_few_seconds_at_most() -> None:
    reported = waited(Hosts(range(1001), seconds=0.1))
    assert 15 <= len(reported) <= 25


def test_the_end_of_the_program_ends_it() -> None:
    stopping = NoPause()
    stopping.set()
    with pytest.raises(Unavailable, match="1 of 1000 hosts are up"):
        Patience(stopping, lambda _: None).until(Hosts([1]).look)
