"""Waiting for tasks: each kind has its time, and what took too long is probed, not stopped."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from common.messages.reports import Category
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.api.deadlines import DEADLINES, OTHER_DEADLINE
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.api.tasks import Tasks
from tests.unit.compute.fakes import FakeWork

UPID = "UPID:pve1:000005F5:00060595:6B003D23:{}:100:a@pve!t:"


class Node(Client):
    """Answers for one task, which runs until `exit_status` is set."""

    def __init__(self) -> None:
        self.exit_status: str | None = None
        self.asked = threading.Event()
        self.deleted = False
        self.log = ["transferred 1 of 9 GiB"]

    def get(self, path: str, **params: Any) -> Any:
        self.asked.set()
        if path.endswith("/log"):
            return [{"n": n, "t": text} for n, text in enumerate(self.log)][params["start"] :]
        if self.exit_status is None:
            return {"status": "running"}
        return {"status": "stopped", "exitstatus": self.exit_status}

    def delete(self, path: str, **params: Any) -> None:
        self.deleted = True


@pytest.mark.parametrize("kind", ["qmclone", "qmstart"])
def test_a_task_that_outlives_its_kind_is_unknown_and_left_to_end(kind: str) -> None:
    node = Node()
    tasks = Tasks(node, {kind: 0.05})
    upid = UPID.format(kind)
    with pytest.raises(ApiError) as caught:
        tasks.wait(FakeWork(), upid)
    assert caught.value.category is Category.TASK_TIMEOUT
    assert caught.value.upid == upid
    assert caught.value.log_tail == ("transferred 1 of 9 GiB",)
    assert not node.deleted
    node.exit_status = "OK"


class EndsAtProgress(FakeWork):
    """Lets the task end once progress is reported."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self._node = node

    def progress(self, **detail: Any) -> None:
        super().progress(**detail)
        self._node.exit_status = "OK"


def test_what_copies_is_reported_while_it_is_awaited() -> None:
    node = Node()
    node.log = ["transferred 1.0 GiB of 4.0 GiB (25.00%)"]
    work = EndsAtProgress(node)
    tasks = Tasks(node, watch_seconds=0.01)
    assert tasks.wait(work, UPID.format("qmclone")).ok
    progress = work.reported[0]["progress"]
    assert (progress["percent"], progress["disk_total_bytes"]) == (25, 4 << 30)


def test_what_copies_may_take_longer_than_what_switches() -> None:
    assert DEADLINES["qmclone"] > DEADLINES["qmdestroy"] > DEADLINES["qmstop"]
    assert all(seconds >= 60 for seconds in (*DEADLINES.values(), OTHER_DEADLINE))


@pytest.mark.parametrize(("status", "warned"), [("OK", False), ("WARNINGS: 2", True)])
def test_warnings_are_a_success_to_be_looked_at(status: str, warned: bool) -> None:
    node = Node()
    node.exit_status = status
    ended = Tasks(node).wait(FakeWork(), UPID.format("qmdestroy"))
    assert ended.ok
    assert ended.warnings is warned


def test_a_worker_that_was_killed_leaves_an_unknown_outcome() -> None:
    node = Node()
    node.exit_status = "unexpected status"
    with pytest.raises(ApiError) as caught:
        Tasks(node).wait(FakeWork(), UPID.format("qmcreate"))
    assert caught.value.category is Category.UNKNOWN_OUTCOME
