"""Where the steps of an operation lie in its time."""

from __future__ import annotations

from typing import Any

import pytest

from common.story.timeline import beginning, length, marks, states_of, tasks_and_facts


def at(seconds: float) -> str:
    """A time, so many seconds after the operation began."""
    return f"2026-01-01T00:00:{seconds:09.6f}+00:00"


def a_step(start: float, end: float | None, **facts: Any) -> dict[str, Any]:
    finished = None if end is None else at(end)
    return {"name": "compute_create_vm", "started_at": at(start), "finished_at": finished, **facts}


def an_operation(**changes: Any) -> dict[str, Any]:
    return {
        "started_at": at(0),
        "finished_at": at(10),
        "events": [a_step(5, 8, result="Success"), a_step(0, 5, result="Error")],
        "transitions": [{"at": at(5), "from": {"vm_state": "building"}}],
        **changes,
    }


def test_marks_are_shares_of_the_whole_in_order_of_time() -> None:
    found = marks(an_operation())
    assert [(one.is_change, one.left, one.width) for one in found] == [
        (False, 0.0, 0.5),
        (True, 0.5, 0.0),
        (False, 0.5, pytest.approx(0.3)),
    ]
    assert [one.result for one in found if not one.is_change] == ["Error", "Success"]


def test_a_step_that_runs_lasts_until_now() -> None:
    running = an_operation(finished_at=None, events=[a_step(5, None)], transitions=[])
    [mark] = marks(running, at(20))
    assert (mark.left, mark.width, mark.took, mark.result) == (0.25, 0.75, None, "running")
    [mark] = marks(running)
    assert (mark.left, mark.width) == (1.0, 0.0)


def test_what_an_older_release_or_an_owner_lacks_is_no_error() -> None:
    assert marks({}) == []
    [change, step] = marks({"transitions": [{}], "events": [{}]})
    assert change.is_change
    assert (step.left, step.width, step.result) == (0.0, 1.0, "running")
    assert states_of(change.facts) == ("?", "?")
    assert (beginning({}), length({})) == (None, 0.0)


def test_a_step_before_the_beginning_is_at_the_beginning() -> None:
    # The clocks of two machines differ.
    operation = an_operation(events=[a_step(1, 2)], transitions=[{"at": at(0)}])
    assert min(one.left for one in marks({**operation, "started_at": at(1)})) == 0.0


def test_tasks_are_separated_from_facts() -> None:
    event = {"upid": "UPID:a", "detail": {"upids": ["UPID:b", "UPID:c"], "vmid": 7}}
    assert tasks_and_facts(event) == (["UPID:b", "UPID:c"], [("vmid", "7")])
    assert tasks_and_facts({"upid": "UPID:a"}) == (["UPID:a"], [])
