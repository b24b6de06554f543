"""Pause, suspend to disk, and the ways back: what exists afterwards, and what is left alone."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from common.messages.commands import PowerAction
from common.messages.reports import Category, VmSeen
from common.resources.states import PowerState
from tests.fixtures.root_shell import RootShell
from tests.functional.compute.conftest import Cluster, Worker, a_build, a_destroy, a_power, as_root
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually


@pytest.fixture
def build(worker: Worker) -> Any:
    """A server that runs."""
    made = a_build()
    assert worker.run(made).ok
    return made


@pytest.fixture
def root(simulator: RunningSimulator, worker: Worker) -> Any:
    """Root at node pve1."""
    return as_root(simulator).nodes("pve1")


def do(worker: Worker, build: Any, action: PowerAction) -> Any:
    return worker.run(a_power(build, action))


def states(cluster: Cluster, vmid: int) -> list[str]:
    """The volumes with a memory."""
    return [one for one in cluster.volumes(vmid) if "-state-" in one]


def test_a_pause_keeps_the_process(worker: Worker, cluster: Cluster, build: Any) -> None:
    vmid = build.placed.vmid
    pid = cluster.vm(vmid)["pid"]
    for _ in range(2):
        assert do(worker, build, PowerAction.PAUSE) == VmSeen(True, None, PowerState.PAUSED)
        assert (cluster.vm(vmid)["qmp"], cluster.vm(vmid)["pid"]) == ("paused", pid)
    assert len(cluster.calls("POST", f"/{vmid}/status/suspend")) == 1
    for _ in range(2):
        assert do(worker, build, PowerAction.UNPAUSE) == VmSeen(True, None, PowerState.RUNNING)
    assert (cluster.vm(vmid)["qmp"], cluster.vm(vmid)["pid"]) == ("running", pid)
    assert len(cluster.calls("POST", f"/{vmid}/status/resume")) == 1


def test_a_suspend_ends_the_process_and_a_resume_removes_the_memory(
    worker: Worker, cluster: Cluster, build: Any
) -> None:
    vmid = build.placed.vmid
    for _ in range(2):
        assert do(worker, build, PowerAction.SUSPEND) == VmSeen(True, None, PowerState.SUSPENDED)
        vm = cluster.vm(vmid)
        assert (vm["status"], vm["config"]["lock"]) == ("stopped", "suspended")
        assert states(cluster, vmid) == [vm["config"]["vmstate"]]
    listed = {one.vmid: one for one in worker.hypervisors[0].observe().vms}
    assert listed[vmid].power_state == PowerState.SUSPENDED
    assert do(worker, build, PowerAction.RESUME) == VmSeen(True, None, PowerState.RUNNING)
    vm = cluster.vm(vmid)
    assert (vm["status"], vm["lock"], states(cluster, vmid)) == ("running", "", [])
    assert do(worker, build, PowerAction.RESUME) == VmSeen(True, None, PowerState.RUNNING)
    assert len(cluster.calls("POST", f"/{vmid}/status/resume")) == 1


@pytest.mark.parametrize("action", [PowerAction.PAUSE, PowerAction.SUSPEND])
def test_a_hard_reboot_boots_and_a_destroy_leaves_nothing(
    worker: Worker, cluster: Cluster, build: Any, action: PowerAction
) -> None:
    vmid = build.placed.vmid
    pid = cluster.vm(vmid)["pid"]
    assert do(worker, build, action).ok
    assert do(worker, build, PowerAction.REBOOT_HARD) == VmSeen(True, None, PowerState.RUNNING)
    vm = cluster.vm(vmid)
    assert (vm["qmp"], vm["lock"], states(cluster, vmid)) == ("running", "", [])
    assert vm["pid"] != pid
    assert do(worker, build, action).ok
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(vmid)


@pytest.mark.parametrize(
    "action", [PowerAction.PAUSE, PowerAction.UNPAUSE, PowerAction.SUSPEND, PowerAction.RESUME]
)
def test_a_vm_without_a_process_is_left_alone(
    worker: Worker, cluster: Cluster, build: Any, action: PowerAction
) -> None:
    assert do(worker, build, PowerAction.STOP).ok
    outcome = do(worker, build, action)
    assert outcome.failure is not None
    assert outcome.failure.category is Category.CONFIGURATION
    assert outcome.power_state == PowerState.SHUTDOWN
    assert cluster.calls("POST", f"/{build.placed.vmid}/status/suspend") == []
    assert cluster.calls("POST", f"/{build.placed.vmid}/status/resume") == []


@pytest.mark.parametrize("why", ["room", "pci", "share", "availability"])
def test_what_can_not_be_suspended_is_not_touched(
    worker: Worker, simulator: RunningSimulator, cluster: Cluster, build: Any, root: Any, why: str
) -> None:
    vmid = build.placed.vmid
    if why == "room":
        detail = worker.hypervisors[0].shared.snapshot  # type: ignore[attr-defined]
        storage = detail.nodes["pve1"].storages["local"]
        root.qemu(vmid).config.put(memory=(storage.total >> 20))
    elif why == "availability":
        as_root(simulator).cluster.ha.resources.post(sid=f"vm:{vmid}", state="started")
    else:
        given = {"pci": {"hostpci0": "0000:01:00.0"}, "share": {"virtiofs0": "dirid=share"}}
        root.qemu(vmid).config.put(**given[why])
    found = worker.hypervisors[0].inspect(vmid, "pve1", build.resource_id)
    assert found.unsuspendable
    outcome = do(worker, build, PowerAction.SUSPEND)
    assert outcome.failure is not None
    assert found.unsuspendable in outcome.failure.message
    assert outcome.power_state == PowerState.RUNNING
    assert cluster.calls("POST", f"/{vmid}/status/suspend") == []
    if why == "availability":
        as_root(simulator).cluster.ha.resources(f"vm:{vmid}").delete()


def changes(cluster: Cluster, vmid: int) -> int:
    """How often the VM's power was changed."""
    verbs = ("start", "stop", "shutdown", "suspend", "resume")
    return sum(len(cluster.calls("POST", f"/{vmid}/status/{verb}")) for verb in verbs)


