"""Backs volumes up that no server has: Proxmox VE makes an archive of the holder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.context import RequestContext
from common.errors import Invalid
from common.messages.commands import BackUpVolume
from common.messages.reports import VolumeMade
from common.resources.states import ResourceType
from common.resources.volumes import BackupStatus, VolumeAction, VolumeStatus
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.command_end import End
from conductor.plans import BackupPlan
from conductor.rpc.volumes.backups import NewBackup
from conductor.store.quotas import volume_quotas
from conductor.store.transactions import Transaction
from conductor.store.volumes import backends, backups, snapshots, volumes
from conductor.volumes import remove_volume, status_rules, uncertain
from conductor.volumes.backups import remove_backup, storages
from conductor.volumes.backups.backup_command import BackupCommand, BackupWork


def begin(
    connection: Transaction, cloud: Cloud, ctxt: RequestContext, row: Any, new: NewBackup
) -> str:
    """Write a backup of a volume that is locked, with the operation that makes it.

    Return its id. Raises Invalid, SnapshotNotFound, QuotaExceeded, Unavailable.
    """
    _require_able(connection, row, new)
    snapshots.require_alone(connection, row)
    wanted = {"backups": 1, "backup_gigabytes": row.size_gib}
    volume_quotas.take(connection, row.project_id, cloud.conf, wanted, None, 0)
    found = backends.read(connection, "backup")
    storage = storages.choose(found, row, cloud.conf.volumes.backup_storage).storage
    status_rules.begin(connection, row, VolumeAction.BACK_UP)
    place = {"host": row.host, "cluster": row.cluster, "node": row.node, "vmid": row.vmid}
    place |= {"storage": storage.name, "shared": storage.shared}
    backup_id = backups.insert(connection, row, new, str(ctxt.user_id), **place)
    where = remove_volume.place_of(row)
    command = BackUpVolume(
        backup_id=backup_id,
        volid=str(row.volid),
        storage=storage.name,
        project_id=row.project_id,
        user_id=str(ctxt.user_id or ""),
        size_gib=row.size_gib,
    )
    plan = BackupPlan(where, command, row.id)
    resource = (ResourceType.BACKUP, backup_id)
    item = start.new(cloud, VolumeAction.BACK_UP, resource, row.project_id, plan)
    start.begin_later(connection, ctxt, item)
    return backup_id


def _require_able(connection: Transaction, row: Any, new: NewBackup) -> None:
    """Raise Invalid, in Cinder's words where it has some, unless the volume can be backed up."""
    if new.snapshot_id is not None:
        snapshot, _ = snapshots.locked(connection, new.snapshot_id, row.project_id)
        if snapshot.volume_id != row.id:
            raise Invalid(
                f"Invalid volume: Volume {row.id} does not match with snapshot.volume_id "
                f"{snapshot.volume_id}."
            )
        raise Invalid(
            "Invalid snapshot: No backups are made of snapshots: make a volume of the snapshot, "
            "and a backup of that."
        )
    if row.status not in (VolumeStatus.AVAILABLE, VolumeStatus.IN_USE):
        raise Invalid(
            "Invalid volume: Volume to be backed up must be available or in-use, but the current "
            f'status is "{row.status}".'
        )
    if row.status == VolumeStatus.IN_USE and not new.force:
        raise Invalid("Invalid volume: Backing up an in-use volume must use the force flag.")
    if row.status == VolumeStatus.IN_USE:
        raise Invalid(
            f"Invalid volume: Volume {row.id} can't be backed up while it is attached to a "
            "server: detach it, or create a volume from a snapshot of it and back that up."
        )
    if new.incremental:
        if not backups.of_volume(connection, row.id):
            text = "No backups available to do an incremental backup."
            raise Invalid(f"Invalid backup: {text}")
        raise Invalid("Invalid backup: Backups are whole here, not incremental.")


class BackUpFlow(BackupCommand[VolumeMade]):
    """The flow of ``VolumeAction.BACK_UP``."""

    stage = "dump"
    unseen = "The archive was not seen there."
    late = "The backup was not made in time."
    wakes = False

    def command(self, task: BackupWork) -> BackUpVolume:
        """Return what has the archive made."""
        return self.planned(task, BackUpVolume, (ResourceType.VOLUME, task.plan.volume_id))

    def succeeded(self, task: BackupWork, outcome: VolumeMade) -> bool:
        """Return whether the archive is there."""
        return outcome.ok and outcome.volume is not None

    def write_done(self, connection: Transaction, end: End[BackupWork, VolumeMade]) -> None:
        """Set the backup to available, and its volume to its previous status."""
        (volume, row), made = end.row, end.made
        if volume is not None:
            volumes.end(connection, volume, VolumeAction.BACK_UP, ok=True)
        if row is not None:
            values = {"archive": made.volid, "size_bytes": made.size_bytes}
            backups.change(connection, row.id, status=BackupStatus.AVAILABLE, **values)

    def write_failed(self, connection: Transaction, end: End[BackupWork, VolumeMade]) -> None:
        """Set the backup to error. The volume can be used once it was seen parked."""
        volume, row = end.row
        if row is not None:
            values = {"status": BackupStatus.ERROR, "fail_reason": end.failure.message}
            backups.change(connection, row.id, **values)
        if not end.outcome.gone:
            remove_backup.begin_again(connection, self._cloud, end.operation)
            self.wake_after(connection)
        elif volume is not None:
            volumes.end(connection, volume, VolumeAction.BACK_UP, ok=False)

    def uncertain(self) -> Callable[[Transaction, BackupWork], None]:
        """Set the backup to error."""
        return lambda connection, task: uncertain.backup(connection, task, task.plan.volume_id)
