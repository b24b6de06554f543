"""Which of a cluster's endpoints is asked: an upload is sent to the node that shall have it."""

from __future__ import annotations

from pathlib import Path

from tests.functional.compute.conftest import (
    Worker,
    a_build,
    a_destroy,
    configuration,
    proxmox_text,
)
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually


def _known(worker: Worker) -> set[str]:
    """The nodes whose own endpoints the driver knows by now."""
    return set(worker.hypervisors[0].shared.client.own)  # type: ignore[attr-defined]


def test_an_upload_is_sent_to_its_own_node(simulator: RunningSimulator, tmp_path: Path) -> None:
    endpoints = ",".join(simulator.node_urls.values())
    worker = Worker(configuration(tmp_path, proxmox_text(simulator, endpoints=endpoints)))
    worker.start()
    try:
        eventually(lambda: _known(worker) == set(simulator.node_urls), 30)
        for _number in range(3):
            build = a_build(template=None)
            assert worker.run(build).ok
            upid = worker.conductor.steps(build)["compute_upload_config_drive"].upid
            assert upid is not None
            assert upid.split(":")[1] == build.placed.node
            assert worker.run(a_destroy(build)).gone
    finally:
        worker.stop()
