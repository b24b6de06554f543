"""Snapshots of volumes on storages of each type; what was written is what comes back."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from common import clock
from common.messages.commands import (
    MakeVolume,
    PowerAction,
    SnapshotVerb,
    SnapVolume,
    VolumeSource,
    VolumeUser,
)
from common.messages.reports import Category
from common.resources.states import ResourceType
from compute.hypervisor.proxmox.driver import ProxmoxHypervisor
from compute.hypervisor.proxmox.vmconfig import storage_types
from tests.fixtures.storages import NATIVE, STORAGES
from tests.functional.compute.conftest import (
    CLOUD,
    Cluster,
    Worker,
    a_build,
    a_destroy,
    a_power,
    a_removal,
    a_volume,
    an_attachment,
    as_root,
)
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually

#: type of storage → how snapshots of volumes on it are made
KINDS = {name: one.way for name, one in STORAGES.items()}


class Disks:
    """The cluster's storages, one of each type, and what volumes on them have in them."""

    def __init__(self, simulator: RunningSimulator, worker: Worker) -> None:
        self._simulator, self.worker = simulator, worker
        for kind in KINDS:
            STORAGES[kind].add(self._simulator.control, f"of-{kind}")
        driver = worker.hypervisors[0]
        assert isinstance(driver, ProxmoxHypervisor)
        driver.shared.snapshot_ways.clear()
        driver.observe()
        self.driver = driver

    def write(self, volid: str, data: str) -> None:
        self._simulator.control("POST", "write", {"volid": volid, "data": data})

    def data(self, volid: str) -> str:
        volumes = self._simulator.state()["clusters"][0]["volumes"]
        return next(str(one["data"]) for one in volumes if one["volid"] == volid)

    def made(self, command: MakeVolume, way: str = "") -> str:
        outcome = self.worker.run(command)
        assert outcome.ok, outcome
        assert outcome.volume is not None
        assert outcome.volume.snapshots == way
        return outcome.volume.volid

    def snap(self, volume: MakeVolume, volid: str, verb: str, **more: Any) -> Any:
        command = SnapVolume(
            next_number(),
            1,
            ResourceType.VOLUME,
            volume.resource_id,
            volume.placed,
            clock.after(60),
            verb=SnapshotVerb(verb),
            volid=volid,
            name=more.pop("name", "s1"),
            cloud=CLOUD,
            **more,
        )
        return self.worker.run(command)


def next_number() -> int:
    return a_volume().operation_id


@pytest.fixture
def disks(simulator: RunningSimulator, worker: Worker) -> Disks:
    return Disks(simulator, worker)


def parked(cluster: Cluster, vmid: int, volid: str) -> bool:
    config = cluster.vm(vmid)["config"]
    return config.get("unused0") == volid and "scsi0" not in config and "lock" not in config


def names(cluster: Cluster, vmid: int) -> set[str]:
    return set(cluster.vm(vmid)["snapshots"])


@pytest.mark.parametrize("kind", NATIVE)
def test_taken_copied_brought_back_and_removed(kind: str, disks: Disks, cluster: Cluster) -> None:
    volume = a_volume(storage=f"of-{kind}")
    volid = disks.made(volume, KINDS[kind])
    vmid = volume.placed.vmid
    disks.write(volid, "before")
    for _ in range(2):
        assert disks.snap(volume, volid, "take").ok
        assert names(cluster, vmid) == {"s1"}
        assert parked(cluster, vmid, volid)
    disks.write(volid, "after")

    source = VolumeSource(volid, volume.resource_id, vmid, "s1")
    copy = a_volume(storage=f"of-{kind}", source=source, size_gib=3)
    for again in (copy, dataclasses.replace(copy, operation_id=next_number())):
        copied = disks.made(again, KINDS[kind])
    assert disks.data(copied) == "before"
    assert parked(cluster, copy.placed.vmid, copied)
    holder = cluster.vm(copy.placed.vmid)["config"]
    assert holder["smbios1"] == f"uuid={copy.resource_id}"
    assert "building" not in holder["description"]
    assert not names(cluster, copy.placed.vmid)

    for _ in range(2):
        assert disks.snap(volume, volid, "revert").ok
        assert disks.data(volid) == "before"
        assert parked(cluster, vmid, volid)
    for _ in range(2):
        assert disks.snap(volume, volid, "remove").ok
        assert not names(cluster, vmid)
        assert parked(cluster, vmid, volid)
    for one, disk in ((volume, volid), (copy, copied)):
        assert disks.worker.run(a_removal(one, disk)).gone
        assert cluster.is_empty(one.placed.vmid)


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_is_a_volume_of_its_own(kind: str, disks: Disks) -> None:
    volume = a_volume(storage=f"of-{kind}")
    volid = disks.made(volume, KINDS[kind])
    disks.write(volid, "pattern")
    copy = a_volume(storage=f"of-{kind}", source=VolumeSource(volid))
    copied = disks.made(copy, KINDS[kind])
    disks.write(volid, "later")
    assert disks.data(copied) == "pattern"
    for one, disk in ((volume, volid), (copy, copied)):
        assert disks.worker.run(a_removal(one, disk)).gone