@pytest.mark.parametrize("nth", range(1, 5))
@pytest.mark.parametrize(
    ("before", "action", "done"),
    [
        (PowerAction.STOP, PowerAction.START, PowerState.RUNNING),
        (None, PowerAction.STOP, PowerState.SHUTDOWN),
        (None, PowerAction.PAUSE, PowerState.PAUSED),
        (PowerAction.PAUSE, PowerAction.UNPAUSE, PowerState.RUNNING),
    ],
)
def test_a_look_that_fails_after_it_is_done_is_taken_again(
    worker: Worker,
    simulator: RunningSimulator,
    cluster: Cluster,
    build: Any,
    before: PowerAction | None,
    action: PowerAction,
    done: PowerState,
    nth: int,
) -> None:
    vmid = build.placed.vmid
    if before is not None:
        assert do(worker, build, before).ok
    began = changes(cluster, vmid)
    path = rf"/{vmid}/status/current$"
    fault = {"action": "fail", "path": path, "method": "GET", "nth": nth}
    simulator.control("POST", "faults", fault)
    outcome = do(worker, build, action)
    # Nothing was sent, and that is reported; or it is done.
    sent = changes(cluster, vmid) - began
    assert (outcome.ok, sent) in {(True, 1), (False, 0)}
    if sent:
        assert outcome == VmSeen(True, None, done)


def test_a_lost_answer_is_settled_by_a_look(
    worker: Worker, simulator: RunningSimulator, cluster: Cluster, build: Any
) -> None:
    vmid = build.placed.vmid
    path = rf"/{vmid}/status/suspend$"
    simulator.control("POST", "faults", {"action": "lose-answer", "path": path, "method": "POST"})
    assert do(worker, build, PowerAction.SUSPEND) == VmSeen(True, None, PowerState.SUSPENDED)
    assert len(cluster.calls("POST", f"/{vmid}/status/suspend")) == 1
    assert len(states(cluster, vmid)) == 1
    assert do(worker, build, PowerAction.RESUME).ok


