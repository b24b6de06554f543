"""Volumes under a VMID that no VM has, wherever in the cluster: they would poison it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.messages.commands import Build
from common.messages.reports import Category
from compute.hypervisor.proxmox import settings
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.cluster.stray_volumes import StrayVolumes
from compute.hypervisor.proxmox.driver import ProxmoxHypervisor
from tests.fixtures.root_shell import RootShell
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    as_root,
    configuration,
    proxmox_text,
)
from tests.functional.simulator_fixture import RunningSimulator, running_simulator
from tests.functional.waiting import eventually

#: the storage that only the other node has
LISTING = "/nodes/pve2/storage/local/content"
BESIDE = 8
LONG_AGO = 1_700_000_000


def listings(cluster: Cluster) -> list[str]:
    """The query of each listing of the other node's storage, but for those of importable files."""
    found = cluster.calls("GET", LISTING)
    return [one["query"] for one in found if "content=images" in one["query"]]


def put(simulator: RunningSimulator, node: str, volid: str) -> str:
    """Somebody's volume, made long ago."""
    simulator.control("POST", "volume", {"volid": volid, "node": node, "ctime": LONG_AGO})
    return volid


def cloudinit(build: Build, storage: str = "local") -> str:
    vmid = build.placed.vmid
    return f"{storage}:{vmid}/vm-{vmid}-cloudinit.qcow2"


def looked_at(worker: Worker, build: Build) -> dict[str, Any]:
    """What the first step reported of a build that went well."""
    outcome = worker.run(build)
    assert outcome.ok, outcome.failure
    return dict(worker.conductor.steps(build)["compute_check_host"].detail)


