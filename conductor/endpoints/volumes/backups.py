"""The RPC endpoint of backups of volumes. The API has asked its policy."""

from __future__ import annotations

from common.context import RequestContext
from common.errors import Invalid
from common.log import logger
from common.resources.states import ResourceType
from common.resources.volumes import BackupStatus
from conductor.cloud import Cloud
from conductor.engine.access import scope
from conductor.rpc.volumes.backups import NewBackup
from conductor.rpc.volumes.volumes import NewVolume, VolumeEdit
from conductor.store import call_answers
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation
from conductor.store.transactions import Transaction
from conductor.store.volumes import backups, volumes
from conductor.volumes import create_volume
from conductor.volumes.backups import back_up, remove_backup, restore

LOG = logger(__name__)

#: statuses that an administrator may set (cinder's schema of os-reset_status)
_SETTABLE = frozenset({BackupStatus.AVAILABLE, BackupStatus.ERROR})
_DESCRIPTION = "auto-created_from_restore_from_backup"


class BackupEndpoint:
    """See ``conductor.rpc.BackupRpc``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def create_backup(self, ctxt: RequestContext, backup: NewBackup) -> str:
        def work(connection: Transaction) -> str:
            row = volumes.locked(connection, backup.volume_id, scope(ctxt))
            return back_up.begin(connection, self._cloud, ctxt, row, backup)

        made = self._cloud.store.run(work)
        self._cloud.wake()
        return made

    def edit_backup(self, ctxt: RequestContext, backup_id: str, edit: VolumeEdit) -> None:
        def work(connection: Transaction) -> None:
            backups.edit(connection, backups.locked(connection, backup_id, scope(ctxt)), edit)

        self._cloud.store.run(work)

    def delete_backup(self, ctxt: RequestContext, backup_id: str, *, force: bool = False) -> None:
        def work(connection: Transaction) -> None:
            row = backups.locked(connection, backup_id, scope(ctxt))
            remove_backup.begin(connection, self._cloud, ctxt, row, force=force)

        self._cloud.store.run(work)
        self._cloud.wake()

    def restore_backup(
        self, ctxt: RequestContext, backup_id: str, volume_id: str | None, name: str | None
    ) -> str:
        def work(connection: Transaction) -> tuple[str, Operation | None]:
            if volume_id is None:
                return self._restore_new(connection, ctxt, backup_id, name)
            volume = volumes.locked(connection, volume_id, scope(ctxt))
            row = backups.locked(connection, backup_id, scope(ctxt))
            restore.begin(connection, self._cloud, ctxt, volume, row)
            call_answers.note(connection, volume_id)
            return volume_id, None

        found, operation = self._cloud.store.run(work)
        if operation is None:
            self._cloud.wake()
        else:
            self._cloud.start(operation)
        return found

    def _restore_new(
        self, connection: Transaction, ctxt: RequestContext, backup_id: str, name: str | None
    ) -> tuple[str, Operation | None]:
        row = backups.locked(connection, backup_id, scope(ctxt))
        restore.require_available(row)
        new = NewVolume(
            str(ctxt.project_id),
            row.size_gib,
            f"{backups.RESTORED_NAME}{backup_id}" if name is None else name,
            _DESCRIPTION,
            backup_id=backup_id,
        )
        made, operation = create_volume.begin(connection, self._cloud, ctxt, new)
        if operation is not None:
            backups.change(connection, row.id, status=BackupStatus.RESTORING)
        call_answers.note(connection, made)
        return made, operation

    def reset_backup(self, ctxt: RequestContext, backup_id: str, status: str) -> None:
        def work(connection: Transaction) -> None:
            row = backups.locked(connection, backup_id, scope(ctxt))
            if status not in _SETTABLE:
                raise Invalid(f"Invalid backup: status {status} can't be set.")
            if ledger.open_of(connection, row.id, ResourceType.BACKUP):
                raise Invalid(
                    f"Invalid backup: Backup {row.id} is {row.status}: an operation is under way."
                )
            if status == BackupStatus.AVAILABLE and row.archive is None:
                raise Invalid(f"Invalid backup: There is no archive of backup {row.id}.")
            backups.change(connection, row.id, status=status)
            LOG.warning("Backup %s: an administrator set its status to %s.", row.id, status)

        self._cloud.store.run(work)
