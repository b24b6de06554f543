"""A server's VM moves to another node of a simulated cluster, or is where it was."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common import clock
from common.messages.commands import Build, Placed, PowerAction, Template
from common.resources.states import PowerState
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_destroy,
    a_move,
    a_power,
    as_root,
    configuration,
    granted,
    proxmox_text,
    template_vmid,
)
from tests.functional.compute.test_inventory import take_inventory
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually

_SET = ("vm_storage", "iso_storage", "linked_clones")
LOCAL = {"vm_storage": "local", "iso_storage": "local", "linked_clones": "never"}
SHARED = {"vm_storage": "shared", "iso_storage": "shared"}
_NUMBERS = itertools.count(900_000)
MIGRATE = r"/qemu/\d+/migrate$"


@contextlib.contextmanager
def _running(simulator: RunningSimulator, folder: Path, options: Any) -> Iterator[Worker]:
    lines = proxmox_text(simulator).splitlines()
    kept = [line for line in lines if line.partition(" ")[0] not in _SET]
    text = "\n".join([*kept, *(f"{name} = {value}" for name, value in options.items()), ""])
    worker = Worker(configuration(folder, text))
    worker.start()
    try:
        yield worker
    finally:
        worker.stop()


class Stage:
    """A worker, a server that it built on pve1, and what is seen of it."""

    def __init__(self, worker: Worker, cluster: Cluster, storage: str) -> None:
        self.worker, self.cluster = worker, cluster
        self.build: Build = a_build(template=Template(template_vmid(), "pve1", storage))
        assert worker.run(self.build).ok

    @property
    def vm(self) -> Any:
        return self.cluster.vm(self.build.placed.vmid)

    @property
    def volumes(self) -> list[tuple[str, str]]:
        """Its disks and drives with their nodes; of shared ones the node is empty."""
        vmid = self.build.placed.vmid
        return sorted(
            (one["volid"], one["node"])
            for one in self.cluster._now["volumes"]
            if one["vmid"] == vmid or f"-{vmid}-" in one["name"]
        )

    def there(self, node: str) -> list[tuple[str, str]]:
        """What it has when all of it is on one node."""
        vmid, server = self.build.placed.vmid, self.build.resource_id
        return [
            (f"local:{vmid}/vm-{vmid}-disk-0.qcow2", node),
            (f"local:iso/micronova-{vmid}-{server}.iso", node),
        ]

    def whole(self, node: str) -> bool:
        drive = self.vm["config"]["ide2"]
        inserted = drive.startswith(f"local:iso/micronova-{self.build.placed.vmid}-")
        return self.vm["node"] == node and self.volumes == self.there(node) and inserted

    def end(self, node: str) -> None:
        placed = Placed(node, "c1", node, self.build.placed.vmid)
        destroy = dataclasses.replace(a_destroy(self.build), placed=placed)
        assert self.worker.run(destroy).gone


@pytest.fixture(params=["local", "shared"])
def stage(
    request: pytest.FixtureRequest,
    simulator: RunningSimulator,
    worker: Worker,
    cluster: Cluster,
    tmp_path: Path,
) -> Iterator[Stage]:
    options = LOCAL if request.param == "local" else SHARED
    with _running(simulator, tmp_path, options) as running:
        yield Stage(running, cluster, request.param)


local = pytest.mark.parametrize("stage", ["local"], indirect=True)


def test_live_and_offline_there_and_back(stage: Stage) -> None:
    before = stage.volumes
    move = a_move(stage.build, "pve2")
    outcome = stage.worker.run(move)
    assert (outcome.ok, outcome.node, outcome.power_state) == (True, "pve2", PowerState.RUNNING)
    assert (stage.vm["node"], stage.vm["status"]) == ("pve2", "running")
    steps = stage.worker.conductor.steps(move)
    assert steps["compute_live_migration"].upid is not None
    assert steps["compute_live_migration"].upid.startswith("UPID:pve1:")
    again = stage.worker.run(a_move(stage.build, "pve2"))
    assert (again.ok, again.node) == (True, "pve2")
    assert len(stage.cluster.calls("POST", "/migrate")) == 1
    stop = a_power(stage.build, PowerAction.STOP)
    assert stage.worker.run(stop).ok
    back = stage.worker.run(a_move(stage.build, "pve1", source="pve2", live=False))
    assert (back.ok, back.node, back.power_state) == (True, "pve1", PowerState.SHUTDOWN)
    assert stage.volumes == before
    stage.end("pve1")


def test_one_under_high_availability_is_moved_by_its_manager(
    stage: Stage, simulator: RunningSimulator
) -> None:
    """The task of the request ends at once; the manager migrates it later, as root."""
    sid = f"vm:{stage.build.placed.vmid}"
    resources = as_root(simulator).cluster.ha.resources
    resources.post(sid=sid, state="started")
    live = a_move(stage.build, "pve2")
    outcome = stage.worker.run(live)
    assert (outcome.ok, outcome.node, outcome.power_state) == (True, "pve2", PowerState.RUNNING)
    asked = stage.worker.conductor.steps(live)["compute_live_migration"].upid
    assert asked is not None
    assert asked.split(":")[5] == "hamigrate"
    assert resources(sid).get()["state"] == "started"
    assert stage.worker.run(a_power(stage.build, PowerAction.STOP)).ok
    back = stage.worker.run(a_move(stage.build, "pve1", source="pve2", live=False))
    assert (back.ok, back.node, back.power_state) == (True, "pve1", PowerState.SHUTDOWN)
    assert resources(sid).get()["state"] == "stopped"
    assert len(stage.cluster.calls("POST", "/migrate")) == 2
    stage.end("pve1")


@local
def test_everything_is_on_the_other_node(stage: Stage) -> None:
    assert stage.whole("pve1")
    assert stage.worker.run(a_move(stage.build, "pve2")).ok
    assert stage.whole("pve2")
    stage.end("pve2")
    assert not stage.volumes


@local
def test_a_local_disk_goes_to_the_storage_that_is_named(stage: Stage) -> None:
    outcome = stage.worker.run(a_move(stage.build, "pve2", target_storage="shared"))
    assert (outcome.ok, outcome.node) == (True, "pve2"), outcome
    vmid = stage.build.placed.vmid
    [disk] = [volid for volid, _ in stage.volumes if "-disk-0" in volid]
    assert disk.startswith(f"shared:{vmid}/")
    assert stage.vm["config"]["scsi0"].startswith(disk)
    stage.end("pve2")
    assert not stage.volumes


@local
def test_the_ha_manager_takes_no_target_storage(stage: Stage, simulator: RunningSimulator) -> None:
    sid = f"vm:{stage.build.placed.vmid}"
    resources = as_root(simulator).cluster.ha.resources
    resources.post(sid=sid, state="started")
    outcome = stage.worker.run(a_move(stage.build, "pve2", target_storage="shared"))
    assert outcome.failure is not None
    assert "only to storage of the same name" in outcome.failure.message
    assert stage.whole("pve1")
    assert (stage.vm["status"], resources(sid).get()["state"]) == ("running", "started")
    assert not stage.cluster.calls("POST", "/migrate")
    stage.end("pve1")


@local
def test_what_stays_behind_is_removed_at_the_second_try(
    stage: Stage, simulator: RunningSimulator
) -> None:
    simulator.fault(action="fail", status=595, method="DELETE", path="/nodes/pve1/.*/content/")
    assert stage.worker.run(a_move(stage.build, "pve2")).ok
    assert stage.whole("pve2")
    stage.end("pve2")
    assert not stage.volumes


@local
def test_what_can_not_be_removed_is_in_the_inventory(
    stage: Stage, simulator: RunningSimulator
) -> None:
    """Where the audit finds it; the VM is on its new node all the same."""
    simulator.fault(
        action="fail", status=595, method="DELETE", path="/nodes/pve1/.*/content/", times=0
    )
    move = a_move(stage.build, "pve2")
    assert stage.worker.run(move).ok
    simulator.control("DELETE", "faults")
    left = set(stage.volumes) - set(stage.there("pve2"))
    assert left
    assert {node for _, node in left} == {"pve1"}
    assert stage.worker.conductor.steps(move)["compute_remove_copies"].result == "Error"
    seen = take_inventory(stage.worker, stage.build.placed.vmid)
    assert left <= {(one.volid, one.node) for one in seen.volumes if not one.shared}
    for volid, node in left:
        as_root(simulator).nodes(node).storage("local").content(volid).delete()
    stage.end("pve2")


@local
def test_a_drive_that_was_left_goes_while_the_vm_lives_with_its_own(
    stage: Stage, simulator: RunningSimulator
) -> None:
    placed, uuid = stage.build.placed, stage.build.resource_id
    drive = f"local:iso/micronova-{placed.vmid}-{uuid}.iso"
    remove = dataclasses.replace(a_destroy(stage.build), drive_only=True, left_behind=drive)

    def refused(why: str) -> None:
        before = stage.volumes
        outcome = stage.worker.run(dataclasses.replace(remove, operation_id=next(_NUMBERS)))
        assert outcome.failure is not None
        assert outcome.failure.left == (f"volume {drive} on pve1: {why}",)
        assert stage.volumes == before

    refused("the VM is there")
    simulator.fault(
        action="fail", status=595, method="DELETE", path="/nodes/pve1/.*/content/", times=0
    )
    assert stage.worker.run(a_move(stage.build, "pve2")).ok
    simulator.control("DELETE", "faults")
    assert (drive, "pve1") in stage.volumes
    config = as_root(simulator).nodes("pve2").qemu(placed.vmid).config
    config.put(ide2="none,media=cdrom")
    refused("the VM has no drive of its own on pve2")
    config.put(ide2=f"{drive},media=cdrom")
    assert stage.worker.run(remove).gone
    assert stage.whole("pve2")
    stage.end("pve2")


def test_a_paused_one_arrives_paused(stage: Stage) -> None:
    assert stage.worker.run(a_power(stage.build, PowerAction.PAUSE)).ok
    outcome = stage.worker.run(a_move(stage.build, "pve2"))
    assert (outcome.ok, outcome.power_state) == (True, PowerState.PAUSED)
    stage.end("pve2")


@local
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"live": False}, "It runs: it can only be moved live."),
        ({"copy_disks": False}, "is not on shared storage"),
        ({"target_node": "pve9"}, "has no node pve9"),
    ],
)
def test_what_can_not_be_is_refused_untouched(stage: Stage, changes: Any, why: str) -> None:
    digest = stage.vm["digest"]
    outcome = stage.worker.run(a_move(stage.build, **{"target": "pve2"} | _as_target(changes)))
    assert not outcome.ok
    assert outcome.failure is not None
    assert why in outcome.failure.message
    assert outcome.node == "pve1"
    assert stage.vm["digest"] == digest
    assert not stage.cluster.calls("POST", "/migrate")
    stage.end("pve1")


def _as_target(changes: Any) -> Any:
    return {("target" if name == "target_node" else name): one for name, one in changes.items()}


@pytest.mark.parametrize("how", [{}, {"how": "drop"}])
def test_a_lost_answer_is_looked_for(
    stage: Stage, simulator: RunningSimulator, how: dict[str, Any]
) -> None:
    simulator.fault(action="lose-answer", method="POST", path=MIGRATE, **how)
    outcome = stage.worker.run(a_move(stage.build, "pve2"))
    assert (outcome.ok, outcome.node) == (True, "pve2")
    assert len(stage.cluster.calls("POST", "/migrate")) == 1
    stage.end("pve2")


@local
def test_an_answer_lost_before_it_began_is_no_move(
    stage: Stage, simulator: RunningSimulator
) -> None:
    simulator.fault(action="fail", method="POST", path=MIGRATE, status=596)
    outcome = stage.worker.run(a_move(stage.build, "pve2"))
    assert (outcome.ok, outcome.node) == (False, "pve1")
    assert len(stage.cluster.calls("POST", "/migrate")) == 1
    assert stage.whole("pve1")
    assert outcome.power_state == PowerState.RUNNING
    stage.end("pve1")


@local
def test_a_failure_half_way_leaves_it_as_it_was(stage: Stage, simulator: RunningSimulator) -> None:
    simulator.fault(action="migration-slow", seconds=60)
    simulator.fault(
        action="task-fail", method="POST", path=MIGRATE, seconds=15, text="no space left on device"
    )
    outcome = stage.worker.run(a_move(stage.build, "pve2"))
    assert outcome.failure is not None
    assert (outcome.node, outcome.failure.clean) == ("pve1", True)
    assert "migration" in outcome.failure.message
    assert "no space left on device" in outcome.failure.message
    assert stage.whole("pve1")
    stage.end("pve1")


@local
def test_problems_after_the_move_are_cleaned_up(stage: Stage, simulator: RunningSimulator) -> None:
    simulator.fault(action="migration-problems")
    outcome = stage.worker.run(a_move(stage.build, "pve2"))
    assert (outcome.ok, outcome.node) == (True, "pve2")
    assert stage.whole("pve2")
    stage.end("pve2")


@local
def test_a_killed_migration_is_explained(stage: Stage, simulator: RunningSimulator) -> None:
    simulator.fault(action="migration-slow", seconds=60)
    simulator.fault(action="task-kill", method="POST", path=MIGRATE, seconds=15)
    outcome = stage.worker.run(a_move(stage.build, "pve2", deadline=clock.after(15)))
    assert outcome.failure is not None
    assert (outcome.node, outcome.failure.clean) == ("", False)
    assert outcome.failure.remedy == f"as root on pve1: qm unlock {stage.build.placed.vmid}"
    assert stage.vm["config"]["lock"] == "migrate"
    _unlock(stage, simulator)
    settled = stage.worker.run(a_move(stage.build, "pve2", settle=True))
    assert (settled.ok, settled.node) == (True, "pve1")
    assert stage.whole("pve1")
    stage.end("pve1")


@local
def test_the_target_dies_half_way(stage: Stage, simulator: RunningSimulator) -> None:
    simulator.control("POST", "clock", {"speed": 5})
    try:
        move = a_move(stage.build, "pve2")
        stage.worker.send(move)
        eventually(lambda: len(stage.volumes) > 2, 20)
        simulator.fault(action="node-down", node="pve2")
        eventually(lambda: stage.worker.conductor.outcomes(move), 30)
    finally:
        simulator.control("POST", "clock", {"speed": 50})
    outcome = stage.worker.conductor.outcomes(move)[0]
    # Half of two nodes is no quorum: Proxmox VE can't remove the lock.
    assert (outcome.ok, outcome.node) == (False, "")
    assert stage.vm["status"] == "running"
    simulator.control("DELETE", "faults")
    _unlock(stage, simulator)

    def settled() -> bool:
        # The node counts as offline until it is looked at again.
        return stage.worker.run(a_move(stage.build, "pve2", settle=True)).ok and stage.whole(
            "pve1"
        )

    eventually(settled, 30)
    stage.end("pve1")


def _unlock(stage: Stage, simulator: RunningSimulator) -> None:
    """As root does with `qm unlock`."""
    order = simulator.fault(action="config-lock", vmid=stage.build.placed.vmid, lock="migrate")
    simulator.control("DELETE", f"faults?id={order['id']}")


def _steered(stage: Stage, simulator: RunningSimulator, *, abort: bool) -> Any:
    """What becomes of a slow migration that is aborted, or forced to end."""
    simulator.fault(action="migration-slow", seconds=900)
    move = a_move(stage.build, "pve2")
    stage.worker.send(move)
    vmid, server = stage.build.placed.vmid, stage.build.resource_id
    eventually(lambda: "lock" in stage.vm["config"], 20)

    steer = stage.worker.hypervisors[0].steer_migration
    eventually(lambda: steer(vmid, "pve1", server, abort) is None, 20)
    eventually(lambda: stage.worker.conductor.outcomes(move), 30)
    return stage.worker.conductor.outcomes(move)[0]


def test_without_the_privilege_it_is_said(stage: Stage) -> None:
    hypervisor = stage.worker.hypervisors[0]
    placed = stage.build.placed
    why = hypervisor.steer_migration(placed.vmid, "pve1", stage.build.resource_id, True)
    assert why == "The agent's token lacks Sys.Modify on /."
    stage.end("pve1")


@local
def test_an_aborted_one_is_as_it_was(stage: Stage, simulator: RunningSimulator) -> None:
    granted(simulator, "steering")
    outcome = _steered(stage, simulator, abort=True)
    assert (outcome.ok, outcome.node, outcome.power_state) == (False, "pve1", PowerState.RUNNING)
    assert stage.whole("pve1")
    stage.end("pve1")


@local
@pytest.mark.parametrize("live", [True, False])
def test_how_far_it_is_comes_from_the_log(
    stage: Stage, simulator: RunningSimulator, live: bool
) -> None:
    if not live:
        assert stage.worker.run(a_power(stage.build, PowerAction.STOP)).ok
    simulator.control("POST", "clock", {"speed": 1})
    move = a_move(stage.build, "pve2", live=live)
    stage.worker.send(move)
    progress: list[Any] = []

    def copied() -> bool:
        steps = [step for one in stage.worker.conductor.reports for step in one.steps]
        progress[:] = [step.detail["progress"] for step in steps if "progress" in step.detail]
        return bool(progress)

    try:
        eventually(copied, 60)
    finally:
        simulator.control("POST", "clock", {"speed": 50})
    eventually(lambda: stage.worker.conductor.outcomes(move), 30)
    assert stage.worker.conductor.outcomes(move)[0].ok
    assert 0 < progress[0]["percent"] <= 100
    assert 0 < progress[0]["disk_bytes"] <= progress[0]["disk_total_bytes"]
    stage.end("pve2")
