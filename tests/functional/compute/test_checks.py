"""What is looked at before anything is made: a host that is refused is known to hold nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.messages.commands import Build, Image
from common.messages.reports import Category, Failure
from tests.functional.compute.conftest import (
    IMAGE,
    Cluster,
    Worker,
    a_build,
    configuration,
    proxmox_text,
    template_vmid,
)
from tests.functional.simulator_fixture import RunningSimulator


def refused(worker: Worker, cluster: Cluster, build: Build) -> Failure:
    """The build ended in its first step, and no call changed anything."""
    before = len(writes(cluster))
    outcome = worker.run(build)
    assert outcome.failure is not None, outcome
    assert outcome.failure.step == "compute_check_host"
    assert outcome.gone
    assert writes(cluster)[before:] == []
    return outcome.failure


def writes(cluster: Cluster) -> list[str]:
    calls = cluster._simulator.control("GET", "calls")
    return [
        f"{one['method']} {one['path']}"
        for one in calls
        if one["method"] != "GET" and not one["path"].startswith("/_sim")
    ]


@pytest.fixture
def configured(simulator: RunningSimulator, worker: Worker, tmp_path: Path) -> Iterator[Any]:
    """Makes workers with other options of the cluster."""
    running: list[Worker] = []

    def make(**options: str) -> Worker:
        made = Worker(configuration(tmp_path, proxmox_text(simulator, **options)))
        made.start()
        running.append(made)
        return made

    yield make
    for one in running:
        one.stop()


def test_a_storage_that_takes_no_config_drives(configured: Any, cluster: Cluster) -> None:
    failure = refused(configured(iso_storage="nowhere"), cluster, a_build())
    assert failure.category is Category.API_NOT_SUPPORTED
    assert "content 'iso'): nowhere" in failure.message


@pytest.mark.parametrize("storage", ["nowhere", "shared"])
def test_a_storage_for_disks_that_is_not_there(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, storage: str
) -> None:
    if storage == "shared":
        simulator.fault(action="storage-full", storage="shared")
        worker.hypervisors[0].shared.snapshot = (  # type: ignore[attr-defined]
            worker.hypervisors[0]._refresh()  # type: ignore[attr-defined]
        )
    failure = refused(worker, cluster, a_build(storage=storage))
    wanted = {"nowhere": Category.CONFIGURATION, "shared": Category.STORAGE_FULL}
    assert failure.category is wanted[storage]
    assert storage in failure.message
    simulator.control("DELETE", "faults")


def test_an_image_that_is_not_there(worker: Worker, cluster: Cluster) -> None:
    image = Image("gone", "gone", "shared:import/gone.qcow2")
    failure = refused(worker, cluster, a_build(image=image))
    assert failure.category is Category.IMAGE_NOT_FOUND
    assert cluster.vm(template_vmid()) is None


def test_an_image_on_a_storage_that_the_node_lacks(worker: Worker, cluster: Cluster) -> None:
    image = Image("i", IMAGE, f"elsewhere:import/{IMAGE}.qcow2")
    failure = refused(worker, cluster, a_build(image=image))
    assert failure.category is Category.CONFIGURATION


@pytest.mark.parametrize("storage", ["local", "shared"])
def test_a_stray_volume_on_any_storage_of_the_node(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, storage: str
) -> None:
    """It would poison the VMID: a cloud-init volume has a fixed name."""
    build = a_build()
    vmid = build.placed.vmid
    volid = f"{storage}:{vmid}/vm-{vmid}-cloudinit.qcow2"
    simulator.control("POST", "volume", {"volid": volid, "node": "pve1"})
    failure = refused(worker, cluster, build)
    assert failure.category is Category.STORAGE_CONFLICT
    assert failure.left == (f"volume {volid}",)
    assert failure.remedy == f"as root on pve1: pvesm free {volid}"
    assert cluster.volumes(vmid) == [volid]


def test_a_bridge_that_the_node_lacks(worker: Worker, cluster: Cluster) -> None:
    build = a_build()
    nic = dataclasses.replace(build.nics[0], bridge="vmbr9")
    failure = refused(worker, cluster, dataclasses.replace(build, nics=(nic,)))
    assert failure.category is Category.NETWORK


def test_a_cluster_without_quorum(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    earlier = len(worker.conductor.heartbeats)
    simulator.fault(action="no-quorum")
    worker.conductor.wait_for(
        lambda: any(
            "quorum" in facts.health and facts.node == "pve1"
            for beat in worker.conductor.heartbeats[earlier:]
            for facts in beat.facts
        )
    )
    failure = refused(worker, cluster, a_build())
    assert failure.category is Category.NODE_UNHEALTHY
    assert failure.verdict == "other_cluster"
    simulator.control("DELETE", "faults")
