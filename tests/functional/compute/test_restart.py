"""A worker that ends in the middle: another one, given the same command, continues."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any

import pytest

from common import codec
from common.context import internal
from common.messages.commands import Command, PowerAction
from common.messages.tenures import address
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
    """A copy of a message to the process before this one, of the same name."""
    copy = dataclasses.replace(command, worker=address(worker.service.worker, 0))
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


def writes_of(cluster: Cluster) -> list[Any]:
    calls = cluster._simulator.control("GET", "calls")
    return [one for one in calls if one["method"] != "GET" and not one["path"].startswith("/_sim")]
