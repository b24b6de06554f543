"""Checks by name: what fails is logged once, and an answer is kept for a moment."""

from __future__ import annotations

import threading
import time

import pytest

from common.errors import Unavailable
from common.process import health
from common.process.health import Answer, Check, Health


def fails() -> bool:
    raise Unavailable("The database is not available.")


def test_one_check_that_fails_is_enough() -> None:
    assert Answer(lambda: {"a": lambda: True}).ok()
    assert Answer(dict).ok()
    assert not Answer(lambda: {"a": lambda: True, "b": lambda: False}).ok()
    assert not Answer(lambda: {"a": fails}).ok()


def test_an_answer_is_kept_for_a_moment() -> None:
    asked: list[int] = []
    answer = Answer(lambda: {"a": lambda: not asked.append(1)})
    assert answer.ok()
    assert answer.ok()
    assert len(asked) == 1


def test_what_fails_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    checks: dict[str, Check] = {"database": fails}
    answer = Answer(lambda: checks, kept_seconds=0)
    with caplog.at_level("INFO"):
        assert not answer.ok()
        assert not answer.ok()
        checks["database"] = lambda: True
        assert answer.ok()
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "The check of database fails: The database is not available.",
        "The check of database succeeds again.",
    ]


def test_what_fails_elsewhere_is_logged_without_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def check() -> bool:
        raise Unavailable("It came too late.\nTraceback (most recent call last):\n  File")

    assert not Answer(lambda: {"conductor": check}).ok()
    assert caplog.messages == ["The check of conductor fails: It came too late."]


def test_several_services_in_one_process() -> None:
    both = Health(alive={"a": lambda: True}).beside("api", Health({"b": fails}, {"c": fails}))
    assert both.alive.keys() == {"a", "api b"}
    assert both.ready.keys() == {"api c"}


def test_a_check_that_waits_delays_no_prompt_answer() -> None:
    """The last result holds for a while; then it has failed, until the check ends."""
    goes_on, waits = threading.Event(), threading.Event()
    goes_on.set()

    def check() -> bool:
        waits.set()
        return goes_on.wait(60)

    answer = health.PromptAnswer(lambda: {"database": check}, prompt_seconds=0.01, slow_seconds=2)
    assert eventually(answer, True)
    goes_on.clear()
    waits.clear()
    while not waits.wait(0.01):
        assert answer.ok()
    assert answer.ok()
    assert eventually(answer, False)
    goes_on.set()
    assert eventually(answer, True)


def test_a_check_that_fails_once_is_forgiven() -> None:
    """While a broker's connections are cut no machine may answer a question for a moment."""
    checks: dict[str, Check] = {"conductor": lambda: True}
    answer = health.PromptAnswer(lambda: checks, kept_seconds=0.01, forgiving_seconds=2)
    assert eventually(answer, True)
    failed = threading.Event()

    def fail() -> bool:
        failed.set()
        return False

    checks["conductor"] = fail
    while not failed.is_set():
        assert answer.ok()
    assert answer.ok()
    assert eventually(answer, False)
    checks["conductor"] = lambda: True
    assert eventually(answer, True)


def test_what_takes_nothing_says_so_at_once() -> None:
    takes = [True]
    answer = health.PromptAnswer(dict, takes=lambda: takes[0])
    assert eventually(answer, True)
    takes[0] = False
    assert not answer.ok()


def test_nothing_is_well_before_the_first_look() -> None:
    goes_on = threading.Event()
    checks = {"database": lambda: goes_on.wait(60)}
    answer = health.PromptAnswer(lambda: checks, prompt_seconds=0.01)
    assert not answer.ok()
    goes_on.set()
    assert eventually(answer, True)


def test_a_prompt_answer_looks_again() -> None:
    asked: list[None] = []

    def checks() -> dict[str, Check]:
        asked.append(None)
        return {} if len(asked) > 1 else {"none": fails}

    assert eventually(health.PromptAnswer(checks), True)


def test_a_prompt_answer_says_what_fails() -> None:
    assert not health.PromptAnswer(lambda: {"database": lambda: False}).ok()


def eventually(answer: health.Answer, wanted: bool) -> bool:
    until = time.monotonic() + 60
    while (found := answer.ok()) != wanted and time.monotonic() < until:
        threading.Event().wait(0.01)
    return found == wanted
