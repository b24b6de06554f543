"""The story of a request, as lines of text."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from common.messages.scheduling import Alternate, Decision
from common.story.explanation import bar, explanation_lines
from common.story.text import (
    duration,
    facts_of,
    one_line,
    parse_time,
    plain,
    plain_text,
    seconds_between,
)

DECISION = {
    "attempt": 1,
    "at": "2026-01-01T00:00:00.500000",
    **dataclasses.asdict(
        Decision(
            server_uuid="u",
            host="pve2",
            alternates=(Alternate("pve3", "x", 0.5),),
            considered=3,
            refused={"ram": {"pve1": "512 MiB free, 2048 MiB asked"}},
            scores={
                "pve2": {"ram": 1.0, "cpu": -0.25, "total": 0.75},
                "pve3": {"ram": 0.5, "cpu": 0.0},
            },
            claims=(
                {"host": "pve1", "result": "taken by another"},
                {"host": "pve3", "result": "in the group", "generation_retries": 0},
                {
                    "host": "pve2",
                    "result": "claimed",
                    "generation_retries": 2,
                    "commit_retries": 1,
                },
            ),
            seconds=0.004,
        )
    ),
}
UPID = "UPID:pve2:0001:0001:68000000:qmcreate:100123:root@pam!m:"
FAULT = {
    "attempt": 1,
    "category": "storage_full",
    "message": "No room on local.",
    "host": "pve2",
    "upid": UPID,
    "log_tail": ["creating disk", "TASK ERROR: no space"],
    "cleaned": ["VM 100123 on pve2"],
    "left": ["volume local:vm-100123"],
    "remedy": "qm unlock 100123",
    "at": "2026-01-01T00:00:03",
}


def an_operation(**changes: Any) -> dict[str, Any]:
    """A create that failed on its first attempt."""
    return {
        "action": "create",
        "server": "u-1",
        "request_id": "req-1",
        "state": "failed",
        "attempts": 2,
        "started_at": "2026-01-01T00:00:00+00:00",
        "finished_at": "2026-01-01T00:00:04+00:00",
        "message": "No room anywhere.",
        "transitions": [
            {
                "from": {"vm_state": "building", "task_state": "scheduling"},
                "to": {"vm_state": "building", "task_state": "spawning"},
                "at": "2026-01-01T00:00:01+00:00",
            }
        ],
        "events": [
            {
                "name": "compute_create_vm",
                "host": "pve2",
                "started_at": "2026-01-01T00:00:02+00:00",
                "finished_at": "2026-01-01T00:00:03+00:00",
                "result": "Error",
                "upid": UPID,
                "detail": {"vmid": 100123, "node": "pve2", "upids": [UPID], "ips": ["a", "b"]},
            },
            {
                "name": "conductor_schedule",
                "started_at": "2026-01-01T00:00:00+00:00",
                "finished_at": "2026-01-01T00:00:00.500000+00:00",
                "result": "Success",
            },
        ],
        "decisions": [DECISION],
        "faults": [FAULT],
        **changes,
    }


def story(*operations: dict[str, Any]) -> str:
    """The plain text of an explanation."""
    servers = {"u-1": {"name": "web", "status": "ERROR", "host": "pve2"}}
    return plain_text(explanation_lines({"operations": list(operations)}, servers))


def test_the_story_in_the_order_of_time() -> None:
    text = story(an_operation())
    in_order = (
        "web u-1  ERROR on pve2",
        "create  failed in 4.00 s, 2 attempts  req-1  2026-01-01 00:00:00 UTC",
        "+0 ms  schedule",
        "+500 ms  host pve2  3 hosts considered in 4 ms",
        "+1.00 s  building (scheduling) → building (spawning)",
        "+2.00 s  create VM",
        "task UPID:pve2:",
        "addresses=a,b  node=pve2  VMID=100123",
        "+3.00 s  fault storage full on pve2: No room on local.",
        "No room anywhere.",
    )
    timeline = text.partition("\n\n")[2]
    places = [timeline.find(part) for part in in_order]
    assert -1 not in places, text
    assert places == sorted(places)


def test_a_decision_shows_all_its_numbers() -> None:
    text = story(an_operation())
    for part in (
        "refused by memory: 1 host\n",
        "pve1: 512 MiB free, 2048 MiB asked",
        "score pve2 +0.750  memory +1.000  processors -0.250",
        "claim pve1: taken by another\n",
        "claim pve3: in the group, 0 generation retries\n",
        "claim pve2: claimed, 2 generation retries, 1 commit retry\n",
        "would have done as well: pve3",
    ):
        assert part in text


def test_a_fault_shows_log_cleaning_and_remedy() -> None:
    text = story(an_operation())
    for part in (
        "log: TASK ERROR: no space",
        "cleaned up: VM 100123 on pve2",
        "still there: volume local:vm-100123",
        "do this: qm unlock 100123",
    ):
        assert part in text


def test_nowhere_gives_the_reason() -> None:
    body = {"host": None, "considered": 1, "reason": "1 host refused by ram."}
    text = story(an_operation(decisions=[body]))
    assert "no host: 1 host refused by ram.  1 host considered" in text


def test_what_would_have_worked_is_repeated_with_its_host() -> None:
    changes = [
        {"field": "memory_mib", "asked": 4096, "works": 2048},
        {"field": "force_host", "asked": "pve9", "works": None},
        {"field": "networks", "asked": ["vmbr7"], "works": []},
    ]
    body = {"host": None, "suggestion": {"changes": changes, "hosts": 1, "host": "pve2"}}
    text = story(an_operation(decisions=[body]))
    assert (
        "would do: pve2, if the memory were 2 GiB instead of 4 GiB, "
        "and without a forced host and without network vmbr7"
    ) in text


def test_every_way_around_a_group_is_repeated() -> None:
    ways = [
        {"changes": [{"field": field, "asked": asked, "works": works}], "hosts": 1, "host": host}
        for field, asked, works, host in (
            ("max_server_per_host", 1, 2, "pve1"),
            ("group", "g-1", None, "pve2"),
        )
    ]
    body = {"host": None, "suggestion": {**ways[0], "others": ways[1:]}}
    text = story(an_operation(decisions=[body]))
    assert "would do: pve1, in a group with max_server_per_host 2\n" in text
    assert "would do: pve2, without its server group\n" in text


def test_many_hosts_are_counted() -> None:
    refused = {f"pve{n}": "full" for n in range(9)}
    body = {"host": None, "considered": 9, "refused": {"disk": refused}}
    text = story(an_operation(decisions=[body]))
    assert "refused by disk: 9 hosts" in text
    assert "and 4 more refused" in text


def test_an_owner_reads_no_numbers_and_no_hosts() -> None:
    body = {"placed": True, "refused_by": ["ram"], "reason": None}
    text = story(an_operation(decisions=[body]))
    assert "a host was found\n" in text
    assert "refused by memory\n" in text
    assert "considered" not in text


def test_why_no_host_was_found_is_in_the_summary_and_once_in_the_timeline() -> None:
    why = "None of 6 hosts has room: 9 MiB RAM asked, 5 MiB free at most (pve2). It would fit."
    changes = [{"field": "memory_mib", "asked": 9, "works": 5}]
    body = {
        "host": None,
        "considered": 6,
        "reason": why,
        "suggestion": {"changes": changes, "hosts": 1, "host": "pve2"},
    }
    fault = {"category": "no_valid_host", "message": why, "log_tail": [], "cleaned": []}
    text = story(an_operation(decisions=[body], faults=[fault], message=why))
    short, _, timeline = text.partition("\n\n")
    assert short.splitlines()[:2] == ["Create of server web failed.", why]
    assert timeline.count("None of 6 hosts") == 1
    assert "would do" not in text
    more = {**fault, "message": f"{why} Earlier attempts failed on 2."}
    assert "Earlier attempts" in story(an_operation(decisions=[body], faults=[more]))


def test_each_server_of_a_request_has_its_head_once() -> None:
    text = story(an_operation(), an_operation(), an_operation(server="u-2"))
    assert (text.count("web u-1"), text.count("server u-2")) == (1, 1)


def test_a_running_operation() -> None:
    running = {"name": "compute_create_vm", "started_at": "2026-01-01T00:00:02+00:00"}
    text = story(
        an_operation(state="running", finished_at=None, events=[running], faults=[], message=None)
    )
    assert "create  running, 2 attempts" in text
    assert "running\n" in text


@pytest.mark.parametrize("explanation", [{}, {"subject": "u", "operations": None}])
def test_nothing_is_an_answer_too(explanation: dict[str, Any]) -> None:
    assert "nothing was done" in plain_text(explanation_lines(explanation))


def test_what_is_not_known_is_left_out() -> None:
    bare = {"transitions": [{}], "events": [{}], "decisions": [{}], "faults": [{}]}
    assert "operation  unknown" in story(bare)


def test_what_would_control_the_terminal_is_taken_out() -> None:
    text = story(an_operation(message="\x1b[2Jgone\nnext"))
    assert "\x1b" not in text
    assert "gone next" in text


@pytest.mark.parametrize(
    ("start", "length", "total", "shape"),
    [
        (0.0, 1.0, 1.0, "█" * 24),
        (0.5, 0.5, 1.0, " " * 12 + "█" * 12),
        (1.0, 0.0, 1.0, " " * 23 + "█"),
        (0.0, None, 1.0, " " * 24),
        (0.0, 1.0, 0.0, " " * 24),
        (9.0, 9.0, 1.0, " " * 23 + "█"),
    ],
)
def test_bars(start: float, length: float | None, total: float, shape: str) -> None:
    assert bar(start, length, total) == shape


def test_times() -> None:
    assert [duration(s) for s in (None, 0.0042, 1.5, 75, 7205, -1)] == [
        *("", "4 ms", "1.50 s", "1 min 15 s", "2 h 00 min", "0 ms")
    ]
    assert seconds_between("2026-01-01T00:00:00", "2026-01-01T00:00:01Z") == 1.0
    assert seconds_between("2026-01-01T00:00:00", None) is None
    assert parse_time("yesterday") is None
    assert one_line(" a\nb ") == "a b"
    assert plain((("a ", ""), ("b  ", "bold"))) == "a b"


ARRIVED = (
    {
        "name": "api_request",
        "started_at": "2025-12-31T23:59:59.900000+00:00",
        "finished_at": "2026-01-01T00:00:00+00:00",
        "result": "Success",
        "detail": {"method": "POST", "path": "/v2.1/servers", "status": 202},
    },
    {
        "name": "conductor_take_quota",
        "started_at": "2025-12-31T23:59:59.950000+00:00",
        "finished_at": "2026-01-01T00:00:00+00:00",
        "result": "Success",
        "detail": {
            "ram": {"limit": 4096, "used": 0, "asked": 2048},
            "cores": {"limit": -1, "used": 3, "asked": 1},
        },
    },
)


def test_the_story_begins_when_the_request_came() -> None:
    events = [*an_operation()["events"], *ARRIVED]
    text = story(an_operation(events=events))
    in_order = (
        "create  failed in 4.10 s, 2 attempts  req-1  2025-12-31 23:59:59 UTC",
        "+0 ms  request received",
        "method=POST  path=/v2.1/servers  status=202",
        "+50 ms  take quota",
        "cores=1 asked, 3 used, no limit  memory=2048 asked, 0 of 4096 used",
        "+100 ms  schedule",
    )
    places = [text.find(part) for part in in_order]
    assert -1 not in places, text
    assert places == sorted(places)


def test_a_refusal_has_no_server_and_its_path_controls_no_terminal() -> None:
    refused = an_operation(
        action="DELETE /v2.1/x\x1b[2J",
        server=None,
        state="refused",
        attempts=1,
        transitions=[],
        events=[],
        decisions=[],
        faults=[],
    )
    text = story(refused)
    assert text.startswith("DELETE /v2.1/x [2J was refused.\nNo room anywhere.\n\n")
    assert "\nDELETE /v2.1/x [2J  refused in 4.00 s  req-1" in text
    assert "server" not in text
    assert "No room anywhere." in text


@pytest.mark.parametrize(("days", "said"), [(0, "0 days"), (1, "1 day "), (90, "90 days")])
def test_what_is_forgotten_is_said(days: int, said: str) -> None:
    gone = {"at": "2026-04-01T00:00:00", "after_days": days}
    text = story(an_operation(forgotten=gone, events=[], transitions=[], decisions=[]))
    assert f"were forgotten {said}" in text
    assert "forgotten" not in story(an_operation())


def test_what_a_step_does_not_know_is_not_reported() -> None:
    assert facts_of({"host": None, "left": [], "considered": 8, "retries": 0}) == [
        ("considered", "8"),
        ("retries", "0"),
    ]
