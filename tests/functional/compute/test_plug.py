"""Interfaces plugged and unplugged: running or not, lost answers, guests that don't let go."""

from __future__ import annotations

from typing import Any

import pytest

from common import ids
from common.messages.commands import Build, Nic, PowerAction
from common.messages.reports import Category, VmSeen
from common.resources.states import PowerState
from tests.functional.compute.conftest import Cluster, Worker, a_build, a_plug, a_power, as_root
from tests.functional.simulator_fixture import RunningSimulator

MAC = "fa:16:3e:00:00:09"
RUNNING = VmSeen(True, None, PowerState.RUNNING)


@pytest.fixture
def build(worker: Worker) -> Build:
    """A server that runs."""
    made = a_build()
    assert worker.run(made).ok
    return made


@pytest.fixture
def nic() -> Nic:
    return Nic(ids.new_uuid(), ids.new_uuid(), "net", "vmbr0", MAC, 1450, 7)


def config(cluster: Cluster, build: Build) -> Any:
    return cluster.vm(build.placed.vmid)["config"]


def test_a_running_vm_gets_an_interface_and_loses_it(
    worker: Worker, cluster: Cluster, build: Build, nic: Nic
) -> None:
    for _ in range(2):
        assert worker.run(a_plug(build, nic)) == RUNNING
    assert config(cluster, build)["net1"] == f"virtio={MAC.upper()},bridge=vmbr0,mtu=1450,tag=7"
    for _ in range(2):
        assert worker.run(a_plug(build, nic, on=False)) == RUNNING
        assert "net1" not in config(cluster, build)


def test_a_stopped_vm_too(worker: Worker, cluster: Cluster, build: Build, nic: Nic) -> None:
    assert worker.run(a_power(build, PowerAction.STOP)).ok
    assert worker.run(a_plug(build, nic, slot=0)) == VmSeen(True, None, PowerState.SHUTDOWN)
    # The slot that is wanted is the first interface's.
    assert MAC.upper() in config(cluster, build)["net1"]
    assert worker.run(a_plug(build, nic, on=False)) == VmSeen(True, None, PowerState.SHUTDOWN)
    assert "net1" not in config(cluster, build)


@pytest.mark.parametrize("action", ["lose-answer", "task-fail"])
@pytest.mark.parametrize("on", [True, False])
def test_what_became_of_it_is_looked_for(
    worker: Worker,
    cluster: Cluster,
    simulator: RunningSimulator,
    build: Build,
    nic: Nic,
    action: str,
    on: bool,
) -> None:
    assert worker.run(a_power(build, PowerAction.STOP)).ok
    if not on:
        assert worker.run(a_plug(build, nic)).ok
    before = len(cluster.calls("POST", f"/{build.placed.vmid}/config"))
    order = {"action": action, "method": "POST", "path": f"{build.placed.vmid}/config$"}
    simulator.control("POST", "faults", order)
    outcome = worker.run(a_plug(build, nic, on=on))
    made = "net1" in config(cluster, build)
    if action == "lose-answer":
        assert (outcome.ok, made) == (True, on)
        assert len(cluster.calls("POST", f"/{build.placed.vmid}/config")) == before + 1
    else:
        # It failed: as it was, or, if it was done all the same, as asked.
        assert made == (on if outcome.ok else not on)


@pytest.mark.parametrize("nth", range(1, 5))
@pytest.mark.parametrize("on", [True, False])
def test_a_look_that_fails_after_it_is_done_is_taken_again(
    worker: Worker,
    cluster: Cluster,
    simulator: RunningSimulator,
    build: Build,
    nic: Nic,
    nth: int,
    on: bool,
) -> None:
    if not on:
        assert worker.run(a_plug(build, nic)).ok
    path = f"{build.placed.vmid}/pending$"
    simulator.control("POST", "faults", {"action": "fail", "path": path, "nth": nth})
    outcome = worker.run(a_plug(build, nic, on=on))
    # Asked for and done, or it is as it was.
    assert ("net1" in config(cluster, build)) == (on if outcome.ok else not on)


def test_a_vm_that_takes_none_is_as_it_was(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, build: Build, nic: Nic
) -> None:
    nowhere = Nic(nic.port_id, nic.network_id, "net", "vmbr99", MAC)
    outcome = worker.run(a_plug(build, nowhere))
    assert not outcome.ok
    assert outcome.failure is not None
    assert outcome.failure.clean
    vm = cluster.vm(build.placed.vmid)
    assert "net1" not in vm["config"]
    pending = as_root(simulator).nodes("pve1").qemu(build.placed.vmid).pending.get()
    assert not [one for one in pending if one["key"] == "net1"]


def test_a_guest_that_does_not_let_go_keeps_it(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, build: Build
) -> None:
    simulator.control("POST", "faults", {"action": "guest-silent", "vmid": build.placed.vmid})
    root = as_root(simulator).nodes("pve1").qemu(build.placed.vmid)
    first = build.nics[0]
    outcome = worker.run(a_plug(build, first, on=False))
    assert outcome.failure is not None
    assert (outcome.failure.category, outcome.failure.verdict) == (
        Category.CONFIGURATION,
        "fatal",
    )
    assert "net0" in config(cluster, build)
    assert not [one for one in root.pending.get() if one.get("delete")]


def test_another_servers_vm_is_left_alone(
    worker: Worker, cluster: Cluster, build: Build, nic: Nic
) -> None:
    other = a_build(build.placed.vmid)
    outcome = worker.run(a_plug(other, nic))
    assert not outcome.ok
    assert "net1" not in config(cluster, build)
