"""Hard reboots, and what comes right after: the lock of a VM that was started again is busy."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.messages.commands import PowerAction
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_destroy,
    a_power,
    as_root,
    configuration,
    proxmox_text,
)
from tests.functional.simulator_fixture import RunningSimulator, running_simulator
from tests.functional.waiting import eventually


@pytest.fixture
def root(simulator: RunningSimulator, worker: Worker) -> Any:
    """Root at node pve1."""
    return as_root(simulator).nodes("pve1")


@pytest.fixture
def build(worker: Worker) -> Any:
    """A server that runs."""
    made = a_build()
    assert worker.run(made).ok
    return made


def hard_reboot(worker: Worker, build: Any) -> str:
    """Restart it hard; how that was done."""
    command = a_power(build, PowerAction.REBOOT_HARD)
    outcome = worker.run(command)
    assert outcome.ok, outcome
    return str(worker.conductor.steps(command)["compute_reboot_vm"].detail["reboot"])


def failed_tasks(root: Any, vmid: int) -> list[str]:
    """How tasks on a VM ended that did not end well."""
    listed = root.tasks.get(vmid=vmid, source="all")
    return [one["status"] for one in listed if one.get("endtime") and one["status"] != "OK"]


def test_hard_reboots_and_a_delete_follow_one_another_without_a_wait(
    worker: Worker, cluster: Cluster, root: Any, build: Any
) -> None:
    vmid, pid = build.placed.vmid, cluster.vm(build.placed.vmid)["pid"]
    assert [hard_reboot(worker, build) for _ in range(2)] == ["reset", "reset"]
    assert cluster.vm(vmid)["pid"] == pid
    assert cluster.calls("POST", f"/{vmid}/status/stop") == []
    assert worker.run(a_destroy(build)).gone
    assert failed_tasks(root, vmid) == []


@pytest.mark.parametrize("change", ["pending", "paused", "newer QEMU"])
def test_what_a_reset_would_not_do_takes_a_new_qemu(
    worker: Worker,
    cluster: Cluster,
    simulator: RunningSimulator,
    root: Any,
    build: Any,
    change: str,
) -> None:
    vm, before = root.qemu(build.placed.vmid), cluster.vm(build.placed.vmid)["pid"]
    shared = worker.hypervisors[0].shared  # type: ignore[attr-defined]
    if change == "pending":
        vm.config.put(cores=1)
    elif change == "paused":
        vm.status.suspend.post()
        eventually(lambda: cluster.vm(build.placed.vmid)["qmp"] == "paused", 20)
    else:
        # As a look shows it once the node was upgraded; none comes between.
        held = simulator.fault(action="hold", path=r"/cluster/status$", times=0)
        eventually(lambda: simulator.struck(held["id"]), 20)
        detail = shared.snapshot.nodes["pve1"].detail
        object.__setattr__(detail, "machine_version", "99.0")
    assert hard_reboot(worker, build) == "hard"
    now = cluster.vm(build.placed.vmid)
    assert now["pid"] != before
    assert now["qmp"] == "running"
    assert not now["pending"]
    if change == "pending":
        assert now["config"]["cores"] == "1"


@dataclasses.dataclass
class Slow:
    """A cluster whose clean-ups last for six seconds, and a server on it that runs."""

    simulator: RunningSimulator
    worker: Worker
    cluster: Cluster
    root: Any
    build: Any

    @property
    def vmid(self) -> int:
        return int(self.build.placed.vmid)

    def let_clean_up_begin(self) -> None:
        """Return when somebody has the VM's lock, without a task of the VM."""

        def held() -> bool:
            now = self.cluster._now
            names = [one["name"] for one in now["locks"] if one["holders"]]
            return any(str(self.vmid) in name for name in names) and not now["tasks"]

        eventually(held, 20)


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Slow]:
    with running_simulator(tmp_path / "simulator", speed=5) as simulator:
        text = proxmox_text(simulator, restart_lock_seconds="6")
        worker = Worker(configuration(tmp_path, text))
        worker.start()
        build = a_build()
        assert worker.run(build).ok
        root = as_root(simulator).nodes("pve1")
        yield Slow(simulator, worker, Cluster(simulator), root, build)
        worker.stop()


