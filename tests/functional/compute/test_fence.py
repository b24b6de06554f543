"""The ownership fence at every call that changes something: VMs of others are left as they are.

The calls are recorded from real operations, so that a new one can't be forgotten. Before each, in
turn, the VM is replaced by a stranger's with the same VMID, name and tags.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from common import ids
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
    "full clone": [
        "POST /nodes/N/storage/S/upload",
        "POST /nodes/N/qemu/T/clone",
        "POST /nodes/N/qemu/V/config",
        "PUT /nodes/N/qemu/V/resize",
        "POST /nodes/N/qemu/V/status/start",
    ],
    "firmware": [
        "POST /nodes/N/storage/S/upload",
        "POST /nodes/N/qemu/T/clone",
        "POST /nodes/N/qemu/V/config",
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
    "hard reboot": ["POST /nodes/N/qemu/V/status/reset"],
    "restart": ["POST /nodes/N/qemu/V/status/stop", "POST /nodes/N/qemu/V/status/start"],
    "pause": ["POST /nodes/N/qemu/V/status/suspend"],
    "unpause": ["POST /nodes/N/qemu/V/status/resume"],
    "suspend": ["POST /nodes/N/qemu/V/status/suspend"],
    "resume": ["POST /nodes/N/qemu/V/status/resume"],
    "restart of a suspended one": [
        "POST /nodes/N/qemu/V/config",
        "POST /nodes/N/qemu/V/status/start",
    ],
    "destroy": [
        "POST /nodes/N/qemu/V/status/stop",
        "DELETE /nodes/N/qemu/V",
        "DELETE /nodes/N/storage/S/content/iso",
    ],
    "leftover": [
        "DELETE /nodes/N/storage/S/content/disk",
        "DELETE /nodes/N/storage/S/content/iso",
    ],
    "retire": ["DELETE /nodes/N/qemu/T"],
    "mark": ["POST /nodes/N/qemu/V/config"],
    "unmark": ["POST /nodes/N/qemu/V/config"],
}
#: those that Proxmox VE itself refuses once the VM is another one than was looked at
BOUND = {"POST /nodes/N/qemu/V/config", "PUT /nodes/N/qemu/V/resize"}
LOOKS_AT_A_TEMPLATE = 3
ON_THE_VM = [
    (operation, position)
    for operation, calls in CALLS.items()
    # the rest of a template's is a build; what isn't ours yet, or no more, is tested below; nobody
    # can edit a suspended VM
    if operation not in ("template", "mark", "unmark", "resume", "restart of a suspended one")
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
        (r"/content/.*/vm-\d+-disk.*", "/content/disk"),
    ):
        call = re.sub(pattern, name, call)
    return call


@pytest.mark.sampled(3)
@pytest.mark.parametrize("operation", CALLS)
def test_these_are_all_calls_that_change_something(stage: Stage, operation: str) -> None:
    build, command = stage.ready(operation)
    stage.client.writes.clear()
    outcome = stage.worker.run(command)
    assert outcome.ok or outcome.gone
    seen = [plain(call, build.placed.vmid) for call in stage.client.writes]
    assert seen == CALLS[operation]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("operation", "position"), ON_THE_VM)
def test_a_stranger_in_the_place_of_our_vm_is_left_alone(
    stage: Stage, operation: str, position: int
) -> None:
    """It came after the call before: a look just before this call sees it."""
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


@pytest.mark.parametrize("position", range(LOOKS_AT_A_TEMPLATE))
def test_a_stranger_in_the_place_of_a_template_to_go_is_left_alone(
    stage: Stage, position: int
) -> None:
    """Before each look at it, the last one included."""
    build, command = stage.ready("retire")
    vmid = build.template.vmid
    seen = intervening(stage, f"/qemu/{vmid}", position, lambda: stage.take_over(vmid))
    stage.worker.run(command)
    stage.client.before = None
    assert seen
    assert stage.client.writes == []
    assert stage.cluster.vm(vmid) == seen[0]


def test_so_often_is_a_template_looked_at_before_it_goes(stage: Stage) -> None:
    assert looks(stage, "retire", "/qemu/") == LOOKS_AT_A_TEMPLATE


@pytest.mark.parametrize("operation", ["mark", "unmark"])
def test_a_stranger_gets_and_loses_no_mark(stage: Stage, operation: str) -> None:
    """Before each look, and between the last one and the call."""

    def come(vmid: int) -> Any:
        other = {"description": "mine", "smbios1": f"uuid={ids.new_uuid()}"}
        stage.api.nodes("pve1").qemu(vmid).config.put(**other)
        stage.taken.append(vmid)
        return stage.cluster.vm(vmid)

    for position in range(looks(stage, operation, "/config") + 1):
        build, command = stage.ready(operation)
        vmid = build.placed.vmid
        seen = intervening(stage, f"/qemu/{vmid}/config", position, lambda: come(vmid))  # noqa: B023
        outcome = stage.worker.run(command)
        stage.client.before = None
        assert seen, position
        assert not outcome.ok or operation == "unmark", position
        assert stage.cluster.vm(vmid) == seen[0], position


def test_a_strangers_disk_of_the_same_name_stays(stage: Stage) -> None:
    """Ours was freed but the answer was lost: when it is repeated, a disk of that name is somebody
    else's."""
    build, command = stage.ready("leftover")
    vmid = build.placed.vmid
    path = f"/content/.*vm-{vmid}-disk"
    stage.simulator.fault(action="lose-answer", method="DELETE", path=path)
    made: list[str] = []

    def before(method: str, path: str) -> None:
        if method == "get" and not made and any("-disk" in one for one in stage.client.writes):
            made.append(path)
            stage.make(vmid, name="theirs", scsi0="local:1,format=qcow2")

    stage.client.writes.clear()
    stage.client.before = before
    outcome = stage.worker.run(command)
    stage.client.before = None
    assert made
    assert not outcome.gone
    [disk] = [one for one in stage.cluster.volumes(vmid) if "-disk" in one]
    assert stage.cluster.vm(vmid)["config"]["scsi0"].startswith(disk)


def looks(stage: Stage, operation: str, part: str) -> int:
    """How often an operation looks before its first call that changes something."""
    _, command = stage.ready(operation)
    found: list[str] = []

    def before(method: str, path: str) -> None:
        if not stage.client.writes and method == "get" and part in path:
            found.append(path)

    stage.client.writes.clear()
    stage.client.before = before
    stage.worker.run(command)
    stage.client.before = None
    return len(found)


def intervening(stage: Stage, part: str, position: int, come: Callable[[], Any]) -> list[Any]:
    """Call `come` before that request for a path; gives what it returned."""
    seen: list[Any] = []
    count = iter(range(1000))

    def before(method: str, path: str) -> None:
        if not seen and part in f"/{path}" and next(count) == position:
            seen.append(come())

    stage.client.writes.clear()
    stage.client.before = before
    return seen
