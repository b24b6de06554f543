"""Token buckets: exact, shared by processes, in bounded memory."""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Callable

import pytest

from common.errors import Invalid
from web.buckets import Buckets, Rate

SLOW = Rate(1e-6, 40)
"""Nothing is added while a test runs."""


class Clock:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.mark.parametrize(
    ("text", "rate"),
    [("10/50", Rate(10.0, 50)), (" 0.5/1 ", Rate(0.5, 1)), ("2.5/1000000", Rate(2.5, 1_000_000))],
)
def test_a_rate_is_read(text: str, rate: Rate) -> None:
    assert Rate.parse(text) == rate


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10",
        "10/",
        "/5",
        "0/5",
        "-1/5",
        "10/0",
        "10/-1",
        "nan/5",
        "inf/5",
        "1/1.5",
        "a/b",
        "1/2/3",
    ],
)
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        Rate.parse(text)


def test_a_bucket_fills_again_and_no_further() -> None:
    clock = Clock()
    buckets, rate = Buckets(now=clock), Rate(2.0, 3)
    assert [buckets.take([("a", rate)]) for _ in range(3)] == [0.0] * 3
    assert buckets.take([("a", rate)]) == pytest.approx(0.5)
    clock.at += 0.5
    assert buckets.take([("a", rate)]) == 0.0
    assert buckets.take([("a", rate)]) == pytest.approx(0.5)
    clock.at += 1000
    assert [bool(buckets.take([("a", rate)])) for _ in range(4)] == [False, False, False, True]


def test_refusals_cost_nothing() -> None:
    clock = Clock()
    buckets, rate = Buckets(now=clock), Rate(1.0, 1)
    buckets.take([("a", rate)])
    for _ in range(100):
        assert buckets.take([("a", rate)]) > 0
    clock.at += 1.0
    assert buckets.take([("a", rate)]) == 0.0


def test_one_is_taken_of_each_or_of_none() -> None:
    buckets, small, large = Buckets(), Rate(1e-6, 1), Rate(1e-6, 3)
    assert buckets.take([("user", small), ("project", large)]) == 0.0
    assert buckets.take([("user", small), ("project", large)]) > 0
    assert [bool(buckets.take([("project", large)])) for _ in range(3)] == [False, False, True]


def test_a_time_that_steps_back_gives_nothing() -> None:
    clock = Clock()
    buckets, rate = Buckets(now=clock), Rate(1.0, 1)
    buckets.take([("a", rate)])
    clock.at -= 500
    assert buckets.take([("a", rate)]) == pytest.approx(1.0)


def test_more_keys_than_places_cost_no_memory_and_leave_the_busy_one() -> None:
    clock = Clock()
    buckets = Buckets(places=64, now=clock)
    for number in range(2000):
        clock.at += 0.001
        buckets.take([("busy", SLOW)])
        buckets.take([(f"key {number}", SLOW)])
    assert buckets.take([("busy", SLOW)]) > 0
    assert len(buckets._memory) == 64 * 32


def test_two_keys_of_one_request_never_share_a_place() -> None:
    buckets = Buckets(places=8)
    for number in range(300):
        names = [f"{number} {letter}" for letter in "ab"]
        assert buckets.take([(name, Rate(1e-6, 1)) for name in names]) == 0.0
        assert all(buckets.take([(name, Rate(1e-6, 1))]) > 0 for name in names)


def test_threads_get_exactly_what_there_is() -> None:
    buckets = Buckets()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda _: buckets.take([("a", SLOW)]) == 0.0, range(800)))
    assert sum(taken) == SLOW.burst


def forked(work: Callable[[], int]) -> int:
    """Run it in a process that is forked; return its number."""
    pid = os.fork()
    if pid == 0:
        os._exit(work())
    return pid


def test_processes_get_exactly_what_there_is() -> None:
    buckets = Buckets()

    def work() -> int:
        return sum(buckets.take([("a", SLOW)]) == 0.0 for _ in range(200))

    children = [forked(work) for _ in range(8)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    assert sum(codes) == SLOW.burst