def test_a_memory_that_can_not_be_saved_leaves_the_vm_running_and_says_how_to_unlock_it(
    worker: Worker, simulator: RunningSimulator, cluster: Cluster, build: Any, shell: RootShell
) -> None:
    vmid = build.placed.vmid
    simulator.control("POST", "faults", {"leak": "L8", "vmid": vmid})
    outcome = do(worker, build, PowerAction.SUSPEND)
    assert outcome.failure is not None
    assert "query-savevm failed" in outcome.failure.message
    assert outcome.failure.remedy == f"as root on pve1: qm unlock {vmid}"
    assert outcome.power_state == PowerState.RUNNING
    assert (cluster.vm(vmid)["lock"], states(cluster, vmid)) == ("suspending", [])
    shell.run(outcome.failure.remedy)
    eventually(lambda: cluster.vm(vmid)["lock"] == "", 20)


@pytest.mark.parametrize(
    ("before", "lock", "action"),
    [
        (None, "backup", PowerAction.SUSPEND),
        (None, "suspending", PowerAction.SUSPEND),
        (PowerAction.PAUSE, "suspended", PowerAction.UNPAUSE),
    ],
)
def test_somebodys_lock_is_named_with_what_unlocks(
    worker: Worker,
    cluster: Cluster,
    build: Any,
    root: Any,
    shell: RootShell,
    before: PowerAction | None,
    lock: str,
    action: PowerAction,
) -> None:
    vmid = build.placed.vmid
    if before is not None:
        assert do(worker, build, before).ok
    root.qemu(vmid).config.put(lock=lock, skiplock=1)
    failure = do(worker, build, action).failure
    assert failure is not None
    assert failure.category is Category.LOCK
    assert lock in failure.message
    assert failure.remedy == f"as root on pve1: qm unlock {vmid}"
    assert f"locked ({lock})" in str(failure.owner_message)
    shell.run(failure.remedy)
    assert do(worker, build, action).ok


def test_a_resume_that_could_not_remove_the_memory_does_so_itself(
    worker: Worker, simulator: RunningSimulator, cluster: Cluster, build: Any
) -> None:
    vmid = build.placed.vmid
    assert do(worker, build, PowerAction.SUSPEND).ok
    simulator.control("POST", "faults", {"leak": "L9", "vmid": vmid})
    assert do(worker, build, PowerAction.RESUME) == VmSeen(True, None, PowerState.RUNNING)
    vm = cluster.vm(vmid)
    assert (vm["status"], vm["lock"], states(cluster, vmid)) == ("running", "", [])
    assert len(cluster.calls("POST", f"/{vmid}/status/resume")) == 1


def half_resumed(
    worker: Worker, simulator: RunningSimulator, cluster: Cluster, build: Any, root: Any
) -> None:
    """Have it run, while its memory is still saved."""
    vmid = build.placed.vmid
    assert do(worker, build, PowerAction.SUSPEND).ok
    simulator.control("POST", "faults", {"leak": "L9", "vmid": vmid})
    root.qemu(vmid).status.resume.post()
    eventually(lambda: cluster.vm(vmid)["status"] == "running", 20)
    assert (cluster.vm(vmid)["lock"], len(states(cluster, vmid))) == ("suspended", 1)


@pytest.mark.parametrize("action", [PowerAction.STOP, PowerAction.REBOOT_HARD, None])
def test_a_vm_that_runs_with_its_memory_still_saved_is_no_dead_end(
    worker: Worker,
    simulator: RunningSimulator,
    cluster: Cluster,
    build: Any,
    root: Any,
    action: PowerAction | None,
) -> None:
    vmid = build.placed.vmid
    half_resumed(worker, simulator, cluster, build, root)
    if action is None:
        assert worker.run(a_destroy(build)).gone
        assert cluster.is_empty(vmid)
        return
    assert do(worker, build, action).ok
    assert (cluster.vm(vmid)["lock"], states(cluster, vmid)) == ("", [])


def test_one_that_may_be_removed_only_stopped_is_left_as_it_is(
    worker: Worker, simulator: RunningSimulator, cluster: Cluster, build: Any, root: Any
) -> None:
    vmid = build.placed.vmid
    half_resumed(worker, simulator, cluster, build, root)
    command = dataclasses.replace(a_destroy(build), stopped_on="pve1")
    assert not worker.run(command).gone
    assert (cluster.vm(vmid)["lock"], len(states(cluster, vmid))) == ("suspended", 1)
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(vmid)
