"""Backups of volumes on storages of each type: what was written is what is restored."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from common import clock, ids
from common.messages.commands import BackUpVolume, MakeVolume, RemoveBackup, VolumeSource
from common.messages.reports import Category
from common.resources.states import ResourceType
from tests.functional.compute.conftest import (
    CLOUD,
    Cluster,
    Worker,
    a_build,
    a_destroy,
    a_removal,
    a_volume,
    as_root,
)
from tests.functional.compute.test_volume_snapshots import (
    KINDS,
    Disks,
    next_number,
    parked,
    unlock_as_root,
)
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually

GIB = 1 << 30
#: what an archive's notes say besides its cloud and its volume
WHOSE = {"project_id": "project", "user_id": "user", "size_gib": 2}


class Backups(Disks):
    """Archives of volumes on the node's own storage."""

    def __init__(self, simulator: RunningSimulator, worker: Worker) -> None:
        super().__init__(simulator, worker)
        self._root = as_root(simulator)

    def command(self, volume: MakeVolume, volid: str, backup_id: str, **more: Any) -> BackUpVolume:
        return BackUpVolume(
            next_number(),
            1,
            ResourceType.VOLUME,
            volume.resource_id,
            volume.placed,
            clock.after(60),
            backup_id=backup_id,
            volid=volid,
            cloud=CLOUD,
            **{"storage": "local", **WHOSE, **more},
        )

    def back_up(self, volume: MakeVolume, volid: str, backup_id: str, **more: Any) -> Any:
        return self.worker.run(self.command(volume, volid, backup_id, **more))

    def made_backup(self, volume: MakeVolume, volid: str, backup_id: str) -> str:
        outcome = self.back_up(volume, volid, backup_id)
        assert outcome.ok, outcome
        assert outcome.volume is not None
        return outcome.volume.volid

    def remove(self, volume: MakeVolume, backup_id: str, archive: str | None, **more: Any) -> Any:
        command = RemoveBackup(
            next_number(),
            1,
            ResourceType.BACKUP,
            backup_id,
            volume.placed,
            clock.after(60),
            archive=archive,
            cloud=CLOUD,
            **{"storage": "local", **more},
        )
        return self.worker.run(command)

    def listed(self, volume: MakeVolume) -> list[dict[str, Any]]:
        content = self._root.nodes("pve1").storage("local").content
        found = content.get(content="backup", vmid=volume.placed.vmid)
        return [one for one in found if one["vmid"] == volume.placed.vmid]

    def change(self, archive: str, **values: Any) -> None:
        self._root.nodes("pve1").storage("local").content(archive).put(**values)


@pytest.fixture
def backups(simulator: RunningSimulator, worker: Worker) -> Backups:
    return Backups(simulator, worker)


def a_restored(archive: str, **more: Any) -> MakeVolume:
    return a_volume(source=VolumeSource(archive, archive=True), **more)


def gone(backups: Backups, *volumes: tuple[MakeVolume, str]) -> None:
    for one, disk in volumes:
        assert backups.worker.run(a_removal(one, disk)).gone


def test_a_restore_without_room_says_so_and_leaves_nothing(
    backups: Backups, cluster: Cluster, simulator: RunningSimulator
) -> None:
    """Proxmox VE leaves a VM without disks and marks."""
    volume, backup_id = a_volume(storage="of-lvmthin"), ids.new_uuid()
    volid = backups.made(volume, KINDS["lvmthin"])
    archive = backups.made_backup(volume, volid, backup_id)
    simulator.fault(action="storage-full", storage="of-lvmthin")
    restored = a_restored(archive, storage="of-lvmthin")
    outcome = backups.worker.run(restored)
    assert outcome.failure is not None
    assert outcome.failure.category is Category.STORAGE_FULL
    assert outcome.gone
    assert cluster.is_empty(restored.placed.vmid)
    simulator.control("DELETE", "faults")
    again = backups.made(dataclasses.replace(restored, operation_id=next_number()), "online")
    assert backups.remove(volume, backup_id, archive).ok
    gone(backups, (volume, volid), (restored, again))


