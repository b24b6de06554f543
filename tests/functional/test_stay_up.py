"""Machines whose clocks are wrong, replicas that freeze or restart, while clients create servers.

No client meets an error, nothing is made twice, and every server becomes active.
"""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.functional import load
from tests.functional.distributed import DistributedCloud, distributed_cloud
from tests.functional.load import WAIT_SECONDS, creating
from tests.functional.waiting import eventually

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(2400)]

FROZEN_SECONDS = 90
#: each is one of two, but for the agents and the APIs, which are one process tree each
MOVED = ("conductor-1", "scheduler-1", "compute-pve1", "compute", "placement")


@pytest.fixture(scope="module")
def clocks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The file that says by how much each process's clock differs."""
    folder = tmp_path_factory.mktemp("clocks")
    folder.chmod(0o755)
    files = {name: folder / name for name in MOVED}
    for file in files.values():
        file.write_text("+0\n")
    return files


@pytest.fixture(scope="module")
def cloud(
    tmp_path_factory: pytest.TempPathFactory, clocks: dict[str, Path]
) -> Iterator[DistributedCloud]:
    folder = tmp_path_factory.mktemp("distributed")
    with distributed_cloud(folder, clocks=clocks) as running:
        yield running


@pytest.fixture
def work(cloud: DistributedCloud) -> Iterator[dict[str, Any]]:
    with load.work(cloud) as what:
        yield what


def offset_of(cloud: DistributedCloud, name: str) -> float | None:
    """By how much a process says that its machine's clock is ahead."""
    port = cloud.metrics_ports[name]
    text = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text
    found = re.search(r"^micronova_clock_offset_seconds (\S+)$", text, re.MULTILINE)
    return None if found is None else float(found[1])


def states_of_services(cloud: DistributedCloud) -> set[str]:
    compute = cloud.connection("micronova-admin").compute
    return {one.state for one in compute.services()}


@pytest.mark.parametrize("seconds", [120, pytest.param(-120, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "name",
    ["conductor-1", *(pytest.param(one, marks=pytest.mark.long) for one in MOVED[1:])],
)
def test_a_clock_that_is_wrong_breaks_nothing(
    cloud: DistributedCloud,
    clocks: dict[str, Path],
    work: dict[str, Any],
    name: str,
    seconds: int,
) -> None:
    """Of one machine, whose clock steps while the service runs."""
    compute = cloud.connection().compute
    eventually(lambda: abs(offset_of(cloud, name) or 99.0) < 2)
    with creating(**work, prefix=f"clock-{name}-{seconds}") as made:
        clocks[name].write_text(f"{seconds:+d}\n")
        try:
            eventually(lambda: abs((offset_of(cloud, name) or 0.0) - seconds) < 5, 60)
            threading.Event().wait(20)
            assert states_of_services(cloud) == {"up"}
        finally:
            clocks[name].write_text("+0\n")
    made.assert_no_errors()
    eventually(lambda: made.settled(compute), WAIT_SECONDS)
    made.assert_made_once(compute)


@pytest.mark.parametrize("name", ["conductor-1", "scheduler-1"])
def test_a_service_does_not_start_by_a_wrong_clock(
    cloud: DistributedCloud, clocks: dict[str, Path], name: str
) -> None:
    child = cloud.children[name]
    child.stop(20)
    clocks[name].write_text("-120\n")
    try:
        child.start()
        eventually(lambda: child.pid is None, 60)
        assert "clock is 1" in child.log_path.read_text()
        assert "behind the database's" in child.log_path.read_text()
    finally:
        clocks[name].write_text("+0\n")
    cloud.restart(name)


def test_a_service_that_could_not_compare_its_clock_is_not_ready_by_a_wrong_one(
    cloud: DistributedCloud, clocks: dict[str, Path]
) -> None:
    """A scheduler asks a conductor for the time, and nobody answers at its start."""
    name, conductors = "scheduler-1", ("conductor-1", "conductor-2")
    scheduler = cloud.children[name]
    for one in (name, *conductors):
        cloud.children[one].stop(20)
    clocks[name].write_text("-120\n")
    try:
        scheduler.start()
        cloud.wait_started(name)
        for one in conductors:
            cloud.restart(one)
        eventually(lambda: (offset_of(cloud, name) or 0.0) < -100, 60)
        assert scheduler.pid is not None
        assert cloud.answer(name, "readyz") == "not ok\n"
        assert "The check of clock fails" in scheduler.log_path.read_text()
        assert cloud.answer(name, "healthz") == "ok\n"
    finally:
        clocks[name].write_text("+0\n")
    eventually(lambda: cloud.answer(name, "readyz") == "ok\n", 90)


@pytest.mark.long
@pytest.mark.parametrize("name", ["conductor-1", "conductor-2"])
def test_a_frozen_conductor_costs_no_client_an_error(
    cloud: DistributedCloud, work: dict[str, Any], name: str
) -> None:
    compute = cloud.connection().compute
    with creating(**work, prefix=f"frozen-{name}") as made:
        eventually(lambda: made.accepted)
        cloud.kill(name, signal.SIGSTOP)
        try:
            threading.Event().wait(FROZEN_SECONDS)
        finally:
            cloud.kill(name, signal.SIGCONT)
        threading.Event().wait(10)
    print(f"accepted {len(made.accepted)}, longest {made.longest_seconds:.1f} s")
    made.assert_no_errors()
    eventually(lambda: made.settled(compute), WAIT_SECONDS)
    made.assert_made_once(compute)
