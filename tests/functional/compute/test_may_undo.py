"""Agents undo only what the ledger says is still theirs to undo."""

from __future__ import annotations

from pathlib import Path

from common.context import internal
from common.messages.commands import Build, Mark, PowerAction
from common.messages.facts import Inspection
from common.messages.questions import Agent, Inspect
from common.resources.states import PowerState
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
from tests.functional.compute.neighbours import FakeConductor
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually

UNSTARTED = "micronova: unstarted"


def fails_half_made(worker: Worker, simulator: RunningSimulator, cluster: Cluster) -> Build:
    """A build whose VM is there, and whose job has ended."""
    build = a_build(template=None)
    grow = f"/qemu/{build.placed.vmid}/resize"
    simulator.fault(action="fail", method="PUT", path=f"{grow}$", text="it is refused", times=9)
    worker.send(build)
    eventually(lambda: cluster.calls("PUT", grow) and not worker.service._executor.working())
    simulator.control("DELETE", "faults")
    return build


def is_left(cluster: Cluster, build: Build) -> bool:
    vm = cluster.vm(build.placed.vmid)
    return bool(vm and vm["config"]["name"] == build.hostname)


def test_without_a_conductor_to_ask_nothing_is_undone(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, tmp_path: Path
) -> None:
    """The worker that takes the operation over continues from the current state."""
    text = proxmox_text(simulator) + "[rpc]\nrpc_timeout_seconds = 1\n"
    own = Worker(configuration(tmp_path, text))
    own.start()
    try:
        own.conductor.server.stop()
        build = fails_half_made(own, simulator, cluster)
        assert is_left(cluster, build)
        own.conductor = FakeConductor(own.transport)
        own.conductor.server.start()
        assert own.run(build).ok
        assert own.conductor.asked == []
    finally:
        own.stop()


def test_what_the_ledger_does_not_hold_any_more_is_not_undone(
    second: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    second.conductor.may = False
    build = fails_half_made(second, simulator, cluster)
    assert [(one.operation_id, one.attempt) for one in second.conductor.asked] == [
        (build.operation_id, build.attempt)
    ]
    assert is_left(cluster, build)
    assert second.conductor.outcomes(build) == []
    second.conductor.may = True
    assert second.run(build).ok


def lost_before_its_start(worker: Worker, cluster: Cluster) -> Build:
    """A build that the record loses while an agent makes its VM."""
    worker.conductor.may, worker.conductor.lost = False, True
    build = a_build(template=None)
    worker.send(build)
    eventually(lambda: UNSTARTED in described(cluster, build), 60)
    eventually(lambda: not worker.service._executor.working())
    worker.conductor.may, worker.conductor.lost = True, False
    return build


def described(cluster: Cluster, build: Build) -> list[str]:
    vm = cluster.vm(build.placed.vmid)
    return str(vm["config"].get("description", "")).splitlines() if vm else []


def looked_at(worker: Worker, build: Build) -> Inspection:
    asked = Inspect(build.placed.vmid, build.placed.node)
    return worker.client.ask(internal(), Agent(worker.service.worker, "c1"), asked)


def adoption(build: Build) -> Mark:
    about = (build.resource_type, build.resource_id, build.placed, build.deadline)
    return Mark(build.operation_id + 100_000, 1, *about, cloud=build.cloud, start=True)


def test_a_build_that_is_lost_is_started_by_who_adopts_it(
    second: Worker, cluster: Cluster
) -> None:
    build = lost_before_its_start(second, cluster)
    assert cluster.vm(build.placed.vmid)["status"] == "stopped"
    assert second.conductor.outcomes(build) == []
    found = looked_at(second, build)
    assert (found.marked_by, found.unstarted) == (build.resource_id, True)
    # Only that line is added to its marks.
    marked = second.run(adoption(build))
    assert (marked.ok, marked.power_state) == (True, PowerState.RUNNING)
    assert cluster.vm(build.placed.vmid)["status"] == "running"
    assert UNSTARTED not in described(cluster, build)
    assert not looked_at(second, build).unstarted
    assert second.run(a_destroy(build)).gone


def test_one_that_a_person_has_started_and_stopped_remains_off(
    second: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    build = lost_before_its_start(second, cluster)
    vm = as_root(simulator).nodes(build.placed.node).qemu(build.placed.vmid)
    for verb, status in (("start", "running"), ("stop", "stopped")):
        vm.status(verb).post()
        eventually(lambda status=status: cluster.vm(build.placed.vmid)["status"] == status, 20)
    assert not looked_at(second, build).unstarted
    assert second.run(a_destroy(build)).gone


def test_one_that_can_not_be_started_is_adopted_as_it_is(
    second: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    build = lost_before_its_start(second, cluster)
    start = f"/qemu/{build.placed.vmid}/status/start$"
    simulator.fault(action="fail", method="POST", path=start, text="it is refused", times=9)
    marked = second.run(adoption(build))
    assert (marked.ok, marked.gone, marked.power_state) == (True, False, PowerState.SHUTDOWN)
    simulator.control("DELETE", "faults")
    # It can be once more.
    assert looked_at(second, build).unstarted
    assert second.run(a_power(build, PowerAction.START)).ok
    assert second.run(a_destroy(build)).gone
