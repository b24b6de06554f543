"""Builds of servers that name volumes: as root disk, and beside one of their own."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.messages.commands import MakeVolume, Placed, VolumeSource
from common.messages.reports import Category
from common.resources.states import PowerState
from tests.fixtures.null import DRIVER
from tests.functional.compute.conftest import (
    CLOUD,
    Cluster,
    Worker,
    a_build,
    a_build_on,
    a_destroy,
    a_move,
    a_removal,
    a_server_volume,
    a_volume,
    an_attachment,
    configuration,
)
from tests.functional.simulator_fixture import RunningSimulator

CIRROS = VolumeSource("shared:import/cirros.qcow2")


def made(worker: Worker, **more: Any) -> tuple[MakeVolume, str]:
    command = a_volume(**more)
    outcome = worker.run(command)
    assert outcome.volume is not None, outcome
    return command, outcome.volume.volid


def config(cluster: Cluster, vmid: int) -> Any:
    return cluster.vm(vmid)["config"]


def test_a_server_boots_from_a_volume(worker: Worker, cluster: Cluster) -> None:
    root, data = made(worker, source=CIRROS, size_gib=3), made(worker)
    build = a_build_on(a_server_volume(*root), a_server_volume(*data, slot=1))
    outcome = worker.run(build)
    assert (outcome.ok, outcome.power_state) == (True, PowerState.RUNNING), outcome
    has = config(cluster, build.placed.vmid)
    assert has["scsi0"].startswith(f"{root[1]},")
    assert f"serial={root[0].resource_id[:20]}" in has["scsi0"]
    assert has["scsi1"].startswith(f"{data[1]},")
    assert has["boot"] == "order=scsi0"
    assert f"micronova: server={build.resource_id}" in has["description"]
    # Nothing on any storage is its own, but the config drive.
    own = [one for one in cluster.volumes(build.placed.vmid) if not one.endswith(".iso")]
    assert own == []
    # Once more, as after a crash: it finds what it made.
    again = dataclasses.replace(build, operation_id=build.operation_id + 10**6)
    assert worker.run(again).ok
    assert config(cluster, build.placed.vmid)["scsi0"] == has["scsi0"]
    steps = worker.conductor.steps(build)
    assert "compute_attach_volumes" in steps
    # A destroy takes none of them along.
    for _ in range(2):
        assert worker.run(a_destroy(build)).gone
    for command, volid in (root, data):
        assert config(cluster, command.placed.vmid)["unused0"] == volid
        assert worker.run(a_removal(command, volid, build)).gone


def test_one_that_is_made_is_seen_without_a_change(worker: Worker, cluster: Cluster) -> None:
    """Also where its storage lists no size of what isn't plugged."""
    volume, volid = made(worker)
    before = config(cluster, volume.placed.vmid)
    seen = worker.look(volume)
    assert seen.volume is not None, seen
    assert (seen.volume.volid, seen.volume.size_bytes >= volume.size_gib << 30) == (volid, True)
    assert config(cluster, volume.placed.vmid) == before
    assert worker.run(a_removal(volume, volid)).gone


def test_one_with_a_disk_of_its_own_gets_a_volume_beside(worker: Worker, cluster: Cluster) -> None:
    data = made(worker)
    build = a_build(volumes=(a_server_volume(*data, slot=1),), cloud=CLOUD)
    assert worker.run(build).ok
    has = config(cluster, build.placed.vmid)
    assert f"vm-{build.placed.vmid}-" in has["scsi0"]
    assert has["scsi1"].startswith(f"{data[1]},")
    assert worker.run(a_destroy(build)).gone
    assert config(cluster, data[0].placed.vmid)["unused0"] == data[1]
    assert worker.run(a_removal(*data, build)).gone


def test_firmware_has_a_small_disk_of_its_own(worker: Worker, cluster: Cluster) -> None:
    root = made(worker, source=CIRROS, size_gib=3)
    uefi = {"hw_firmware_type": "uefi"}
    build = a_build_on(a_server_volume(*root), image_properties=uefi)
    assert worker.run(build).ok
    has = config(cluster, build.placed.vmid)
    assert f"vm-{build.placed.vmid}-" in has["efidisk0"]
    assert has["scsi0"].startswith(f"{root[1]},")
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)
    assert worker.run(a_removal(*root, build)).gone


