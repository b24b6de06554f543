"""An explanation as pages show it."""

from __future__ import annotations

from typing import Any

from dashboard.story import WIDTH, decided, operations_of
from tests.unit.cli.render.test_explanation import DECISION, FAULT, UPID, an_operation


def a_step(attempt: int, result: str, **facts: Any) -> dict[str, Any]:
    at = f"2026-01-01T00:00:0{attempt}"
    return {
        "name": "compute_create_vm",
        "attempt": attempt,
        "started_at": f"{at}.000000",
        "finished_at": f"{at}.500000",
        "result": result,
        **facts,
    }


def test_the_waterfall_has_changes_attempts_tasks_and_faults() -> None:
    events = [a_step(1, "Error", upid=UPID, detail={"vmid": 7}), a_step(3, "Success")]
    [operation] = operations_of({"operations": [an_operation(events=events)]})
    change, failed, done = operation.bars
    assert (change.is_change, change.name) == (
        True,
        "building (scheduling) → building (spawning)",
    )
    assert failed.details == (("task", UPID), ("vmid", "7"))
    assert [one.new_attempt for one in operation.bars] == [0, 0, 3]
    assert (failed.left, done.left, done.width) == (250.0, 750.0, 125.0)
    [fault] = operation.faults
    assert (fault["remedy"], fault["upid"]) == (FAULT["remedy"], UPID)


def test_only_what_administrators_see_has_hosts() -> None:
    for host, expected in (("pve1", True), (None, False)):
        events = [a_step(1, "Success", host=host)]
        [shown] = operations_of({"operations": [an_operation(events=events)]})
        assert shown.has_hosts is expected


def test_a_short_step_at_the_end_can_be_seen() -> None:
    step = {**a_step(4, "Success"), "finished_at": "2026-01-01T00:00:04.000000"}
    [operation] = operations_of({"operations": [an_operation(events=[step], transitions=[])]})
    [bar] = operation.bars
    assert bar.width > 0
    assert bar.left + bar.width <= WIDTH


def test_a_decision_of_operators_and_of_owners() -> None:
    found = decided(DECISION)
    assert (found.host, found.alternates) == ("pve2", ("pve3",))
    assert found.claims[-1] == "pve2: claimed, 2 generation retries, 1 commit retry"
    assert found.refused_by == (("ram", 1),)
    assert [row.name for row in found.matrix.rows] == ["pve2", "pve3", "pve1"]
    owner = decided({"placed": False, "refused_by": ["ram"], "reason": "No room."})
    assert (owner.host, owner.reason, owner.refused_by) == ("", "No room.", (("ram", 0),))
    assert owner.matrix.rows == ()