@pytest.mark.parametrize("kind", KINDS)
def test_made_restored_and_removed(kind: str, backups: Backups, cluster: Cluster) -> None:
    volume, backup_id = a_volume(storage=f"of-{kind}"), ids.new_uuid()
    volid = backups.made(volume, KINDS[kind])
    backups.write(volid, "saved")
    archive = backups.made_backup(volume, volid, backup_id)
    assert backups.made_backup(volume, volid, backup_id) == archive
    (listed,) = backups.listed(volume)
    assert (listed["volid"], listed["protected"]) == (archive, 1)
    says, _, epoch = listed["notes"].rpartition(" epoch=")
    assert says == (
        f"micronova: backup={backup_id} cloud={CLOUD} project=project user=user "
        f"volume={volume.resource_id} size=2"
    )
    assert int(epoch) > 0
    assert parked(cluster, volume.placed.vmid, volid)
    assert cluster.vm(volume.placed.vmid)["status"] == "stopped"
    backups.write(volid, "later")

    restored = a_restored(archive, storage=f"of-{kind}", size_gib=3)
    for again in (restored, dataclasses.replace(restored, operation_id=next_number())):
        outcome = backups.worker.run(again)
        assert outcome.ok, outcome
        assert outcome.volume is not None
        assert outcome.volume.size_bytes == 3 * GIB
    disk = outcome.volume.volid
    assert (backups.data(disk), backups.data(volid)) == ("saved", "later")
    assert parked(cluster, restored.placed.vmid, disk)
    holder = cluster.vm(restored.placed.vmid)["config"]
    assert holder["smbios1"] == f"uuid={restored.resource_id}"
    assert f"volume={restored.resource_id}" in holder["description"]
    assert "building" not in holder["description"]
    assert str(holder["protection"]) == "1"

    # A backup outlives its volume.
    gone(backups, (volume, volid), (restored, disk))
    assert backups.listed(volume)
    for _ in range(2):
        assert backups.remove(volume, backup_id, archive).gone
    assert not backups.listed(volume)


def test_one_of_several_is_removed(backups: Backups) -> None:
    volume, first, second = a_volume(), ids.new_uuid(), ids.new_uuid()
    volid = backups.made(volume, "offline")
    kept, other = (backups.made_backup(volume, volid, one) for one in (first, second))
    assert kept != other
    assert backups.remove(volume, second, other).gone
    assert [one["volid"] for one in backups.listed(volume)] == [kept]
    # Without an archive's name, only one whose notes name the backup is removed.
    assert backups.remove(volume, ids.new_uuid(), None).gone
    assert backups.remove(volume, first, None).gone
    assert not backups.listed(volume)
    gone(backups, (volume, volid))


def test_what_others_say_of_an_archive_keeps_it(backups: Backups) -> None:
    volume, backup_id = a_volume(), ids.new_uuid()
    volid = backups.made(volume, "offline")
    archive = backups.made_backup(volume, volid, backup_id)
    mark = f"micronova: backup={backup_id} cloud="
    for notes in ("mine", f"{mark}another", f"micronova: backup={ids.new_uuid()} cloud={CLOUD}"):
        backups.change(archive, notes=notes)
        refused = backups.remove(volume, backup_id, archive)
        assert refused.failure is not None
        assert refused.failure.category is Category.PROTECTED
        assert [one["volid"] for one in backups.listed(volume)] == [archive]
    backups.change(archive, notes=f"{mark}{CLOUD}")
    assert backups.remove(volume, backup_id, archive).gone
    gone(backups, (volume, volid))


def test_what_cannot_be_backed_up(
    backups: Backups, cluster: Cluster, simulator: RunningSimulator
) -> None:
    volume = a_volume()
    volid = backups.made(volume, "offline")
    for wrong in ({"storage": "nope"}, {"storage": "shared-vm"}):
        refused = backups.back_up(volume, volid, ids.new_uuid(), **wrong)
        assert (refused.ok, refused.failure is None) == (False, False)
        assert parked(cluster, volume.placed.vmid, volid)
    stranger = dataclasses.replace(volume, resource_id=ids.new_uuid())
    refused = backups.back_up(stranger, volid, ids.new_uuid())
    assert not refused.ok
    assert not backups.listed(volume)
    gone(backups, (volume, volid))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("phase", ["lose-answer", "drop", "fail", "task-fail", "task-kill"])
@pytest.mark.parametrize("path", ["/vzdump$", "/config$"])
def test_a_backup_s_calls_fail(
    phase: str, path: str, backups: Backups, cluster: Cluster, simulator: RunningSimulator
) -> None:
    volume, backup_id = a_volume(), ids.new_uuid()
    volid = backups.made(volume, "offline")
    backups.write(volid, "saved")
    simulator.fault(action=phase, method="POST", path=path, times=1)
    first = backups.back_up(volume, volid, backup_id)
    simulator.control("DELETE", "faults")
    if not first.ok:
        assert first.failure is not None
        if first.failure.remedy:
            unlock_as_root(simulator, volume.placed.vmid)
        if not first.gone:
            again = backups.remove(volume, backup_id, None, volume_id=volume.resource_id)
            assert again.gone, again
        assert not backups.listed(volume)
        assert parked(cluster, volume.placed.vmid, volid)
        assert cluster.vm(volume.placed.vmid)["status"] == "stopped"
    archive = backups.made_backup(volume, volid, backup_id)
    assert [one["volid"] for one in backups.listed(volume)] == [archive]
    assert parked(cluster, volume.placed.vmid, volid)
    assert backups.data(volid) == "saved"
    assert backups.remove(volume, backup_id, archive).gone
    gone(backups, (volume, volid))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("phase", ["lose-answer", "drop", "fail", "task-fail", "task-kill"])
