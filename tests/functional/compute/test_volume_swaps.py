"""Rebuilds and rescues of servers that boot from volumes: the VM names another one, or none."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from common.messages.commands import Build, MakeVolume, ServerVolume
from common.messages.reports import Category
from common.resources.states import PowerState
from tests.fixtures.storages import STORAGES
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_build_on,
    a_destroy,
    a_removal,
    a_server_volume,
    a_swap,
    a_volume,
    an_end,
)
from tests.functional.compute.test_boot_volumes import CIRROS, config, made
from tests.functional.simulator_fixture import RunningSimulator

Made = tuple[MakeVolume, str]


def a_server(worker: Worker, **more: Any) -> tuple[Build, Made]:
    root = made(worker, source=CIRROS, size_gib=3, **more)
    build = a_build_on(a_server_volume(*root))
    assert worker.run(build).ok
    return build, root


def beside(worker: Worker, root: Made) -> Made:
    """Make another holder for the same volume, with the image's content."""
    another = a_volume(source=CIRROS, size_gib=3, storage=root[0].storage)
    command = dataclasses.replace(another, resource_id=root[0].resource_id)
    outcome = worker.run(command)
    assert outcome.volume is not None, outcome
    return command, outcome.volume.volid


@pytest.fixture
def storage(request: pytest.FixtureRequest, simulator: RunningSimulator, worker: Worker) -> str:
    """A storage of the type that is asked for."""
    name = f"of-{request.param}"
    STORAGES[request.param].add(simulator.control, name)
    worker.hypervisors[0].observe()
    return name


TYPES = pytest.mark.parametrize("storage", list(STORAGES), indirect=True)


def named(root: Made) -> ServerVolume:
    return a_server_volume(*root)


def gone(worker: Worker, build: Build, *volumes: Made) -> None:
    assert worker.run(a_destroy(build)).gone
    for one in volumes:
        assert worker.run(a_removal(*one, build)).gone


@pytest.mark.sampled(4)
@TYPES
@pytest.mark.parametrize("running", [True, False])
def test_a_rebuilt_server_names_the_new_volume(
    worker: Worker, cluster: Cluster, storage: str, running: bool
) -> None:
    build, root = a_server(worker, storage=storage)
    new = beside(worker, root)
    swap = a_swap(build, running=running, image=None, root=named(new))
    for number in (0, 10**6):
        # Once more, as after a crash: it finds what it did.
        outcome = worker.run(dataclasses.replace(swap, attempt=1 + number))
        assert outcome.ok, outcome
        power = PowerState.RUNNING if running else PowerState.SHUTDOWN
        assert outcome.power_state == power
        has = config(cluster, build.placed.vmid)
        assert has["scsi0"].startswith(f"{new[1]},")
        assert f"serial={root[0].resource_id[:20]}" in has["scsi0"]
        assert has["boot"].split(";")[0] == "order=scsi0"
        assert not [key for key in has if key.startswith("unused")]
    # The old one is at rest in its own holder, until it is removed.
    assert config(cluster, root[0].placed.vmid)["unused0"] == root[1]
    assert worker.run(an_end(build, keep=True, running=running)).ok
    assert "before=" not in config(cluster, build.placed.vmid)["description"]
    assert worker.run(a_removal(*root, build)).gone
    assert cluster.is_empty(root[0].placed.vmid)
    refused = worker.run(a_removal(*new, build))
    assert refused.failure is not None
    assert refused.failure.category is Category.PROTECTED
    gone(worker, build, new)


def test_the_old_one_is_given_back(worker: Worker, cluster: Cluster) -> None:
    build, root = a_server(worker)
    before = config(cluster, build.placed.vmid)["scsi0"]
    new = beside(worker, root)
    assert worker.run(a_swap(build, image=None, root=named(new))).ok
    for _ in range(2):
        assert worker.run(an_end(build, keep=False)).ok
        has = config(cluster, build.placed.vmid)
        assert has["scsi0"] == before
        assert "before=" not in has["description"]
    # Nobody names the new one any more.
    assert worker.run(a_removal(*new, build)).gone
    gone(worker, build, root)


def test_the_same_volume_stays_as_it_is(worker: Worker, cluster: Cluster) -> None:
    build, root = a_server(worker)
    before = config(cluster, build.placed.vmid)
    swap = a_swap(build, image=None, root=named(root))
    assert worker.run(swap).ok
    has = config(cluster, build.placed.vmid)
    assert has["scsi0"] == before["scsi0"]
    assert "ide2" in has
    assert worker.run(an_end(build, keep=True)).ok
    gone(worker, build, root)


def test_a_volume_that_is_not_at_rest_is_refused(worker: Worker, cluster: Cluster) -> None:
    build, root = a_server(worker)
    other, theirs = a_server(worker)
    wrong = dataclasses.replace(named(theirs), volume_id=root[0].resource_id)
    outcome = worker.run(a_swap(build, image=None, root=wrong))
    assert outcome.failure is not None
    assert outcome.failure.step == "compute_check_host"
    has = config(cluster, build.placed.vmid)
    assert has["scsi0"].startswith(f"{root[1]},")
    assert cluster.vm(build.placed.vmid)["status"] == "running"
    gone(worker, build, root)
    gone(worker, other, theirs)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("action", ["lose-answer", "fail", "task-fail"])
@pytest.mark.parametrize("path", ["config$", "status/start$", "status/shutdown$"])
@pytest.mark.parametrize("call", [1, 2])
def test_what_fails_leaves_the_old_or_the_new(
    worker: Worker,
    cluster: Cluster,
    simulator: RunningSimulator,
    action: str,
    path: str,
    call: int,
) -> None:
    build, root = a_server(worker)
    new = beside(worker, root)
    fault = {"action": action, "method": "POST", "path": path, "nth": call}
    simulator.control("POST", "faults", fault)
    outcome = worker.run(a_swap(build, image=None, root=named(new)))
    simulator.control("DELETE", "faults")
    has = config(cluster, build.placed.vmid)
    stays, goes = (new, root) if outcome.ok else (root, new)
    if not outcome.ok:
        assert worker.run(an_end(build, keep=False)).ok
        has = config(cluster, build.placed.vmid)
    assert has["scsi0"].startswith(f"{stays[1]},"), outcome
    assert cluster.vm(build.placed.vmid)["status"] == "running"
    assert worker.run(a_removal(*goes, build)).gone
    gone(worker, build, stays)


@TYPES
def test_one_is_rescued_beside_its_volume(worker: Worker, cluster: Cluster, storage: str) -> None:
    build, root = a_server(worker, storage=storage)
    swap = a_swap(build, image=a_build().image, disk_gib=0, rescue=True)
    outcome = worker.run(swap)
    assert outcome.ok, outcome
    has = config(cluster, build.placed.vmid)
    assert has["boot"].split(";")[0] == "order=scsi15"
    assert has["scsi15"].startswith(f"{storage}:")
    assert has["scsi0"].startswith(f"{root[1]},")
    assert worker.run(an_end(build, keep=False, rescued=True)).ok
    has = config(cluster, build.placed.vmid)
    assert has["boot"].split(";")[0] == "order=scsi0"
    assert not [key for key in has if key.startswith(("unused", "scsi15"))]
    gone(worker, build, root)
    assert cluster.is_empty(build.placed.vmid)
