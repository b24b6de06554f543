"""Ephemeral and swap disks of servers, on a simulated cluster with storages of several types."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from common import clock
from common.messages.commands import Build, Grow, PowerAction
from common.resources.local_disks import LocalDisk, of_server
from compute.hypervisor.proxmox.vmconfig import storage_types
from tests.fixtures.storages import STORAGES, StorageType
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_copy,
    a_destroy,
    a_growth,
    a_move,
    a_power,
    a_swap,
    an_end,
    as_root,
)
from tests.functional.compute.test_move import LOCAL, _running
from tests.functional.compute.test_swap import a_rescue
from tests.functional.simulator_fixture import RunningSimulator

DISKS = of_server(2, 512)
COPY = 198_700
SLOTS = ("scsi27", "scsi28", "scsi29", "scsi30")


def there(cluster: Cluster, build: Build) -> dict[str, str]:
    config = cluster.vm(build.placed.vmid)["config"]
    return {slot: str(config[slot]) for slot in SLOTS if slot in config}


def fitted(build: Build, disks: tuple[LocalDisk, ...]) -> Grow:
    return dataclasses.replace(a_growth(build, build.disk_gib), local_disks=disks)


def volume(value: str) -> str:
    return value.partition(",")[0]


def disks_of(cluster: Cluster, build: Build) -> list[str]:
    return sorted(one for one in cluster.volumes(build.placed.vmid) if ":iso/" not in one)


@pytest.fixture
def built(worker: Worker) -> Build:
    build = a_build(local_disks=DISKS)
    outcome = worker.run(build)
    assert outcome.ok, outcome
    return build


@pytest.mark.parametrize("kind", ["dir", *STORAGES])
def test_made_and_gone_with_the_server(
    kind: str, simulator: RunningSimulator, worker: Worker, cluster: Cluster
) -> None:
    STORAGES.get(kind, StorageType(kind)).add(simulator.control, f"fast-{kind}")
    worker.hypervisors[0].observe()
    disks = (*of_server(0, 0), LocalDisk(27, 2048), LocalDisk(28, 1024), LocalDisk(30, 100))
    build = a_build(local_disks=disks, storage=f"fast-{kind}", template=None)
    outcome = worker.run(build)
    assert outcome.ok, outcome
    found = there(cluster, build)
    assert [*found] == ["scsi27", "scsi28", "scsi30"]
    for slot, serial, size in (
        ("scsi27", "ephemeral0", "2G"),
        ("scsi28", "ephemeral1", "1G"),
        ("scsi30", "swap", "100M"),
    ):
        parts = found[slot].split(",")
        assert parts[0].startswith(f"fast-{kind}:")
        assert {f"serial={serial}", f"size={size}", "backup=0"} <= {*parts}
    # Twice is once.
    before = disks_of(cluster, build)
    assert worker.run(build).ok
    assert disks_of(cluster, build) == before
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)


@pytest.mark.parametrize("fault", ["fail", "lose-answer"])
def test_a_failed_call_leaves_nothing_or_a_server(
    fault: str, simulator: RunningSimulator, worker: Worker, cluster: Cluster, disk_kind: str
) -> None:
    # A clone is configured first.
    nth = 2 if disk_kind == "dir" or STORAGES[disk_kind].linked else 1
    simulator.fault(action=fault, path=r"/qemu/\d+/config$", method="POST", nth=nth)
    build = a_build(local_disks=DISKS)
    outcome = worker.run(build)
    assert outcome.ok == (fault == "lose-answer")
    if outcome.ok:
        assert [*there(cluster, build)] == ["scsi27", "scsi30"]
        assert len(disks_of(cluster, build)) == 3
        assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)


def test_a_rebuild_makes_them_empty_again(worker: Worker, cluster: Cluster, built: Build) -> None:
    was = there(cluster, built)
    assert worker.run(a_swap(built)).ok
    now = there(cluster, built)
    assert not {*map(volume, was.values())} & {*map(volume, now.values())}
    assert worker.run(an_end(built, keep=False)).ok
    assert [*map(volume, there(cluster, built).values())] == [*map(volume, was.values())]
    assert len(disks_of(cluster, built)) == 3
    assert worker.run(a_swap(built)).ok
    assert worker.run(an_end(built, keep=True)).ok
    new = there(cluster, built)
    assert [*new] == [*was]
    assert not {*map(volume, was.values())} & {*map(volume, new.values())}
    assert "serial=ephemeral0" in new["scsi27"]
    assert len(disks_of(cluster, built)) == 3


def test_a_rescue_and_an_image_leave_them(worker: Worker, cluster: Cluster, built: Build) -> None:
    was = there(cluster, built)
    assert worker.run(a_rescue(built)).ok
    assert there(cluster, built) == was
    assert worker.run(an_end(built, keep=False, rescued=True)).ok
    assert there(cluster, built) == was
    assert worker.run(a_copy(built, COPY)).ok
    copied = cluster.vm(COPY)["config"]
    assert not {*SLOTS} & {*copied}


@pytest.mark.parametrize("running", [True, False])
def test_another_size(worker: Worker, cluster: Cluster, built: Build, running: bool) -> None:
    if not running:
        assert worker.run(a_power(built, PowerAction.STOP)).ok
    was = there(cluster, built)
    assert worker.run(fitted(built, of_server(3, 1000))).ok
    grown = there(cluster, built)
    assert [*map(volume, grown.values())] == [*map(volume, was.values())]
    assert "size=3G" in grown["scsi27"]
    assert "size=1000M" in grown["scsi30"]
    for _ in "twice":
        assert worker.run(fitted(built, of_server(3, 256))).ok
        assert "size=256M" in there(cluster, built)["scsi30"]
        assert len(disks_of(cluster, built)) == 3
    assert worker.run(fitted(built, of_server(3, 0))).ok
    assert [*there(cluster, built)] == ["scsi27"]
    assert len(disks_of(cluster, built)) == 2
    assert worker.run(a_destroy(built)).gone
    assert cluster.is_empty(built.placed.vmid)


def test_what_others_put_there_stays(
    simulator: RunningSimulator, worker: Worker, cluster: Cluster
) -> None:
    """A disk in such a slot is ours by its serial number only."""
    build = a_build()
    assert worker.run(build).ok
    vmid = build.placed.vmid
    as_root(simulator).nodes("pve1").qemu(vmid).config.put(scsi30="local:1,serial=theirs")
    before = there(cluster, build)
    for disks in ((), of_server(0, 64)):
        assert worker.run(fitted(build, disks)).ok == (disks == ())
        assert there(cluster, build) == before


def test_a_move_takes_them_along(
    simulator: RunningSimulator, cluster: Cluster, tmp_path: Path, disk_kind: str
) -> None:
    with _running(simulator, tmp_path, LOCAL) as worker:
        build = a_build(local_disks=DISKS)
        assert worker.run(build).ok
        before = there(cluster, build)
        moved = worker.run(a_move(build, "pve2", deadline=clock.after(60)))
        # From a node's own storage Proxmox VE copies the disks of some types only.
        kind = disk_kind.removesuffix("-chain")
        assert moved.ok == storage_types.of(kind).copied, moved
        if not moved.ok:
            assert there(cluster, build) == before
            return
        found: dict[str, Any] = there(cluster, build)
        assert [*found] == ["scsi27", "scsi30"]
        assert "serial=swap" in found["scsi30"]