def test_who_comes_while_the_node_cleans_up_waits_and_fails_nothing(slow: Slow) -> None:
    slow.root.qemu(slow.vmid).config.put(cores=1)
    assert hard_reboot(slow.worker, slow.build) == "hard"
    slow.let_clean_up_begin()
    assert hard_reboot(slow.worker, slow.build) == "reset"
    slow.root.qemu(slow.vmid).config.put(cores=2)
    assert hard_reboot(slow.worker, slow.build) == "hard"
    slow.let_clean_up_begin()
    destroy = a_destroy(slow.build)
    assert slow.worker.run(destroy).gone
    assert "waits" in slow.worker.conductor.steps(destroy)["compute_stop_vm"].detail
    assert failed_tasks(slow.root, slow.vmid) == []
    # Once for each hard reboot, once for the delete.
    assert len(slow.cluster.calls("POST", f"/{slow.vmid}/status/stop")) == 3


#: simulated seconds: longer than until the clean-up begins, shorter than that waits for the lock
SLOW_START = 6.0


@pytest.mark.parametrize("then", ["stop", "delete", "reboot"])
def test_a_start_that_outlasts_the_begin_of_the_clean_up(slow: Slow, then: str) -> None:
    """The start has the lock first and the clean-up waits for it: then it waits for the VM.

    So it counts when the start was sent, not when its task ended. Six tasks of a real cluster
    failed with `can't lock file`, ten to thirty seconds later.
    """
    slow.simulator.fault(action="start-slow", vmid=slow.vmid, seconds=SLOW_START)
    slow.root.qemu(slow.vmid).config.put(cores=1)
    assert hard_reboot(slow.worker, slow.build) == "hard"
    slow.let_clean_up_begin()
    command = {
        "stop": lambda: a_power(slow.build, PowerAction.STOP),
        "reboot": lambda: a_power(slow.build, PowerAction.REBOOT_HARD),
        "delete": lambda: a_destroy(slow.build),
    }[then]()
    assert slow.worker.run(command).ok
    steps = slow.worker.conductor.steps(command).values()
    assert [one for one in steps if "waits" in one.detail]
    assert failed_tasks(slow.root, slow.vmid) == []
    if then != "delete":
        assert slow.worker.run(a_destroy(slow.build)).gone


def test_a_clean_up_that_nobody_knew_of_costs_one_failed_task(slow: Slow) -> None:
    vm = slow.root.qemu(slow.vmid)
    stopped = vm.status.stop.post()
    eventually(lambda: slow.root.tasks(stopped).status.get()["status"] == "stopped", 20)
    vm.status.start.post()
    slow.let_clean_up_begin()
    assert slow.worker.run(a_power(slow.build, PowerAction.STOP)).ok
    assert slow.worker.run(a_destroy(slow.build)).gone
    assert len(failed_tasks(slow.root, slow.vmid)) <= 1


def test_a_qemu_that_does_not_answer_is_ended(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, build: Any
) -> None:
    simulator.fault(
        action="task-fail",
        method="POST",
        path="/status/reset$",
        text="VM 100 qmp command 'system_reset' failed - got timeout",
    )
    pid = cluster.vm(build.placed.vmid)["pid"]
    assert hard_reboot(worker, build) == "hard"
    assert cluster.vm(build.placed.vmid)["pid"] != pid


def test_a_reset_whose_answer_was_lost_is_not_repeated(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, build: Any
) -> None:
    simulator.fault(action="lose-answer", method="POST", path="/status/reset$")
    assert hard_reboot(worker, build) == "hard"
    assert len(cluster.calls("POST", "/status/reset")) == 1
