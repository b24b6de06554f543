"""A machine's clock is compared with the cloud's, and the process follows that one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import prometheus_client
import pytest

from common import clock
from common.errors import ConfigurationError, Unavailable
from common.metrics import table
from common.process import timekeeping
from common.process.timekeeping import Reading, Timekeeper


@pytest.fixture(autouse=True)
def _unfollowed() -> Iterator[None]:
    clock.unfollow()
    yield
    clock.unfollow()


def ahead(seconds: float, took: float = 0.01) -> Timekeeper:
    """Of a machine whose clock is so far ahead."""
    return Timekeeper(lambda: Reading(time.time() - seconds, time.monotonic(), took))


@pytest.mark.parametrize("off", [-120.0, -10.5, 10.5, 120.0])
def test_a_service_does_not_start_on_a_machine_whose_clock_is_off(off: float) -> None:
    words = "ahead of" if off > 0 else "behind"
    with pytest.raises(ConfigurationError, match=f"{abs(off):.1f} s {words} the database's"):
        ahead(off).start()


@pytest.mark.parametrize("off", [-9.0, 0.0, 9.0])
def test_a_service_starts_and_follows_the_cloud_s_clock(off: float) -> None:
    keeper = ahead(off)
    keeper.start()
    keeper.stop()
    assert clock.seconds() == pytest.approx(time.time() - off, abs=2)
    assert clock.utcnow().timestamp() == pytest.approx(time.time() - off, abs=2)
    assert clock.is_followed()


def test_a_later_comparison_is_followed_however_far_off_the_machine_is() -> None:
    assert ahead(120.0).compare() == pytest.approx(120, abs=1)
    assert clock.seconds() == pytest.approx(time.time() - 120, abs=2)


def test_a_step_of_the_machine_s_clock_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead(0.0).compare()
    true = time.time()
    monkeypatch.setattr(time, "time", lambda: true + 120)
    assert clock.seconds() == pytest.approx(true, abs=2)
    assert clock.utcnow().timestamp() == pytest.approx(true, abs=2)


def test_a_small_difference_between_two_comparisons_moves_no_clock() -> None:
    clock.follow(1000.0, 10.0)
    origin = clock._followed.origin
    clock.follow(1000.0 + clock.AGREES_SECONDS / 2, 10.0)
    assert clock._followed.origin == origin
    clock.follow(1001.0, 10.0)
    assert clock._followed.origin == 991.0


def test_nobody_answers() -> None:
    def silent() -> Reading:
        raise Unavailable("away")

    keeper = Timekeeper(silent)
    keeper.start()
    keeper.stop()
    assert not clock.is_followed()


@pytest.mark.parametrize("first", [None, timekeeping.SLOW_SECONDS + 1])
@pytest.mark.parametrize("off", [-120.0, 120.0])
def test_who_started_without_an_answer_follows_the_first_one(
    caplog: pytest.LogCaptureFixture, first: float | None, off: float
) -> None:
    """It has done nothing by its machine's clock: the database has both the time and the work.
    From the first answer on it counts as everybody does; but it would not have started, so it is
    not ready. The log and the metric, which an alert watches, say that its clock is off."""
    answers, followed = threading.Event(), threading.Event()

    def ask() -> Reading:
        took = 0.01 if answers.is_set() else first
        if took is None:
            raise Unavailable("away")
        if clock.is_followed():
            followed.set()
        return Reading(time.time() - off, time.monotonic(), took)

    keeper = Timekeeper(ask, every_seconds=0.0, look_seconds=0.001)
    keeper.start()
    assert not clock.is_followed()
    assert keeper.may_serve()
    answers.set()
    assert followed.wait(120)
    keeper.stop()
    with pytest.raises(ConfigurationError, match="makestep"):
        keeper.may_serve()
    assert clock.seconds() == pytest.approx(time.time() - off, abs=2)
    words = "ahead of" if off > 0 else "behind"
    assert f"This machine's clock is {abs(off):.1f} s {words} the database's." in caplog.text
    value = prometheus_client.REGISTRY.get_sample_value(table.CLOCK_OFFSET.name)
    assert value == pytest.approx(off, abs=1)


def test_who_started_without_an_answer_serves_once_its_clock_is_right() -> None:
    off = [120.0]

    def ask() -> Reading:
        return Reading(time.time() - off[0], time.monotonic(), 0.01)

    keeper = Timekeeper(ask)
    keeper.compare()
    with pytest.raises(ConfigurationError, match="ahead of the database"):
        keeper.may_serve()
    off[0] = 0.0
    keeper.compare()
    assert keeper.may_serve()
    # A step while it runs is nothing to it.
    off[0] = -120.0
    keeper.compare()
    assert keeper.may_serve()


def test_an_answer_that_took_long_says_nothing() -> None:
    assert ahead(120.0, took=timekeeping.SLOW_SECONDS + 1).compare() is None
    assert not clock.is_followed()


def test_a_step_is_compared_before_its_minute() -> None:
    """A machine that was paused is behind at once."""
    asked: list[float] = []
    shift = [0.0]

    def ask() -> Reading:
        asked.append(shift[0])
        return Reading(time.time(), time.monotonic(), 0.01)

    keeper = Timekeeper(ask, lambda: time.time() + shift[0], look_seconds=0.001)
    keeper.start()
    shift[0] = 120.0
    end = time.monotonic() + 120
    while 120.0 not in asked and time.monotonic() < end:
        time.sleep(0.001)
    keeper.stop()
    assert 120.0 in asked
