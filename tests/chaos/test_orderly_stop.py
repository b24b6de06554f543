"""Processes end in order in the middle of a build, and begin again: it continues at once.

Leases last longer than any test: what waits for one to run out never ends.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.chaos.stage import Plan, Stage, stage

pytestmark = pytest.mark.timeout(2400)

LONG = {
    "conductor": {"lease_seconds": "3600", "build_timeout_seconds": "3600"},
    "compute": {"stop_seconds": "2"},
}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One conductor, so that nobody else takes over from it."""
    with stage(tmp_path_factory.mktemp("orderly"), Plan(conductors=1, options=LONG)) as running:
        yield running


@contextlib.contextmanager
def held(cloud: Stage, name: str, path: str) -> Iterator[Any]:
    """A build whose call to Proxmox VE is not answered as long as the block lasts."""
    order = cloud.simulator.fault(action="hold", method="POST", path=path)
    cloud.create(name)
    assert cloud.simulator.await_strike(order, 60)
    try:
        yield order
    finally:
        cloud.simulator.take_back(order)


@pytest.mark.parametrize("path", [r"/clone$", r"/qemu/\d+/config$", "/status/start$"])
@pytest.mark.parametrize("stopped", [("compute-1",), ("compute-1", "conductor-1")])
def test_what_a_stopped_agent_left_goes_on_at_once(
    cloud: Stage, path: str, stopped: tuple[str, ...]
) -> None:
    name = f"held-{os.urandom(3).hex()}"
    with held(cloud, name, path):
        for process in stopped:
            cloud.stop(process)
        assert cloud.named(name).vm_state == "building"
    for process in reversed(stopped):
        cloud.start(process)
    row = cloud.until(lambda: (row := cloud.named(name)) and row.vm_state != "building" and row)
    assert row.vm_state == "active", cloud.faults(row.uuid)
    assert [fault.message for fault in cloud.faults(row.uuid)] == []