@pytest.mark.parametrize("kind", NATIVE)
def test_while_a_server_has_it(kind: str, disks: Disks, cluster: Cluster) -> None:
    """Running: only where the storage takes it; off: in any case."""
    build, volume = a_build(), a_volume(storage=f"of-{kind}")
    assert disks.worker.run(build).ok
    volid = disks.made(volume, KINDS[kind])
    assert disks.worker.run(an_attachment(build, volume, volid)).ok
    disks.write(volid, "written by the guest")
    user = VolumeUser(build.resource_id, build.placed.node, build.placed.vmid)
    more: dict[str, Any] = {"user": user, "storage_way": KINDS[kind]}
    running = disks.snap(volume, volid, "take", **more)
    assert running.ok == (KINDS[kind] == "online")
    assert parked(cluster, volume.placed.vmid, volid)
    if not running.ok:
        assert running.failure is not None
        assert running.failure.category is Category.PROTECTED
        assert "Stop the server" in running.failure.message
        assert disks.worker.run(a_power(build, PowerAction.STOP)).ok
        assert disks.snap(volume, volid, "take", **more).ok
    assert disks.snap(volume, volid, "remove", **more).ok
    assert disks.data(volid) == "written by the guest"
    assert cluster.vm(build.placed.vmid)["config"]["scsi1"].startswith(f"{volid},")
    assert disks.worker.run(a_destroy(build)).gone
    assert parked(cluster, volume.placed.vmid, volid)
    assert disks.worker.run(a_removal(volume, volid, build)).gone


@pytest.mark.parametrize("verb", ["take", "remove", "revert"])
@pytest.mark.parametrize("phase", ["lose-answer", "drop", "task-fail", "task-kill"])
def test_answers_are_lost_and_tasks_fail(
    verb: str, phase: str, disks: Disks, cluster: Cluster, simulator: RunningSimulator
) -> None:
    """What is asked again comes to its end, and nothing of the volume is lost."""
    volume = a_volume(storage="of-rbd")
    volid = disks.made(volume, "online")
    vmid = volume.placed.vmid
    disks.write(volid, "pattern")
    if verb != "take":
        assert disks.snap(volume, volid, "take").ok
        disks.write(volid, "pattern" if verb == "remove" else "other")
    path = {"take": "/snapshot$", "remove": "/snapshot/s1$", "revert": "/rollback$"}[verb]
    method = "DELETE" if verb == "remove" else "POST"
    simulator.fault(action=phase, method=method, path=path, times=1)
    first = disks.snap(volume, volid, verb)
    if not first.ok:
        assert first.failure is not None
        simulator.control("DELETE", "faults")
        if first.failure.remedy:
            # As root does by the remedy.
            assert f"qm unlock {vmid}" in first.failure.remedy
            unlock_as_root(simulator, vmid)
        second = disks.snap(volume, volid, verb)
        assert second.ok, second
    assert disks.data(volid) == "pattern"
    assert parked(cluster, vmid, volid)
    assert names(cluster, vmid) == (set() if verb == "remove" else {"s1"})
    assert disks.worker.run(a_removal(volume, volid)).gone


