"""Another size for a server's VM, on a simulated cluster: applied, or as it was."""

from __future__ import annotations

from typing import Any

import pytest

from common.messages.commands import Build, PowerAction, Size
from common.resources.states import PowerState
from tests.functional.compute.conftest import (
    Cluster,
    RunningSimulator,
    Worker,
    a_build,
    a_destroy,
    a_growth,
    a_power,
    a_shape,
)

LARGER = Size(8, 2048, {"hw:cpu_sockets": "2", "hw:watchdog_action": "reset"})


@pytest.fixture
def build(worker: Worker) -> Build:
    build = a_build()
    assert worker.run(build).ok
    return build


def shape_of(cluster: Cluster, build: Build) -> dict[str, Any]:
    config = cluster.vm(build.placed.vmid)["config"]
    names = ("cores", "sockets", "memory", "watchdog", "net0")
    return {name: config.get(name) for name in names}


NET = "virtio=FA:16:3E:00:00:01,bridge=vmbr0,mtu=1450,tag=7"
WAS = {"cores": "2", "sockets": None, "memory": "512", "watchdog": None, "net0": NET}
WATCHDOG = "model=i6300esb,action=reset"
IS = {"cores": "4", "sockets": "2", "memory": "2048", "watchdog": WATCHDOG, "net0": NET}


@pytest.mark.parametrize("running", [True, False])
def test_a_new_size_and_back(
    worker: Worker, cluster: Cluster, build: Build, running: bool
) -> None:
    if not running:
        assert worker.run(a_power(build, PowerAction.STOP)).ok
    power = PowerState.RUNNING if running else PowerState.SHUTDOWN
    outcome = worker.run(a_shape(build, LARGER, running=running))
    assert (outcome.ok, outcome.power_state) == (True, power)
    assert shape_of(cluster, build) == IS
    before = len(cluster.calls("POST", "/config"))
    again = worker.run(a_shape(build, LARGER, running=running))
    assert (again.ok, again.power_state) == (True, power)
    assert len(cluster.calls("POST", "/config")) == before
    back = a_shape(build, Size(2, 512), running=running, former=LARGER)
    assert worker.run(back).ok
    assert shape_of(cluster, build) == WAS
    assert worker.run(a_destroy(build)).gone


@pytest.mark.parametrize("path", [r"/qemu/\d+/config$", "/status/start$", "/status/shutdown$"])
def test_what_fails_is_undone(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, build: Build, path: str
) -> None:
    simulator.fault(action="fail", method="POST", path=path, text="No space left on device")
    outcome = worker.run(a_shape(build, LARGER))
    assert outcome.failure is not None
    assert outcome.failure.clean
    assert shape_of(cluster, build) == WAS
    assert outcome.power_state == PowerState.RUNNING


@pytest.mark.parametrize("path", [r"/qemu/\d+/config$", "/status/start$", "/status/shutdown$"])
@pytest.mark.parametrize("how", [{}, {"how": "drop"}])
def test_a_lost_answer_is_looked_for(
    worker: Worker,
    cluster: Cluster,
    simulator: RunningSimulator,
    build: Build,
    path: str,
    how: dict[str, Any],
) -> None:
    simulator.fault(action="lose-answer", method="POST", path=path, **how)
    assert worker.run(a_shape(build, LARGER)).ok
    assert shape_of(cluster, build) == IS


def test_a_disk_grows_while_it_runs_and_never_shrinks(
    worker: Worker, cluster: Cluster, build: Build
) -> None:
    before = len(cluster.calls("PUT", "/resize"))
    for gib in (5, 5, 3):
        assert worker.run(a_growth(build, gib)).power_state == PowerState.RUNNING
        assert "size=5G" in cluster.vm(build.placed.vmid)["config"]["scsi0"]
    assert len(cluster.calls("PUT", "/resize")) == before + 1


def test_others_vms_are_left_alone(worker: Worker, cluster: Cluster, build: Build) -> None:
    other = a_build(build.placed.vmid)
    assert not worker.run(a_shape(other, LARGER)).ok
    assert not worker.run(a_growth(other, 9)).ok
    assert shape_of(cluster, build) == WAS
