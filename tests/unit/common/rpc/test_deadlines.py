"""How long callers wait, although clocks differ."""

from __future__ import annotations

import threading
import time

import pytest

from common.errors import Unavailable
from common.rpc import deadlines
from common.rpc.deadlines import Delays, Wait

WAITS = 30.0


def shown(*observed: float, every: float = 60.0) -> list[float]:
    """What messages, sent so many seconds apart, are taken to have been under way that show these
    differences."""
    delays = Delays()
    sent = [1000.0 + every * number for number in range(len(observed))]
    return [
        round(delays.seconds(Wait("api", at, WAITS), at + one), 3)
        for at, one in zip(sent, observed, strict=True)
    ]


def test_of_clocks_that_agree_the_difference_counts() -> None:
    assert shown(0.01, 12.0, 0.01, 12.0) == [0.01, 12.0, 0.0, 11.99]


def test_a_clock_that_is_behind_is_found_out_at_once() -> None:
    assert shown(-60.0, -59.5, -48.0) == [0.0, 0.5, 12.0]


@pytest.mark.parametrize("ahead", [20.0, 60.0])
def test_a_clock_that_is_ahead_is_found_out_in_time(ahead: float) -> None:
    """Until then it errs on the side of doing nothing."""
    observed = [ahead, ahead + 0.1, ahead + 0.2, ahead + 5.0]
    assert shown(*observed) == [*observed[:2], 0.2, 5.0]


def test_messages_that_come_late_together_are_late() -> None:
    """Their receiver was stopped: nothing says that the clocks differ."""
    assert shown(*[45.0] * 100, every=0.1) == [45.0] * 100


def test_many_late_messages_do_not_hide_what_was_seen_before() -> None:
    before = [0.01] * 5
    assert shown(*before, *[45.0] * 100, every=40.0)[5:36] == [44.99] * 31


def test_senders_are_distinguished_and_forgotten() -> None:
    delays = Delays()
    assert delays.seconds(Wait("a", 1000.0, WAITS), 940.0) == 0.0
    assert delays.seconds(Wait("b", 1000.0, WAITS), 1001.0) == 1.0
    for number in range(2000):
        delays.seconds(Wait(str(number), 1000.0, WAITS), 1000.0)
    assert len(delays._seen) == 1000


def test_what_is_left_of_the_wait_is_less_than_all_of_it() -> None:
    assert deadlines.until(Wait("a", 0.0, 30.0), under_way=5.0, arrived=100.0) == 123.0
    assert deadlines.until(Wait("a", 0.0, 1.0), under_way=0.0, arrived=100.0) == 100.9


@pytest.mark.parametrize("told", [None, {}, {"sender": "a"}, {"sent_at": "x"}, "text"])
def test_a_message_that_tells_nothing_has_no_end(told: object) -> None:
    assert Wait.from_message(told) is None


def test_a_call_counts_in_its_own_thread_until_it_is_carried_out() -> None:
    deadlines.check()
    with pytest.raises(Unavailable), deadlines.answering(time.monotonic()):
        raise AssertionError("not reached")
    with deadlines.answering(time.monotonic() + 1000):
        deadlines.check()
        deadlines._current.until = time.monotonic()
        with pytest.raises(Unavailable, match="given up"):
            deadlines.check()
        elsewhere = threading.Thread(target=deadlines.check)
        elsewhere.start()
        elsewhere.join()
        deadlines.carried_out()
        deadlines.check()