def unlock_as_root(simulator: RunningSimulator, vmid: int) -> None:
    as_root(simulator).nodes("pve1").qemu(vmid).config.put(delete="lock", skiplock=1)


def test_one_that_is_not_there_is_not_brought_back(disks: Disks, cluster: Cluster) -> None:
    volume = a_volume(storage="of-rbd")
    volid = disks.made(volume, "online")
    refused = disks.snap(volume, volid, "revert")
    assert refused.failure is not None
    assert refused.failure.category is Category.VANISHED
    other = disks.snap(volume, volid.replace("disk-0", "disk-7"), "take")
    assert not other.ok
    stranger = dataclasses.replace(volume, resource_id=a_volume().resource_id)
    assert not disks.snap(stranger, volid, "take").ok
    assert not names(cluster, volume.placed.vmid)
    assert disks.worker.run(a_removal(volume, volid)).gone


@pytest.mark.parametrize("kind", [one for one in NATIVE if storage_types.of(one).thin])
def test_without_room_nothing_is_brought_back_nor_lost(
    kind: str, disks: Disks, cluster: Cluster, simulator: RunningSimulator
) -> None:
    """Proxmox VE would leave a lock, and on LVM-thin no disk."""
    volume = a_volume(storage=f"of-{kind}")
    volid, vmid = disks.made(volume, KINDS[kind]), volume.placed.vmid
    disks.write(volid, "before")
    assert disks.snap(volume, volid, "take").ok
    disks.write(volid, "after")
    simulator.fault(action="storage-full", storage=f"of-{kind}")
    refused = disks.snap(volume, volid, "revert")
    assert refused.failure is not None
    assert refused.failure.category is Category.STORAGE_FULL
    assert disks.data(volid) == "after"
    assert parked(cluster, vmid, volid)
    simulator.control("DELETE", "faults")
    assert disks.snap(volume, volid, "revert").ok
    assert disks.data(volid) == "before"
    assert disks.snap(volume, volid, "remove").ok
    assert disks.worker.run(a_removal(volume, volid)).gone


def test_a_copy_of_a_snapshot_names_the_lock_of_what_it_copies(
    disks: Disks, cluster: Cluster, simulator: RunningSimulator
) -> None:
    volume = a_volume(storage="of-rbd")
    volid, vmid = disks.made(volume, "online"), volume.placed.vmid
    assert disks.snap(volume, volid, "take").ok
    as_root(simulator).nodes("pve1").qemu(vmid).config.put(lock="clone", skiplock=1)
    source = VolumeSource(volid, volume.resource_id, vmid, "s1")
    copy = a_volume(storage="of-rbd", source=source)
    failure = disks.worker.run(copy).failure
    assert failure is not None
    assert failure.category is Category.LOCK
    assert failure.remedy == f"as root on pve1: qm unlock {vmid}"
    unlock_as_root(simulator, vmid)
    copied = disks.made(dataclasses.replace(copy, operation_id=next_number()), "online")
    assert disks.snap(volume, volid, "remove").ok
    for one, disk in ((volume, volid), (copy, copied)):
        assert disks.worker.run(a_removal(one, disk)).gone


@pytest.mark.parametrize("verb", ["remove", "park"])
def test_nothing_is_left_of_a_holder_that_somebody_deleted(
    verb: str, disks: Disks, cluster: Cluster, simulator: RunningSimulator
) -> None:
    volume = a_volume(storage="of-rbd")
    volid = disks.made(volume, "online")
    assert disks.snap(volume, volid, "take").ok
    vm = as_root(simulator).nodes("pve1").qemu(volume.placed.vmid)
    vm.config.put(protection=0)
    vm.delete()
    eventually(lambda: cluster.is_empty(volume.placed.vmid))
    disks.driver.observe()
    assert disks.snap(volume, volid, verb).ok
    assert not disks.snap(volume, volid, "take").ok
    assert disks.worker.run(a_removal(volume, volid)).gone
