"""Agents undo only what the ledger says is still theirs to undo."""

from __future__ import annotations

from pathlib import Path

from common.messages.commands import Build
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    configuration,
    proxmox_text,
)
from tests.functional.compute.neighbours import FakeConductor
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually


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
    """Whoever takes the operation over goes on with what is there."""
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