@pytest.mark.parametrize("path", ["/qemu$", "/config$", "/resize$"])
def test_a_restore_s_calls_fail(
    phase: str, path: str, backups: Backups, cluster: Cluster, simulator: RunningSimulator
) -> None:
    volume, backup_id = a_volume(), ids.new_uuid()
    volid = backups.made(volume, "offline")
    backups.write(volid, "saved")
    archive = backups.made_backup(volume, volid, backup_id)
    restored = a_restored(archive, size_gib=3)
    method = "PUT" if path == "/resize$" else "POST"
    simulator.fault(action=phase, method=method, path=path, times=1)
    outcome = backups.worker.run(restored)
    simulator.control("DELETE", "faults")
    if not outcome.ok:
        assert outcome.failure is not None
        if outcome.gone:
            assert cluster.is_empty(restored.placed.vmid)
        elif phase == "task-kill" and path == "/qemu$":
            # Only root can remove what a killed worker leaves; the remedy says how.
            assert f"qm destroy {restored.placed.vmid}" in str(outcome.failure.remedy)
            as_root(simulator).nodes("pve1").qemu(restored.placed.vmid).delete(skiplock=1)
            assert backups.worker.run(a_removal(restored, None)).gone
        else:
            assert backups.worker.run(a_removal(restored, None)).gone, outcome
        restored = a_restored(archive, size_gib=3)
        outcome = backups.worker.run(restored)
    assert outcome.ok, outcome
    assert outcome.volume is not None
    assert backups.data(outcome.volume.volid) == "saved"
    assert parked(cluster, restored.placed.vmid, outcome.volume.volid)
    assert backups.remove(volume, backup_id, archive).gone
    gone(backups, (volume, volid), (restored, outcome.volume.volid))


def test_an_empty_vm_is_ours_only_by_its_task(
    backups: Backups, cluster: Cluster, simulator: RunningSimulator
) -> None:
    """What a restore left that failed is removed; another's empty VM isn't touched."""
    root = as_root(simulator).nodes("pve1")
    mine = a_restored("local:backup/vzdump-qemu-1-2020_01_01-00_00_00.vma.zst")
    missing = backups.worker.run(mine)
    assert (missing.ok, missing.gone) == (False, True)
    root.qemu.post(vmid=mine.placed.vmid)
    refused = backups.worker.run(a_removal(mine, None))
    assert not refused.gone
    assert cluster.vm(mine.placed.vmid)
    root.qemu(mine.placed.vmid).delete()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("phase", ["lose-answer", "drop", "fail", "task-fail"])
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_removal_s_calls_fail(
    phase: str, method: str, backups: Backups, simulator: RunningSimulator
) -> None:
    volume, backup_id = a_volume(), ids.new_uuid()
    volid = backups.made(volume, "offline")
    archive = backups.made_backup(volume, volid, backup_id)
    simulator.fault(action=phase, method=method, path="/content/", times=1)
    first = backups.remove(volume, backup_id, archive)
    simulator.control("DELETE", "faults")
    if not first.gone:
        assert [one["volid"] for one in backups.listed(volume)] == [archive]
    assert backups.remove(volume, backup_id, archive).gone
    assert not backups.listed(volume)
    gone(backups, (volume, volid))


def test_another_worker_makes_no_second_archive(
    backups: Backups, second: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    """Where the first one's waits for another job of the node, and has locked nothing yet."""
    volume, build, backup_id = a_volume(), a_build(disk_gib=40), ids.new_uuid()
    assert backups.worker.run(build).ok
    volid = backups.made(volume, "offline")
    command = backups.command(volume, volid, backup_id)
    simulator.control("POST", "clock", {"speed": 1.0})
    try:
        node = as_root(simulator).nodes("pve1")
        node.vzdump.post(vmid=build.placed.vmid, storage=command.storage)
        backups.worker.send(command)
        eventually(lambda: len(cluster.calls("POST", "/vzdump")) == 2)
        second.send(command)
        second.conductor.wait_for(lambda: second.conductor.steps(command))
    finally:
        simulator.control("POST", "clock", {"speed": 50.0})
    second.conductor.wait_for(lambda: second.conductor.outcomes(command))
    backups.worker.conductor.wait_for(lambda: backups.worker.conductor.outcomes(command))
    assert len(backups.listed(volume)) == 1
    archive = backups.listed(volume)[0]["volid"]
    assert backups.remove(volume, backup_id, archive).gone
    gone(backups, (volume, volid))
    assert backups.worker.run(a_destroy(build)).gone
