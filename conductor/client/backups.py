"""Calls about backups of volumes."""

from __future__ import annotations

from common.context import RequestContext
from conductor.client.base import Base
from conductor.messages import NewBackup, VolumeEdit
from conductor.rpc_api import BackupRpc


class BackupCalls(Base):
    """See ``conductor.rpc_api.BackupRpc``."""

    def create_backup(self, ctxt: RequestContext, backup: NewBackup) -> str:
        """Begin to back a volume up; return the backup's id.

        Raises VolumeNotFound, Invalid (the volume's status; of a snapshot, incremental),
        QuotaExceeded, Unavailable (the volume's host has no storage for backups).
        """
        return self._rpc.call(ctxt, BackupRpc.create_backup, backup=backup)

    def edit_backup(self, ctxt: RequestContext, backup_id: str, edit: VolumeEdit) -> None:
        """Change what is said of a backup. Raises BackupNotFound."""
        self._rpc.call(ctxt, BackupRpc.edit_backup, backup_id=backup_id, edit=edit)

    def delete_backup(self, ctxt: RequestContext, backup_id: str, *, force: bool = False) -> None:
        """Begin to remove a backup; ``force``: in more states.

        Raises BackupNotFound, Invalid (its status, or a volume is made of it).
        """
        self._rpc.call(ctxt, BackupRpc.delete_backup, backup_id=backup_id, force=force)

    def restore_backup(
        self, ctxt: RequestContext, backup_id: str, volume_id: str | None, name: str | None
    ) -> str:
        """Begin to restore a backup in place of what a volume has; return the volume's id.

        ``volume_id``: None makes a new one, of this name. Raises BackupNotFound, VolumeNotFound,
        Invalid (statuses, the volume's size, its snapshots, its place), QuotaExceeded.
        """
        return self._rpc.call(
            ctxt,
            BackupRpc.restore_backup,
            backup_id=backup_id,
            volume_id=volume_id,
            name=name,
        )

    def reset_backup(self, ctxt: RequestContext, backup_id: str, status: str) -> None:
        """Set a backup's status. Raises BackupNotFound, Invalid."""
        self._rpc.call(ctxt, BackupRpc.reset_backup, backup_id=backup_id, status=status)
