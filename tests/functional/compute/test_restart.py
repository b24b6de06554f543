"""A worker that ends in the middle: another one, given the same command, goes on."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any

import pytest

from common import clock, codec
from common.context import internal
from common.messages.commands import Command, PowerAction
from compute.client import ComputeClient
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_destroy,
    a_power,
    configuration,
    proxmox_text,
    template_vmid,
)
from tests.functional.simulator_fixture import RunningSimulator


@pytest.mark.parametrize("step", ["compute_ensure_image", "compute_create_vm", "compute_start_vm"])
def test_another_worker_goes_on(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, tmp_path: Path, step: str
) -> None:
    first = Worker(configuration(tmp_path, proxmox_text(simulator)))
    first.start()
    build = a_build()
    simulator.control("POST", "clock", {"speed": 0.3})
    try:
        first.send(build)
        first.conductor.wait_for(
            lambda: getattr(first.conductor.steps(build).get(step), "upid", None)
        )
    finally:
        first.stop()
        simulator.control("POST", "clock", {"speed": 50.0})
    assert first.conductor.outcomes(build) == []

    outcome = worker.run(dataclasses.replace(build, attempt=2))
    assert outcome.ok, outcome
    assert cluster.vm(build.placed.vmid)["config"]["smbios1"] == f"uuid={build.resource_id}"
    assert len(cluster.calls("POST", "/clone")) == 1
    assert cluster.vm(template_vmid())["config"]["template"] == "1"
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)


def come_again(worker: Worker, command: Command) -> None:
    """A copy of a message that was on the bus before the process began."""
    copy = dataclasses.replace(command, sent_at=clock.after(-60))
    again = codec.load(type(copy), codec.loads(codec.dumps(copy)))
    worker.service._executor.accept(internal(), again)


def test_a_copy_of_an_old_message_does_nothing(
    worker: Worker, second: Worker, cluster: Cluster
) -> None:
    """Of a build or of a power action that was done, and undone since."""
    build = a_build()
    start = a_power(build, PowerAction.START)
    assert worker.run(build).ok
    assert worker.run(a_power(build, PowerAction.STOP)).ok
    writes = len(writes_of(cluster))
    come_again(second, build)
    come_again(second, start)
    threading.Event().wait(1)
    assert second.service._executor.working() == ()
    assert len(writes_of(cluster)) == writes
    assert cluster.vm(build.placed.vmid)["status"] == "stopped"
    assert worker.run(a_destroy(build)).gone
    come_again(second, build)
    threading.Event().wait(1)
    assert cluster.is_empty(build.placed.vmid)
    assert second.conductor.outcomes(build) == []
    # What is sent from here on is done.
    assert second.run(dataclasses.replace(build, attempt=2)).ok
    assert second.run(a_destroy(build)).gone


def test_a_command_is_not_old_because_its_senders_clock_is_behind(
    worker: Worker, second: Worker, cluster: Cluster
) -> None:
    """Once it has heard of the process, whatever it sends is later than what it heard."""
    conductor = ComputeClient(second.transport, now=lambda: clock.after(-3600))
    build = a_build()
    conductor.execute(internal(), second.service.worker, build)
    beat = second.conductor.wait_for(lambda: second.conductor.heartbeats[-1:])[0]
    conductor.on_heartbeat(beat.worker, beat.sent_at)
    again = dataclasses.replace(build, attempt=2)
    second.sent.append(again)
    conductor.execute(internal(), second.service.worker, again)
    [outcome] = second.conductor.wait_for(lambda: second.conductor.outcomes(again))
    assert outcome.ok
    assert second.conductor.outcomes(build) == []
    assert second.run(a_destroy(build)).gone


def writes_of(cluster: Cluster) -> list[Any]:
    calls = cluster._simulator.control("GET", "calls")
    return [one for one in calls if one["method"] != "GET" and not one["path"].startswith("/_sim")]
