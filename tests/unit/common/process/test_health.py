"""Checks by name: what fails is logged once, and an answer is kept for a moment."""

from __future__ import annotations

import pytest

from common.errors import Unavailable
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


def test_what_fails_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("common.process.health.KEPT_SECONDS", 0)
    checks: dict[str, Check] = {"database": fails}
    answer = Answer(lambda: checks)
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


def test_several_services_in_one_process() -> None:
    both = Health(alive={"a": lambda: True}).beside("api", Health({"b": fails}, {"c": fails}))
    assert both.alive.keys() == {"a", "api b"}
    assert both.ready.keys() == {"api c"}
