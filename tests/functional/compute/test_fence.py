"""The ownership fence at every call that changes something: who else's VM is there stays as it is.

The calls are recorded from real operations, so that a new one can't be forgotten. Before each, in
turn, the VM is replaced by a stranger's with the same VMID, name and tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.functional.compute.fence_stage import Stage
from tests.functional.compute.reckoning import Reckoning
from tests.functional.simulator_fixture import RunningSimulator

#: operation → its calls that change something, in order
CALLS = {
    "build": [
        "POST /nodes/N/storage/S/upload",
        "POST /nodes/N/qemu/T/clone",
        "POST /nodes/N/qemu/V/config",
        "PUT /nodes/N/qemu/V/resize",
        "POST /nodes/N/qemu/V/status/start",
    ],
    "template": [
        "POST /nodes/N/qemu",
        "POST /nodes/N/qemu/T/template",
        "POST /nodes/N/storage/S/upload",
        "POST /nodes/N/qemu/T/clone",
        "POST /nodes/N/qemu/V/config",
        "PUT /nodes/N/qemu/V/resize",
        "POST /nodes/N/qemu/V/status/start",
    ],
    "import": [
        "POST /nodes/N/storage/S/upload",
        "POST /nodes/N/qemu",
        "PUT /nodes/N/qemu/V/resize",
        "POST /nodes/N/qemu/V/status/start",
    ],
    "stop": ["POST /nodes/N/qemu/V/status/shutdown"],
    "start": ["POST /nodes/N/qemu/V/status/start"],
    "reboot": ["POST /nodes/N/qemu/V/status/reboot"],
    "hard reboot": ["POST /nodes/N/qemu/V/status/stop", "POST /nodes/N/qemu/V/status/start"],
    "destroy": [
        "POST /nodes/N/qemu/V/status/stop",
        "DELETE /nodes/N/qemu/V",
        "DELETE /nodes/N/storage/S/content/iso",
    ],
}
#: those that Proxmox VE itself refuses once the VM is another one than was looked at
BOUND = {"POST /nodes/N/qemu/V/config", "PUT /nodes/N/qemu/V/resize"}
ON_THE_VM = [
    (operation, position)
    for operation, calls in CALLS.items()
    if operation != "template"  # the rest of it is a build
    for position, call in enumerate(calls)
    if "/qemu/V" in call
]


@pytest.fixture
def stage(simulator: RunningSimulator, tmp_path: Path, reckoning: Reckoning) -> Iterator[Stage]:
    made = Stage(simulator, tmp_path)
    yield made
    # What was built, and is somebody else's since.
    reckoning.lost += made.taken
    made.client.before = None
    made.worker.stop()


def plain(call: str, vmid: int) -> str:
    """A call without what differs from run to run."""
    for pattern, name in (
        (rf"/qemu/{vmid}\b", "/qemu/V"),
        (r"/qemu/\d+", "/qemu/T"),
        (r"/nodes/[^/]+", "/nodes/N"),
        (r"/storage/[^/]+", "/storage/S"),
        (r"/content/[^/]*:iso/.*", "/content/iso"),
    ):
        call = re.sub(pattern, name, call)
    return call


@pytest.mark.parametrize("operation", CALLS)
def test_these_are_all_calls_that_change_something(stage: Stage, operation: str) -> None:
    build, command = stage.ready(operation)
    stage.client.writes.clear()
    assert stage.worker.run(command).ok
    seen = [plain(call, build.placed.vmid) for call in stage.client.writes]
    assert seen == CALLS[operation]


@pytest.mark.parametrize(("operation", "position"), ON_THE_VM)
def test_a_stranger_in_the_place_of_our_vm_is_left_alone(
    stage: Stage, operation: str, position: int
) -> None:
    """It came after the call before: whoever looks now sees it."""
    build, command = stage.ready(operation)
    vmid = build.placed.vmid
    stage.client.writes.clear()
    seen: list[Any] = []

    def before(method: str, path: str) -> None:
        if not seen and len(stage.client.writes) == position:
            vm = stage.cluster.vm(vmid)
            if vm is not None and not vm["lock"]:
                seen.append(stage.take_over(vmid))

    stage.client.before = before
    outcome = stage.worker.run(command)
    stage.client.before = None
    require_untouched(stage, outcome, seen, vmid, position)


@pytest.mark.parametrize(
    ("operation", "position"),
    [(name, at) for name, at in ON_THE_VM if CALLS[name][at] in BOUND],
)
def test_a_stranger_that_comes_between_look_and_call_is_left_alone(
    stage: Stage, operation: str, position: int
) -> None:
    build, command = stage.ready(operation)
    vmid = build.placed.vmid
    stage.client.writes.clear()
    seen: list[Any] = []

    def before(method: str, path: str) -> None:
        if not seen and method != "get" and len(stage.client.writes) == position:
            seen.append(stage.take_over(vmid))

    stage.client.before = before
    outcome = stage.worker.run(command)
    stage.client.before = None
    require_untouched(stage, outcome, seen, vmid, position + 1)


def require_untouched(stage: Stage, outcome: Any, seen: list[Any], vmid: int, calls: int) -> None:
    assert seen, "nobody took over"
    assert not outcome.ok
    assert outcome.failure is not None
    after = stage.cluster.vm(vmid)
    assert after is not None
    for name in ("config", "pending", "node", "status", "pid"):
        assert after[name] == seen[0][name], name
    on_vm = [call for call in stage.client.writes[calls:] if f"/qemu/{vmid}" in call]
    bound = [plain(call, vmid) for call in on_vm if plain(call, vmid) in BOUND]
    assert len(on_vm) == len(bound), "a call went out that nothing binds to what was seen"


def test_a_stranger_in_the_place_of_a_template_to_be_is_left_alone(stage: Stage) -> None:
    build, command = stage.ready("template")
    vmid = build.template.vmid
    stage.client.writes.clear()
    seen: list[Any] = []

    def before(method: str, path: str) -> None:
        if not seen and len(stage.client.writes) == 1:
            vm = stage.cluster.vm(vmid)
            if vm is not None and not vm["lock"]:
                seen.append(stage.take_over(vmid))

    stage.client.before = before
    outcome = stage.worker.run(command)
    stage.client.before = None
    require_untouched(stage, outcome, seen, vmid, 1)
    assert stage.cluster.is_empty(build.placed.vmid)
