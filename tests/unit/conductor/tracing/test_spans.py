"""Spans made of the ledger: their tree, their times, and which operations are sent."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import pytest

from conductor.store.ledger.stories import Event, OperationFault, Story, Traced, Transition
from conductor.tracing.spans import Span, spans_of, trace_id, wanted
from db.reads.ledger.operations import Decision, Operation

BEGAN = datetime.datetime(2026, 11, 25, 12, 0, 0, tzinfo=datetime.UTC)
REQUEST = "req-0af76519-16cd-43dd-8448-eb211c80319c"
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def at(seconds: float) -> datetime.datetime:
    return BEGAN + datetime.timedelta(seconds=seconds)


def upid(kind: str, seconds: int) -> str:
    return f"UPID:pve1:00001234:00ABCDEF:{int(at(seconds).timestamp()):08X}:{kind}:100:u@pve:"


def a_step(name: str, begins: float, ends: float | None, **more: Any) -> Event:
    result = None if ends is None else "Success"
    values = {"attempt": 1, "sequence": 0, "host": "pve1", "result": result, "upid": None}
    return Event(
        1,
        name=name,
        started_at=at(begins),
        finished_at=None if ends is None else at(ends),
        **{**values, "detail": {}, **more},
    )


def a_story(**changes: Any) -> Story:
    operation = Operation(
        id=1,
        resource_type="server",
        resource_id="uuid",
        project_id="p",
        user_id="u",
        request_id=REQUEST,
        global_request_id=None,
        action="create",
        state="done",
        attempt=1,
        message=None,
        started_at=at(0),
        updated_at=at(9),
        finished_at=at(9),
        forgotten_at=None,
    )
    building = {"operation_id": 1, "from_vm_state": "building", "to_vm_state": "building"}
    moves = [
        Transition(**building, from_task_state=None, to_task_state="scheduling", at=at(0)),
        Transition(**building, from_task_state="scheduling", to_task_state="spawning", at=at(1)),
        Transition(
            **{**building, "to_vm_state": "active"},
            from_task_state="spawning",
            to_task_state=None,
            at=at(8),
        ),
    ]
    events = [
        a_step("api_request", -0.5, 0.1, host=None),
        a_step("conductor_schedule", 0.2, 0.9, host=None, detail={"hosts": {"b": 1, "a": 2}}),
        a_step(
            "compute_create_vm",
            2,
            7,
            upid=upid("qmconfig", 5),
            detail={"upids": [upid("qmclone", 1), upid("qmconfig", 5)], "vmid": 100},
        ),
    ]
    whole = Story(operation, events, moves, [], [])
    return dataclasses.replace(whole, **changes)


def named(spans: list[Span], name: str) -> Span:
    (found,) = [one for one in spans if one.name == name]
    return found


def test_the_tree_of_a_build() -> None:
    spans = spans_of(Traced(a_story(), None))
    whole, spawning = named(spans, "create server"), named(spans, "spawning")
    step, clone = named(spans, "compute_create_vm"), named(spans, "proxmox qmclone")
    assert {one.trace_id for one in spans} == {0x0AF7651916CD43DD8448EB211C80319C}
    assert len({one.span_id for one in spans}) == len(spans) == 8
    assert whole.parent_id is None
    assert (whole.begins, whole.ends) == (at(-0.5), at(9))
    assert (spawning.begins, spawning.ends, spawning.parent_id) == (at(1), at(8), whole.span_id)
    assert named(spans, "scheduling").ends == at(1)
    assert named(spans, "conductor_schedule").parent_id == named(spans, "scheduling").span_id
    assert named(spans, "api_request").parent_id == whole.span_id
    assert step.parent_id == spawning.span_id
    # Its own clock says that it began before its step did.
    assert (clone.begins, clone.ends, clone.parent_id) == (at(2), at(5), step.span_id)
    config = named(spans, "proxmox qmconfig")
    assert (config.begins, config.ends, config.remote) == (at(5), at(7), True)
    assert config.attributes["proxmox.node"] == "pve1"
    assert step.attributes["micronova.vmid"] == 100
    shown = named(spans, "conductor_schedule").attributes["micronova.hosts"]
    assert shown == '{"a": 2, "b": 1}'
    assert all(one.failure is None for one in spans)


def test_it_is_the_same_each_time() -> None:
    assert spans_of(Traced(a_story(), None)) == spans_of(Traced(a_story(), None))


def test_a_caller_s_trace_goes_on() -> None:
    spans = spans_of(Traced(a_story(), PARENT))
    assert {one.trace_id for one in spans} == {0x4BF92F3577B34DA6A3CE929D0E0E4736}
    assert spans[0].parent_id == 0x00F067AA0BA902B7


def test_attempts_decisions_and_faults_are_events() -> None:
    story = a_story()
    failed = dataclasses.replace(story.operation, state="failed", message="No room.", attempt=2)
    again = a_step("compute_create_vm", 4, 5, attempt=2, result="Error")
    fault = OperationFault(
        operation_id=1,
        attempt=1,
        server_uuid="uuid",
        request_id=REQUEST,
        code=500,
        category="storage_full",
        message="No room on s.",
        owner_message=None,
        host="pve1",
        upid=None,
        log_tail=["a", "b"],
        cleaned=["VM 100"],
        left=[],
        remedy=None,
        created_at=at(3),
    )
    decision = Decision(1, 1, {"host": "pve1"}, at(1))
    spans = spans_of(
        Traced(
            a_story(
                operation=failed,
                events=[*story.events, again],
                faults=[fault],
                decisions=[decision],
            ),
            None,
        )
    )
    whole = spans[0]
    assert whole.failure == "No room."
    assert [mark.name for mark in whole.marks] == ["attempt", "decision", "exception", "attempt"]
    exception = whole.marks[2].attributes
    assert (exception["exception.type"], exception["micronova.log_tail"]) == (
        "storage_full",
        "a\nb",
    )
    assert "micronova.left" not in exception
    assert [one.failure for one in spans if one.name == "compute_create_vm"] == [
        None,
        "compute_create_vm failed.",
    ]


def test_a_step_without_an_end_lasts_as_long_as_its_operation() -> None:
    spans = spans_of(Traced(a_story(events=[a_step("compute_create_vm", 2, None)]), None))
    step = named(spans, "compute_create_vm")
    assert (step.ends, step.attributes["micronova.result"]) == (at(9), "unknown")


def test_another_request_id_gives_a_trace_too() -> None:
    assert trace_id("req-from-elsewhere", None) == trace_id("req-from-elsewhere", None) != 0
    assert trace_id("req-00000000-0000-0000-0000-000000000000", None) != 0


@pytest.mark.parametrize(
    ("state", "parent", "ratio", "expected"),
    [
        ("done", None, 1.0, True),
        ("done", None, 0.0, False),
        ("failed", None, 0.0, True),
        ("done", PARENT, 0.0, True),
        ("failed", f"{PARENT[:-1]}0", 1.0, False),
    ],
)
def test_what_is_sent(state: str, parent: str | None, ratio: float, expected: bool) -> None:
    story = a_story()
    changed = dataclasses.replace(story.operation, state=state)
    assert wanted(Traced(a_story(operation=changed), parent), ratio) is expected
