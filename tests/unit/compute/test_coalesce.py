"""Requests that come while an action runs make it run once more."""

from __future__ import annotations

import threading

import pytest

from compute.worker.batching import Coalesced

SECONDS = 30


def test_each_request_of_its_own_is_answered() -> None:
    runs: list[int] = []
    action = Coalesced(lambda: runs.append(1))
    action()
    action()
    assert len(runs) == 2


def test_requests_during_a_run_are_answered_together() -> None:
    began, may_end = threading.Event(), threading.Event()
    runs: list[int] = []

    def work() -> None:
        runs.append(1)
        began.set()
        assert may_end.wait(SECONDS)

    action = Coalesced(work)
    first = threading.Thread(target=action)
    first.start()
    assert began.wait(SECONDS)
    for _ in range(5):
        action()
    assert len(runs) == 1
    may_end.set()
    first.join(SECONDS)
    assert len(runs) == 2


def test_a_failure_is_raised_and_the_next_request_runs() -> None:
    runs: list[int] = []

    def work() -> None:
        runs.append(1)
        if len(runs) == 1:
            raise ValueError("once")

    action = Coalesced(work)
    with pytest.raises(ValueError, match="once"):
        action()
    action()
    assert len(runs) == 2