def test_one_on_another_node_is_refused_and_not_touched(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    build = a_build()
    volid = put(simulator, "pve2", cloudinit(build))
    outcome = worker.run(build)
    assert outcome.gone
    assert outcome.failure is not None
    assert outcome.failure.refused
    failure = outcome.failure
    assert failure is not None
    assert (failure.step, failure.category) == ("compute_check_host", Category.STORAGE_CONFLICT)
    assert f"{volid} on pve2" in failure.message
    assert failure.left == (f"volume {volid} on pve2",)
    assert failure.remedy == f"as root on pve2: pvesm free {volid}"
    assert cluster.volumes(build.placed.vmid) == [volid]
    assert cluster.calls("POST", "/qemu") == cluster.calls("POST", "/clone") == []


def test_all_are_named_and_removed_by_one_remedy(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, shell: RootShell
) -> None:
    build = a_build()
    here, there = (put(simulator, node, cloudinit(build)) for node in ("pve1", "pve2"))
    failure = worker.run(build).failure
    assert failure is not None
    assert failure.left == (f"volume {here}", f"volume {there} on pve2")
    first = f"as root on pve1: pvesm free {here}"
    assert failure.remedy == f"{first}; as root on pve2: pvesm free {there}"
    shell.run(failure.remedy)
    worker.service._executor._repeats._outcomes.clear()
    assert worker.run(build).ok


def test_a_shared_storage_that_the_placed_node_lacks(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    build = a_build()
    volid = put(simulator, "pve2", cloudinit(build, "shared"))
    root = as_root(simulator)
    root.storage("shared").put(nodes="pve2")
    try:
        worker.hypervisors[0].observe()
        failure = worker.run(dataclasses.replace(build, template=None)).failure
    finally:
        root.storage("shared").put(nodes="")
    worker.hypervisors[0].observe()
    assert failure is not None
    assert failure.remedy == f"as root on pve2: pvesm free {volid}"


def test_one_build_asks_each_storage_once_and_for_its_own_vmid(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    simulator.control("DELETE", "calls")
    build = a_build()
    assert "unseen" not in looked_at(worker, build)
    assert [query.split("&")[-1] for query in listings(cluster)] == [f"vmid={build.placed.vmid}"]
    shared = cluster.calls("GET", "/storage/shared/content")
    images = [one for one in shared if one["query"].endswith(f"vmid={build.placed.vmid}")]
    assert [one["path"].split("/")[4] for one in images] == ["pve1"], "once, by the placed node"


@pytest.fixture
def patient(
    worker: Worker, simulator: RunningSimulator, tmp_path: Path
) -> Iterator[tuple[Worker, StrayVolumes]]:
    """A worker that waits long for listings, and its listings."""
    conf = configuration(tmp_path, proxmox_text(simulator))
    (one,) = settings.clusters(conf)
    client = Client(one)
    strays = StrayVolumes(client, patience_seconds=60)
    made = Worker(conf, [ProxmoxHypervisor(conf, one, client, strays)])
    made.start()
    try:
        yield made, strays
    finally:
        made.stop()


def test_parallel_builds_share_what_began_after_they_asked(
    patient: tuple[Worker, StrayVolumes], cluster: Cluster, simulator: RunningSimulator
) -> None:
    """One listing is under way while the others ask: one more serves them all."""
    worker, strays = patient
    assert worker.run(a_build()).ok  # the template
    simulator.control("DELETE", "calls")
    # Lists of importable files are held, too.
    held = simulator.fault(action="hold", method="GET", path=f"{LISTING}$", times=0)
    builds = [a_build() for _ in range(BESIDE)]
    poisoned = put(simulator, "pve2", cloudinit(builds[-1]))
    worker.send(builds[0])
    eventually(lambda: strays._running, 10)
    for build in builds[1:]:
        worker.send(build)
    eventually(lambda: (look := strays._next) and len(look.vmids) == BESIDE - 1, 30)
    simulator.control("DELETE", f"faults?id={held['id']}")
    outcomes = worker.conductor.wait_for(
        lambda: (
            found if all(found := [worker.conductor.outcomes(build) for build in builds]) else None
        )
    )
    assert [outcome.ok for [outcome] in outcomes] == [True] * (BESIDE - 1) + [False]
    assert cluster.volumes(builds[-1].placed.vmid) == [poisoned]
    assert [query.count("vmid=") for query in listings(cluster)] == [1, 0]


def test_a_storage_elsewhere_that_can_t_be_listed_is_reported(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    simulator.fault(action="fail", method="GET", path=f"{LISTING}$", times=0)
    assert looked_at(worker, a_build())["unseen"] == ["local on pve2"]


def test_a_node_that_is_offline_is_reported(tmp_path: Path) -> None:
    with running_simulator(tmp_path / "three", nodes=3) as three:
        made = Worker(configuration(tmp_path, proxmox_text(three)))
        three.fault(action="node-down", node="pve3")
        made.start()
        try:
            assert looked_at(made, a_build(template=None))["unseen"] == ["pve3"]
            paths = [one["path"] for one in three.control("GET", "calls")]
            assert any("/nodes/pve2/storage/local/content" in path for path in paths)
            assert not any("/nodes/pve3/storage" in path for path in paths)
        finally:
            made.stop()


def test_what_was_not_looked_at_is_not_ours_when_it_is_back(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, tmp_path: Path
) -> None:
    """Somebody's volume, on a storage that was away when the VMID was looked at."""
    build = a_build(template=None)
    made = Worker(
        configuration(tmp_path, proxmox_text(simulator, vm_storage="shared", iso_storage="shared"))
    )
    volid = put(simulator, "pve1", cloudinit(build))
    away = simulator.fault(action="storage-offline", storage="local", node="pve1")
    made.start()
    try:
        held = simulator.fault(action="hold", method="POST", path="/storage/shared/upload$")
        simulator.fault(action="task-fail", method="POST", path="/nodes/pve1/qemu$")
        made.send(build)
        eventually(lambda: simulator.struck(held["id"]), 10)
        for one in (away, held):
            simulator.control("DELETE", f"faults?id={one['id']}")
        [outcome] = made.conductor.wait_for(lambda: made.conductor.outcomes(build))
    finally:
        made.stop()
    steps = made.conductor.steps(build)
    assert "local on pve1" in steps["compute_check_host"].detail["unseen"]
    assert cluster.volumes(build.placed.vmid) == [volid]
    assert not outcome.gone
    assert outcome.failure is not None
    assert outcome.failure.left == (f"volume {volid}",)
    assert outcome.failure.remedy == f"as root on pve1: pvesm free {volid}"


def test_a_look_that_fails_is_taken_again_before_the_host_is_left(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    build = a_build()
    # An earlier run came as far as this, then its agent ended.
    name = f"micronova-{build.placed.vmid}-{build.resource_id}.iso"
    drive = put(simulator, "pve1", f"local:iso/{name}")
    listing = r"/nodes/pve1/storage/local/content$"
    vmid = build.placed.vmid
    simulator.fault(action="fail", method="GET", path=listing, vmid=vmid, status=595)
    outcome = worker.run(build)
    assert outcome.failure is not None
    assert outcome.failure.category is Category.NODE_UNHEALTHY
    assert (outcome.gone, outcome.failure.clean) == (True, True)
    assert worker.conductor.steps(build)["compute_find_vm"].detail["found"] == "nothing"
    assert drive not in [one["volid"] for one in simulator.state()["clusters"][0]["volumes"]]


def test_a_vm_that_is_newer_than_the_snapshot_is_seen_with_its_volumes(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    """An earlier run began it on the template's node, which went down: only root can go on."""
    worker.hypervisors[0].observe()
    build = a_build()
    vmid = build.placed.vmid
    root = as_root(simulator)
    root.nodes("pve2").qemu.post(vmid=vmid, scsi0="shared:1")
    eventually(lambda: "lock" not in cluster.vm(vmid)["config"] and cluster.volumes(vmid), 30)
    simulator.control("POST", "faults", {"action": "config-lock", "vmid": vmid, "lock": "clone"})
    failure = worker.run(build).failure
    assert failure is not None
    assert (failure.category, failure.verdict) == (Category.LOCK, "quarantine")
    assert failure.remedy == f"as root on pve2: qm unlock {vmid} && qm destroy {vmid} --purge"