def test_a_volume_that_is_not_free_ends_the_build(worker: Worker, cluster: Cluster) -> None:
    """What was made is removed; the volume is left with its present server."""
    root = made(worker, source=CIRROS, size_gib=3)
    volume = a_server_volume(*root)
    first = a_build_on(volume)
    assert worker.run(first).ok
    for wrong in (
        {"holder": Placed("pve1", "c1", "pve1", 199_999)},
        {"volid": root[1].replace("disk-0", "disk-9")},
    ):
        build = a_build_on(dataclasses.replace(volume, **wrong))
        outcome = worker.run(build)
        assert outcome.failure is not None
        assert outcome.failure.category is Category.VANISHED
        assert (outcome.failure.step, outcome.gone) == ("compute_attach_volumes", True)
        assert cluster.is_empty(build.placed.vmid)
    assert config(cluster, first.placed.vmid)["scsi0"].startswith(f"{root[1]},")
    assert worker.run(a_destroy(first)).gone
    assert worker.run(a_removal(*root, first)).gone


@pytest.mark.parametrize("action", ["lose-answer", "fail", "task-fail"])
@pytest.mark.parametrize("path", ["qemu$", "config$", "status/start$"])
def test_what_fails_leaves_the_volumes(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, action: str, path: str
) -> None:
    root, data = made(worker, source=CIRROS, size_gib=3), made(worker)
    build = a_build_on(a_server_volume(*root), a_server_volume(*data, slot=2))
    simulator.control("POST", "faults", {"action": action, "method": "POST", "path": path})
    outcome = worker.run(build)
    simulator.control("DELETE", "faults")
    if outcome.ok:
        assert worker.run(a_destroy(build)).gone
    else:
        assert outcome.gone, outcome
    assert cluster.is_empty(build.placed.vmid)
    for command, volid in (root, data):
        assert config(cluster, command.placed.vmid)["unused0"] == volid
        assert worker.run(a_removal(command, volid, build)).gone


@pytest.fixture
def null(tmp_path: Path) -> Iterator[Worker]:
    text = f"""
[DEFAULT]
transport_url = micronova-local://{uuid.uuid4().hex}
[compute]
driver = {DRIVER}
worker = worker1
[null]
hosts = 1
"""
    running = Worker(configuration(tmp_path, text))
    running.start()
    yield running
    running.stop()


def test_the_null_driver_keeps_them(null: Worker) -> None:
    volume = a_volume()
    volume = dataclasses.replace(volume, placed=Placed("null0001", "null", "null0001", 100_101))
    outcome = null.run(volume)
    assert outcome.volume is not None
    root = a_server_volume(volume, outcome.volume.volid)
    build = a_build_on(root)
    build = dataclasses.replace(build, placed=Placed("null0001", "null", "null0001", 100_102))
    assert null.run(build).ok
    again = a_build_on(root)
    again = dataclasses.replace(again, placed=Placed("null0001", "null", "null0001", 100_103))
    refused = null.run(again)
    assert (refused.ok, refused.gone) == (False, True)
    used = null.run(a_removal(volume, root.volid))
    assert used.failure is not None
    assert used.failure.category is Category.PROTECTED
    assert null.run(an_attachment(build, volume, root.volid, on=False)).ok
    assert null.run(a_destroy(build)).gone
    assert null.run(a_removal(volume, root.volid)).gone


def test_one_on_shared_storage_moves_and_one_on_local_storage_stays(
    worker: Worker, cluster: Cluster
) -> None:
    """The volume's holder remains where it is: the configuration alone moves."""
    shared = made(worker, source=CIRROS, size_gib=3, storage="shared")
    local = made(worker, source=CIRROS, size_gib=3)
    goes, stays = a_build_on(a_server_volume(*shared)), a_build_on(a_server_volume(*local))
    for build in (goes, stays):
        assert worker.run(build).ok
    outcome = worker.run(a_move(goes, "pve2"))
    assert (outcome.ok, outcome.node) == (True, "pve2"), outcome
    moved = cluster.vm(goes.placed.vmid)
    assert (moved["node"], moved["config"]["scsi0"].split(",")[0]) == ("pve2", shared[1])
    holder = cluster.vm(shared[0].placed.vmid)
    assert (holder["node"], holder["config"]["unused0"]) == ("pve1", shared[1])
    refused = worker.run(a_move(stays, "pve2"))
    assert refused.failure is not None
    assert f"belongs to VM {local[0].placed.vmid}" in refused.failure.message
    assert cluster.vm(stays.placed.vmid)["node"] == "pve1"
    there = dataclasses.replace(goes, placed=dataclasses.replace(goes.placed, node="pve2"))
    for build, volume in ((there, shared), (stays, local)):
        assert worker.run(a_destroy(build)).gone
        assert worker.run(a_removal(*volume, build)).gone
