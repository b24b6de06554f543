"""After a lost answer the task that it may have started is waited for before anything is sent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from common.messages.reports import Category
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.api.tasks import Ended
from compute.hypervisor.proxmox.api.upid import Upid, parse
from compute.hypervisor.proxmox.cluster.restarts import Restarts
from compute.hypervisor.proxmox.cluster.vmid import Vm
from tests.unit.compute.fakes import FakeWork

UPID = "UPID:pve1:00000428:00031A48:6B0035AA:{}:micronova@pve!agent:"


class Node:
    """One task runs until somebody waits for it; then what it does is done."""

    def __init__(self, task: str) -> None:
        self.task = parse(UPID.format(task))
        self.done = False
        self.sent = 0

    def active(self, node: str) -> list[Upid]:
        return [] if self.done or self.task is None else [self.task]

    def log_head(self, upid: Upid) -> tuple[str, ...]:
        return ()

    def wait(self, work: Any, upid: str) -> Ended:
        self.done = True
        return Ended(upid, "OK")

    def lose_the_answer(self) -> None:
        self.sent += 1
        raise ApiError(Category.UNKNOWN_OUTCOME, "the answer was lost")


@pytest.mark.parametrize("task", ["imgdel:200@local", "qmdestroy:200"])
def test_it_is_not_sent_again_while_it_runs(task: str) -> None:
    node = Node(task)
    shared: Any = SimpleNamespace(tasks=node, restarts=Restarts())
    vm = Vm(shared, FakeWork(), 200, "pve1", None)  # type: ignore[arg-type]
    assert vm.converge(lambda: node.done, node.lose_the_answer, look_first=False) is None
    assert node.sent == 1


@pytest.mark.parametrize(
    "task", ["imgdel:2000@local", "imgdel:1200@local", "imgdel:local", "qmstart:2000"]
)
def test_what_works_on_something_else_is_not_waited_for(task: str) -> None:
    node = Node(task)
    shared: Any = SimpleNamespace(tasks=node, restarts=Restarts())
    vm = Vm(shared, FakeWork(), 200, "pve1", None)  # type: ignore[arg-type]
    with pytest.raises(ApiError):
        vm.converge(lambda: node.done, node.lose_the_answer, look_first=False)
    assert not node.done
    assert node.sent > 1
