"""How long callers wait, and until when a call may be committed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from common import clock
from common.errors import Unavailable
from common.rpc import deadlines
from common.rpc.deadlines import Deadline, Wait


@pytest.fixture
def followed() -> Iterator[float]:
    """The cloud's clock, which is two minutes ahead of this machine's."""
    ahead = time.time() + 120
    clock.follow(ahead, time.monotonic())
    yield ahead
    clock.unfollow()


def test_a_message_says_how_long_its_caller_waits() -> None:
    wait = Wait(30.0, 5.0, call="a", again=True)
    assert Wait.from_message(wait.to_message()) == wait
    assert "sent_at" not in Wait(30.0).to_message(), "this process knows no clock but its own"


def test_the_time_under_way_counts_by_the_cloud_s_clock(followed: float) -> None:
    sent = dict(Wait(30.0).to_message())
    assert sent["sent_at"] == pytest.approx(followed, abs=5)
    wait = Wait.from_message({**sent, "sent_at": sent["sent_at"] - 12})
    assert wait is not None
    assert wait.under_way() == pytest.approx(12, abs=5)
    late = Deadline(Wait(30.0, sent_at=followed - 40), time.monotonic())
    assert late.over()


def test_without_a_known_clock_the_time_counts_from_the_arrival() -> None:
    """Whatever the sender's clock says: nothing that it asks for is refused."""
    assert Wait(30.0, sent_at=time.time() - 500).under_way() == 0.0
    assert Deadline(Wait(30.0, sent_at=0.0), 100.0).until == 128.0


def test_a_sender_that_is_ahead_is_not_late(followed: float) -> None:
    assert Wait(30.0, sent_at=followed + 500).under_way() == 0.0


@pytest.mark.parametrize(
    ("wait", "until"),
    [(Wait(30.0), 128.0), (Wait(1.0), 100.9), (Wait(30.0, 5.0), 104.5), (Wait(3.0, 5.0), 102.7)],
)
def test_what_is_left_of_the_wait_is_less_than_all_of_it(wait: Wait, until: float) -> None:
    assert Deadline(wait, 100.0).until == pytest.approx(until)


def test_a_sign_extends_the_deadline_up_to_the_whole_wait() -> None:
    deadline = Deadline(Wait(30.0, 5.0), 100.0)
    deadline.extend(103.0)
    assert deadline.until == 107.5
    deadline.extend(129.0)
    assert deadline.until == 128.0
    whole = Deadline(Wait(30.0), 100.0)
    whole.extend(110.0)
    assert whole.until == 128.0


@pytest.mark.parametrize(
    "fields", [None, {}, {"sender": "a"}, {"seconds": "x"}, "text", {"seconds": 1, "patience": []}]
)
def test_a_message_that_says_nothing_has_no_end(fields: object) -> None:
    assert Wait.from_message(fields) is None


def test_a_call_counts_in_its_own_thread_until_it_is_carried_out() -> None:
    deadlines.check()
    assert deadlines.call() == ""
    over = Deadline(Wait(1.0), time.monotonic() - 10)
    with pytest.raises(Unavailable), deadlines.answering(over):
        raise AssertionError("not reached")
    deadline = Deadline(Wait(1000.0, call="c"), time.monotonic())
    with deadlines.answering(deadline):
        deadlines.check()
        assert deadlines.call() == "c"
        deadline.until = time.monotonic()
        with pytest.raises(Unavailable, match="given up"):
            deadlines.check()
        elsewhere = threading.Thread(target=deadlines.check)
        elsewhere.start()
        elsewhere.join()
        deadlines.carried_out()
        deadline.extend(0.0)
        deadlines.check()
