"""The numbers of servers for Prometheus, from the cluster to the text of a scrape."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.messages.guests import GuestOwner
from common.metrics import exposition
from tests.functional.compute.conftest import Worker, a_build, configuration, proxmox_text
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually


@pytest.mark.parametrize("wanted", [True, False])
def test_a_scrape_has_each_server_where_that_is_asked_for(
    simulator: RunningSimulator, tmp_path: Path, wanted: bool
) -> None:
    conf = configuration(tmp_path, proxmox_text(simulator))
    conf.set_override("guests", wanted, group="metrics")
    worker = Worker(conf)
    worker.start()
    try:
        build = a_build()
        assert worker.run(build).ok
        where = build.placed
        worker.conductor.guests = [
            GuestOwner(where.cluster, where.vmid, build.resource_id, "project-1")
        ]
        simulator.control("POST", "clock", {"statistics": True})
        line = (
            f'micronova_guest_cpus{{kind="total",project="project-1",'
            f'server="{build.resource_id}"}} 2.0'
        )
        if wanted:
            eventually(lambda: line in exposition.text().decode())
        else:
            assert "micronova_guest_" not in exposition.text().decode()
    finally:
        worker.stop()
