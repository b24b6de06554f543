"""A worker that ends in the middle: another one, given the same command, goes on."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_destroy,
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
    assert cluster.vm(build.placed.vmid)["config"]["smbios1"] == f"uuid={build.server_uuid}"
    assert len(cluster.calls("POST", "/clone")) == 1
    assert cluster.vm(template_vmid())["config"]["template"] == "1"
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)
