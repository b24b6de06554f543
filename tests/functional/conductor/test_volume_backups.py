"""Backups of volumes in the conductor: made, restored and removed; quota, races, failures."""

from __future__ import annotations

from typing import Any

import pytest

from common.context import RequestContext
from common.errors import BackupNotFound, Conflict, Invalid, QuotaExceeded, Unavailable
from common.messages.commands import BackUpVolume, MakeVolume, RemoveBackup, RemoveVolume
from common.messages.facts import StorageFacts
from common.messages.reports import MadeVolume
from conductor.endpoints.volumes.backups import BackupEndpoint
from conductor.endpoints.volumes.snapshots import VolumeSnapshotEndpoint
from conductor.rpc.volumes.backups import NewBackup
from conductor.rpc.volumes.snapshots import NewVolumeSnapshot
from conductor.rpc.volumes.volumes import VolumeEdit
from db import schema
from tests.functional.conductor.test_security_groups import at_once
from tests.functional.conductor.test_volumes import FULL, USED, Site, a_server, site, vmids
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401
from tests.functional.waiting import eventually

pytestmark = pytest.mark.sampled(2)

__all__ = ["site"]
SAFE = StorageFacts("safe", "nfs", True, True, 1000, 900, ("backup",))


class Saved:
    """Backups of the site's volumes."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.endpoint = BackupEndpoint(site.world.conductor.cloud)

    def new(self, volume_id: str, **more: Any) -> str:
        return self.endpoint.create_backup(self.site.ctxt, NewBackup(volume_id, **more))

    def row(self, backup_id: str) -> Any:
        rows = self.site.world.rows(schema.volume_backups)
        return next((one for one in rows if one.id == backup_id), None)

    def becomes(self, backup_id: str, status: str | None) -> Any:
        eventually(lambda: getattr(self.row(backup_id), "status", None) == status)
        return self.row(backup_id)

    def sent(self, backup_id: str) -> BackUpVolume:
        """The last command that makes a backup."""

        def found() -> list[Any]:
            sent = [one for _, one in self.site.world.compute.sent]
            return [one for one in sent if getattr(one, "backup_id", None) == backup_id]

        eventually(found)
        command = found()[-1]
        assert isinstance(command, BackUpVolume)
        return command

    def answer(self, command: Any, **outcome: Any) -> None:
        self.site.world.answer(command, **outcome)

    def made(self, volume_id: str, **more: Any) -> str:
        backup_id = self.new(volume_id, **more)
        self.answer(self.sent(backup_id), ok=True, volume=archive(backup_id))
        self.becomes(backup_id, "available")
        self.site.becomes(volume_id, "available")
        return backup_id

    def restore(self, backup_id: str, volume_id: str | None = None) -> str:
        return self.endpoint.restore_backup(self.site.ctxt, backup_id, volume_id, None)


def archive(backup_id: str) -> MadeVolume:
    return MadeVolume(f"safe:backup/vzdump-qemu-1-{backup_id}.vma.zst", 4096)


@pytest.fixture
def saved(site: Site) -> Saved:
    site.world.storages.append(SAFE)
    site.world.beat()
    return Saved(site)


def disk_of(command: MakeVolume) -> MadeVolume:
    return MadeVolume(f"data:vm-{command.placed.vmid}-disk-0", command.size_gib << 30, "online")


def test_made_renamed_and_removed(saved: Saved) -> None:
    site = saved.site
    volume_id = site.made(3)
    backup_id = saved.new(volume_id, name="b", metadata={"a": "1"}, container="c")
    assert site.row(volume_id).status == "backing-up"
    with pytest.raises(Invalid, match="must be available or in-use"):
        saved.new(volume_id)
    with pytest.raises(Invalid):
        site.volumes.extend_volume(site.ctxt, volume_id, 9, in_use=False)
    with pytest.raises(Invalid, match="must be available or error"):
        saved.endpoint.delete_backup(site.ctxt, backup_id, force=False)
    command = saved.sent(backup_id)
    holder = site.row(volume_id)
    assert command.resource_id == volume_id
    assert (command.volid, command.placed.vmid) == (holder.volid, holder.vmid)
    assert (command.storage, command.placed.host) == ("safe", holder.host)
    for _ in range(2):
        saved.answer(command, ok=True, volume=archive(backup_id))
    row = saved.becomes(backup_id, "available")
    assert (row.archive, row.size_bytes, row.size_gib) == (archive(backup_id).volid, 4096, 3)
    assert (row.name, row.meta, row.container, row.shared) == ("b", {"a": "1"}, "c", True)
    assert site.becomes(volume_id, "available").previous_status is None

    edit = VolumeEdit(name="x", metadata={"b": "2"}, replace_metadata=True)
    saved.endpoint.edit_backup(site.ctxt, backup_id, edit)
    assert (saved.row(backup_id).name, saved.row(backup_id).meta) == ("x", {"b": "2"})
    stranger = RequestContext(project_id="another", user_id="u")
    for call in (
        lambda: saved.endpoint.edit_backup(stranger, backup_id, edit),
        lambda: saved.endpoint.delete_backup(stranger, backup_id, force=False),
        lambda: saved.endpoint.restore_backup(stranger, backup_id, None, None),
    ):
        with pytest.raises(BackupNotFound):
            call()

    site.volumes.delete_volume(site.ctxt, volume_id, force=False)
    site.world.answer(site.last(RemoveVolume, volume_id), ok=True, gone=True)
    site.becomes(volume_id, None)
    saved.endpoint.delete_backup(site.ctxt, backup_id, force=False)
    removal = site.last(RemoveBackup, backup_id)
    assert (removal.archive, removal.storage) == (row.archive, "safe")
    assert (removal.volume_id, removal.placed.vmid) == (None, holder.vmid)
    for _ in range(2):
        saved.answer(removal, ok=True, gone=True)
    saved.becomes(backup_id, None)


def test_what_is_not_backed_up(saved: Saved) -> None:
    site = saved.site
    volume_id, other = site.made(), site.made()
    with pytest.raises(Invalid, match="No backups available to do an incremental backup"):
        saved.new(volume_id, incremental=True)
    saved.made(volume_id)
    with pytest.raises(Invalid, match="not incremental"):
        saved.new(volume_id, incremental=True)
    server = a_server(site)
    site.attached(server, other)
    with pytest.raises(Invalid, match="must use the force flag"):
        saved.new(other)
    with pytest.raises(Invalid, match="while it is attached to a server"):
        saved.new(other, force=True)
    assert site.row(other).status == "in-use"
    before = len(site.world.rows(schema.volume_backups))
    site.world.storages.remove(SAFE)
    site.world.beat()
    with pytest.raises(Unavailable, match="no storage for backups"):
        saved.new(volume_id)
    site.world.storages.append(StorageFacts("p", "pbs", True, True, 9, 9, ("backup",)))
    site.world.beat()
    with pytest.raises(Unavailable, match="no storage for backups"):
        saved.new(volume_id)
    assert site.row(volume_id).status == "available"
    assert len(site.world.rows(schema.volume_backups)) == before


def test_one_of_a_snapshot_is_refused(saved: Saved) -> None:
    site = saved.site
    volume_id = site.new()
    command = site.last(MakeVolume, volume_id)
    site.world.answer(command, ok=True, volume=disk_of(command))
    site.becomes(volume_id, "available")
    shots = VolumeSnapshotEndpoint(site.world.conductor.cloud)
    shot = shots.create_volume_snapshot(site.ctxt, NewVolumeSnapshot(volume_id))
    with pytest.raises(Invalid, match="make a volume of the snapshot"):
        saved.new(volume_id, snapshot_id=shot)
    with pytest.raises(Invalid, match="busy: a snapshot of it is made"):
        saved.new(volume_id)
    with pytest.raises(Invalid, match=r"does not match with snapshot\.volume_id"):
        saved.new(site.made(), snapshot_id=shot)


def test_the_storage_that_is_configured(saved: Saved) -> None:
    site = saved.site
    own = StorageFacts("own", "dir", False, True, 5000, 4000, ("backup",))
    site.world.storages.append(own)
    site.world.beat()
    volume_id = site.made()
    assert saved.sent(saved.new(volume_id)).storage == "safe"
    conf = site.world.conductor.cloud.conf
    conf.set_override("backup_storage", "own", "volumes")
    other = saved.sent(saved.new(site.made()))
    assert other.storage == "own"
    conf.set_override("backup_storage", "nope", "volumes")
    with pytest.raises(Unavailable, match="has no storage nope for backups"):
        saved.new(site.made())


@pytest.mark.parametrize("gone", [True, False])
def test_one_that_fails(saved: Saved, gone: bool) -> None:
    """The volume can be used once it was seen parked; the backup says why."""
    site = saved.site
    volume_id = site.made()
    backup_id = saved.new(volume_id)
    saved.answer(saved.sent(backup_id), ok=False, failure=FULL, gone=gone)
    row = saved.becomes(backup_id, "error")
    assert row.fail_reason == FULL.message
    if not gone:
        assert site.row(volume_id).status == "backing-up"
        with pytest.raises(Invalid):
            saved.endpoint.reset_backup(site.ctxt, backup_id, "available")
        removal = site.last(RemoveBackup, backup_id)
        assert (removal.archive, removal.volume_id) == (None, volume_id)
        saved.answer(removal, ok=True, gone=True)
    site.becomes(volume_id, "available")
    assert saved.row(backup_id).status == "error"
    with pytest.raises(Invalid, match="There is no archive"):
        saved.endpoint.reset_backup(site.ctxt, backup_id, "available")
    with pytest.raises(Invalid, match="Backup status must be available"):
        saved.restore(backup_id)
    saved.endpoint.delete_backup(site.ctxt, backup_id, force=False)
    removals = 1 if gone else 2
    saved.answer(site.last(RemoveBackup, backup_id, removals), ok=True, gone=True)
    saved.becomes(backup_id, None)


def test_a_volume_that_is_backed_up_stays_so(saved: Saved) -> None:
    volume_id = saved.site.made()
    saved.new(volume_id)
    with pytest.raises(Conflict, match="an operation is under way"):
        saved.site.volumes.reset_volume(saved.site.ctxt, volume_id, "available")
    assert saved.site.row(volume_id).status == "backing-up"


def test_one_that_is_deleted_while_its_rest_is_removed(saved: Saved) -> None:
    site = saved.site
    volume_id = site.made()
    backup_id = saved.new(volume_id)
    saved.answer(saved.sent(backup_id), ok=False, failure=FULL)
    saved.becomes(backup_id, "error")
    removal = site.last(RemoveBackup, backup_id)
    saved.endpoint.delete_backup(site.ctxt, backup_id, force=False)
    saved.answer(removal, ok=True, gone=True)
    saved.becomes(backup_id, None)
    site.becomes(volume_id, "available")


def test_an_archive_that_may_not_be_removed(saved: Saved) -> None:
    backup_id = saved.made(saved.site.made())
    saved.endpoint.delete_backup(saved.site.ctxt, backup_id, force=False)
    saved.answer(saved.site.last(RemoveBackup, backup_id), ok=False, failure=USED)
    row = saved.becomes(backup_id, "error_deleting")
    assert row.fail_reason == USED.message
    saved.endpoint.delete_backup(saved.site.ctxt, backup_id, force=True)
    saved.answer(saved.site.last(RemoveBackup, backup_id, 2), ok=True, gone=True)
    saved.becomes(backup_id, None)


def test_restored_into_a_new_volume(saved: Saved) -> None:
    site = saved.site
    volume_id = site.made(3)
    site.volumes.edit_volume(site.ctxt, volume_id, VolumeEdit(bootable=True))
    backup_id = saved.made(volume_id)
    made = saved.restore(backup_id)
    row = site.row(made)
    assert (row.status, row.size_gib, row.bootable) == ("restoring-backup", 3, True)
    assert (row.name, row.backup_id) == (f"restore_backup_{backup_id}", backup_id)
    assert saved.row(backup_id).status == "restoring"
    with pytest.raises(Invalid, match="Backup status must be available"):
        saved.restore(backup_id)
    command = site.last(MakeVolume, made)
    assert command.source is not None
    assert (command.source.volid, command.source.archive) == (archive(backup_id).volid, True)
    site.world.answer(command, ok=True, volume=disk_of(command))
    site.becomes(made, "available")
    assert saved.becomes(backup_id, "available")


def test_volumes_are_made_of_it(saved: Saved) -> None:
    site = saved.site
    backup_id = saved.made(site.made(3))
    with pytest.raises(Invalid, match="smaller than the backup size"):
        site.new(2, backup_id=backup_id)
    with pytest.raises(BackupNotFound):
        site.new(3, backup_id="6b1c3c80-6b9a-4bd5-8e4d-6ae5a2a1f2a5")
    first, second = (site.new(4, backup_id=backup_id) for _ in range(2))
    assert saved.row(backup_id).status == "available"
    with pytest.raises(Invalid, match="busy: a volume is made of it"):
        saved.endpoint.delete_backup(site.ctxt, backup_id, force=False)
    for one, ok in ((first, True), (second, False)):
        command = site.last(MakeVolume, one)
        volume = disk_of(command) if ok else None
        site.world.answer(command, ok=ok, volume=volume, failure=None if ok else FULL, gone=True)
        site.becomes(one, "available" if ok else "error")
    saved.endpoint.delete_backup(site.ctxt, backup_id, force=False)


def test_restored_in_place_of_what_a_volume_has(saved: Saved) -> None:
    """The former holder is removed only once the record names the restored one."""
    site = saved.site
    volume_id = site.made(3)
    backup_id = saved.made(volume_id)
    before, held = site.row(volume_id), vmids(site)
    assert saved.restore(backup_id, volume_id) == volume_id
    assert site.row(volume_id).status == "restoring-backup"
    assert saved.row(backup_id).status == "restoring"
    assert vmids(site) == held + 1
    command = site.last(MakeVolume, volume_id, 2)
    assert command.placed.vmid != before.vmid
    assert (command.storage, command.placed.host) == (before.storage, before.host)
    assert site.row(volume_id).volid == before.volid
    for _ in range(2):
        site.world.answer(command, ok=True, volume=disk_of(command))
    row = site.becomes(volume_id, "available")
    assert (row.vmid, row.volid) == (command.placed.vmid, disk_of(command).volid)
    saved.becomes(backup_id, "available")
    removal = site.last(RemoveVolume, volume_id)
    assert (removal.placed.vmid, removal.volid) == (before.vmid, before.volid)
    site.world.answer(removal, ok=True, gone=True)
    eventually(lambda: vmids(site) == held)
    assert site.row(volume_id).status == "available"


def test_a_backup_is_not_busy_while_another_one_is_restored(saved: Saved) -> None:
    site = saved.site
    backup_id = saved.made(site.made(2))
    volume_id = site.made(2, backup_id=backup_id)
    another = saved.made(volume_id)
    saved.restore(another, volume_id)
    saved.endpoint.delete_backup(site.ctxt, backup_id, force=False)
    assert saved.row(backup_id).status == "deleting"
    with pytest.raises(Invalid, match="Backup status must be available or error"):
        saved.endpoint.delete_backup(site.ctxt, another, force=False)


@pytest.mark.parametrize("gone", [True, False])
def test_a_restore_that_fails_keeps_what_was_there(saved: Saved, gone: bool) -> None:
    site = saved.site
    volume_id = site.made(3)
    backup_id = saved.made(volume_id)
    before, held = site.row(volume_id), vmids(site)
    saved.restore(backup_id, volume_id)
    command = site.last(MakeVolume, volume_id, 2)
    site.world.answer(command, ok=False, failure=FULL, gone=gone)
    row = site.becomes(volume_id, "error_restoring")
    assert (row.vmid, row.volid, row.fault) == (before.vmid, before.volid, FULL.message)
    saved.becomes(backup_id, "available")
    if not gone:
        removal = site.last(RemoveVolume, volume_id)
        assert removal.placed.vmid == command.placed.vmid
        site.world.answer(removal, ok=True, gone=True)
    eventually(lambda: vmids(site) == held)
    assert site.row(volume_id).volid == before.volid
    eventually(lambda: not open_operations(site))
    site.volumes.reset_volume(site.ctxt, volume_id, "available")


def open_operations(site: Site) -> list[Any]:
    rows = site.world.rows(schema.operations)
    return [one for one in rows if one.state in ("queued", "running", "unwinding")]


def test_what_it_cannot_be_restored_into(saved: Saved) -> None:
    site = saved.site
    backup_id = saved.made(site.made(3))
    small, used = site.made(2), site.made(3)
    with pytest.raises(Invalid, match="too small to restore backup of size 3"):
        saved.restore(backup_id, small)
    site.attached(a_server(site), used)
    with pytest.raises(Invalid, match="must be available"):
        saved.restore(backup_id, used)
    snapped = site.new(3)
    command = site.last(MakeVolume, snapped)
    site.world.answer(command, ok=True, volume=disk_of(command))
    site.becomes(snapped, "available")
    shots = VolumeSnapshotEndpoint(site.world.conductor.cloud)
    shots.create_volume_snapshot(site.ctxt, NewVolumeSnapshot(snapped))
    with pytest.raises(Invalid, match="delete them before"):
        saved.restore(backup_id, snapped)
    other = site.made(3)
    site.world.storages.remove(SAFE)
    site.world.beat()
    with pytest.raises(Invalid, match="does not reach storage safe"):
        saved.restore(backup_id, other)
    assert saved.row(backup_id).status == "available"
    for one in (small, snapped, other):
        assert site.row(one).status == "available"


@pytest.mark.parametrize("restored", [True, False])
def test_a_volume_that_is_deleted_by_force_during_a_restore(saved: Saved, restored: bool) -> None:
    """Both holders go, and then its record."""
    site = saved.site
    volume_id = site.made(3)
    backup_id = saved.made(volume_id)
    held = vmids(site)
    saved.restore(backup_id, volume_id)
    command = site.last(MakeVolume, volume_id, 2)
    site.volumes.delete_volume(site.ctxt, volume_id, force=True)
    assert site.row(volume_id).status == "deleting"
    failure = None if restored else FULL
    volume = disk_of(command) if restored else None
    site.world.answer(command, ok=restored, volume=volume, failure=failure, gone=True)
    for number in range(1, 3 if restored else 2):
        removal = site.last(RemoveVolume, volume_id, number)
        site.world.answer(removal, ok=True, gone=True)
    site.becomes(volume_id, None)
    eventually(lambda: vmids(site) == held - 1)
    saved.becomes(backup_id, "available")


def test_a_volume_that_is_deleted_while_its_former_holder_goes(saved: Saved) -> None:
    site = saved.site
    volume_id = site.made(3)
    backup_id = saved.made(volume_id)
    held = vmids(site)
    saved.restore(backup_id, volume_id)
    command = site.last(MakeVolume, volume_id, 2)
    site.world.answer(command, ok=True, volume=disk_of(command))
    site.becomes(volume_id, "available")
    former = site.last(RemoveVolume, volume_id)
    site.volumes.delete_volume(site.ctxt, volume_id, force=False)
    site.world.answer(former, ok=True, gone=True)
    last = site.last(RemoveVolume, volume_id, 2)
    assert last.placed.vmid == command.placed.vmid
    site.world.answer(last, ok=True, gone=True)
    site.becomes(volume_id, None)
    eventually(lambda: vmids(site) == held - 1)


def test_the_quota_is_never_exceeded(saved: Saved) -> None:
    site = saved.site
    conf = site.world.conductor.cloud.conf
    conf.set_override("backups", 3, "quota")
    volumes = [site.made() for _ in range(8)]
    made, refused = [], []

    def one(volume_id: str) -> None:
        try:
            made.append(saved.new(volume_id))
        except QuotaExceeded as error:
            refused.append(error)

    at_once(*[lambda volume_id=each: one(volume_id) for each in volumes])
    assert (len(made), len(refused)) == (3, 5)
    assert "Maximum number of backups allowed (3) exceeded" in refused[0].message
    assert len(site.world.rows(schema.volume_backups)) == 3
    statuses = sorted(site.row(each).status for each in volumes)
    assert statuses == ["available"] * 5 + ["backing-up"] * 3
    conf.set_override("backups", 9, "quota")
    conf.set_override("backup_gigabytes", 7, "quota")
    free = next(each for each in volumes if site.row(each).status == "available")
    with pytest.raises(QuotaExceeded, match="Requested 2G, quota is 7G and 6G"):
        saved.new(free)


def test_a_restore_and_a_delete_of_one_backup_at_once(saved: Saved) -> None:
    """One of them wins; whichever it is, the other is refused."""
    site = saved.site
    backup_id, target = saved.made(site.made()), site.made()
    done: list[str] = []

    def attempt(name: str, call: Any) -> None:
        try:
            call()
            done.append(name)
        except Invalid:
            pass

    at_once(
        lambda: attempt("restore", lambda: saved.restore(backup_id, target)),
        lambda: attempt(
            "delete", lambda: saved.endpoint.delete_backup(site.ctxt, backup_id, force=False)
        ),
    )
    assert len(done) == 1
    expected = {"restore": "restoring", "delete": "deleting"}[done[0]]
    assert saved.row(backup_id).status == expected
