"""An explanation in short: what, why, and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from common.story.summary import summary

SERVERS = {"u-1": {"name": "web"}}
OFFLINE = {"name": "pve2", "state": "down", "health": "The node is offline."}
UNHEALTHY = {"category": "node_unhealthy", "message": "No route to host"}


def lines(*operations: dict[str, Any], **explanation: Any) -> tuple[str, ...]:
    found = summary({"operations": operations, **explanation}, SERVERS)
    assert found is not None
    return found.lines()


def an_operation(action: str, state: str, **changes: Any) -> dict[str, Any]:
    return {"action": action, "state": state, "server": "u-1", **changes}


WAITING: dict[str, Any] = {
    **an_operation("stop", "queued", waits_until="2099-01-01T03:36:31Z", faults=[UNHEALTHY]),
    "retry": "micronova server retry u-1",
}


@pytest.mark.parametrize(
    ("operation", "explanation", "expected"),
    [
        (an_operation("stop", "done"), {}, ["Stop of server web is done."]),
        (
            an_operation("stop", "done"),
            {"host": OFFLINE},
            ["Host pve2: The node is offline.", "Stop of server web is done."],
        ),
        (
            WAITING,
            {"host": OFFLINE},
            [
                "Host pve2: The node is offline.",
                "Stop of server web waits, and is tried again at 03:36:31 UTC.",
                "To try it at once: micronova server retry u-1",
            ],
        ),
        (
            {**WAITING, "retry": None},
            {"host": {"name": None, "health": "The server's host does not answer."}},
            [
                "The server's host does not answer.",
                "Stop of server web waits, and is tried again at 03:36:31 UTC.",
                "Nothing needs to be done: it is tried again by itself.",
            ],
        ),
        (
            WAITING | {"held": True, "faults": [{"category": "lock", "message": "It is busy."}]},
            {"host": OFFLINE},
            [
                "Host pve2: The node is offline.",
                "Stop of server web is held: nothing is tried again until it is released. "
                "It is busy.",
                "To go on: micronova server release-hold u-1",
            ],
        ),
        (
            an_operation("create", "failed", message="No room."),
            {},
            [
                "Create of server web failed.",
                "No room.",
                "Then delete it, and create it again: micronova server delete u-1",
            ],
        ),
        (
            {
                "action": "create-volume",
                "state": "failed",
                "resource": {"type": "volume", "id": "v-1"},
                "faults": [{"message": "The storage is full.", "remedy": "pvesm free x"}],
            },
            {"volume": {"name": "data"}},
            ["Create of volume data failed.", "The storage is full.", "Do this: pvesm free x"],
        ),
        (
            {"action": "POST /servers", "state": "refused", "message": "Quota exceeded."},
            {},
            ["POST /servers was refused.", "Quota exceeded."],
        ),
        (
            an_operation("reboot", "unwinding"),
            {},
            ["Reboot of server web failed, and is being undone."],
        ),
        (an_operation("reboot", "running"), {}, ["Reboot of server web is under way."]),
    ],
)
def test_what_why_and_what_to_do(
    operation: dict[str, Any], explanation: dict[str, Any], expected: list[str]
) -> None:
    found = lines(operation, **explanation)
    assert list(found) == expected
    assert 1 <= len(found) <= 3


def test_the_newest_operation_is_summed_up() -> None:
    older = an_operation("create", "done", started_at="2026-01-01T00:00:00Z")
    newer = an_operation("stop", "done", started_at="2026-01-01T00:00:01Z")
    assert lines(newer, older) == ("Stop of server web is done.",)
    assert summary({"operations": []}) is None
