"""Pause, suspend and the ways back, while the one call of each to Proxmox VE fails in every way.

Whatever happens the action ends, the server is what its VM is, and the VM is what it was or what
was asked for; then it can be restarted, and deleted without a trace.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.test_real_world import at_rest, last_operation, vm_of
from tests.chaos.world import World, world

#: action → what comes before it, and the two states between which it leads
ACTIONS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "pause": ((), "active", "paused"),
    "unpause": (("pause",), "paused", "active"),
    "suspend": ((), "active", "suspended"),
    "resume": (("suspend",), "suspended", "active"),
}
FAULTS: dict[str, dict[str, Any]] = {
    "fail": {"action": "fail", "status": 500, "text": "something broke"},
    "lock": {"action": "fail", "status": 500, "text": "VM is locked (backup)"},
    "lost": {"action": "lose-answer"},
    "dropped": {"action": "drop"},
    "task": {"action": "task-fail", "text": "start failed: QEMU exited with code 1"},
    "kill": {"action": "task-kill"},
}
#: in every run; all others with ``-m long``
SAMPLE = {("pause", "lost"), ("suspend", "lost"), ("suspend", "task"), ("resume", "fail")}
CASES = [
    pytest.param(*case, marks=() if case in SAMPLE else pytest.mark.long)
    for case in itertools.product(ACTIONS, FAULTS)
]


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One cloud for all cases; at its end nothing is left."""
    folder: Path = tmp_path_factory.mktemp("cloud")
    with world(folder / "world") as running:
        yield running


def what(vm: Any) -> str:
    """The vm_state of a server with this VM."""
    if vm["lock"] == "suspended":
        return "suspended"
    return {"running": "active", "paused": "paused", "stopped": "stopped"}[vm["qmp"]]


@pytest.mark.parametrize(("action", "fault"), CASES)
def test_the_server_is_what_its_vm_is(cloud: World, action: str, fault: str) -> None:
    before, was, becomes = ACTIONS[action]
    row = cloud.built(f"{action}-{fault}")
    for one in before:
        cloud.act(row.uuid, one)
        assert at_rest(cloud, row.uuid).vm_state == was
    cloud.simulator.fault(method="POST", path=rf"/{row.vmid}/status/\w+$", **FAULTS[fault])
    cloud.act(row.uuid, action)
    after = at_rest_though_it_waits(cloud, row.uuid)
    assert after.vm_state in (was, becomes)
    assert after.vm_state == what(vm_of(cloud, row))
    operation = last_operation(cloud, row.uuid)
    assert operation.state == ("done" if after.vm_state == becomes else "failed")
    cloud.calm()
    cloud.follow_remedies()
    cloud.act(row.uuid, "reboot-hard")
    assert at_rest(cloud, row.uuid).vm_state == "active"
    assert what(vm_of(cloud, row)) == "active"
    cloud.delete(row.uuid)
    assert vm_of(cloud, row) is None


def at_rest_though_it_waits(cloud: World, uuid: str) -> Any:
    """The server's row once the action has ended; a waiting one is tried again at once."""

    def rest() -> Any:
        row = cloud.server(uuid)
        if row.task_state is not None and last_operation(cloud, uuid).state == "queued":
            cloud.end_pauses()
        return row.task_state is None and row

    return cloud.until(rest)
