"""Calls about backups of volumes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from common.context import RequestContext
from conductor.rpc.volumes.volumes import VolumeEdit


@dataclass(frozen=True)
class NewBackup:
    """A backup of a volume that is asked for."""

    volume_id: str
    name: str = ""
    description: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    container: str | None = None
    availability_zone: str | None = None
    snapshot_id: str | None = None
    incremental: bool = False
    force: bool = False
    """Whether a server may have the volume."""


class BackupRpc(Protocol):
    """Backups of volumes."""

    def create_backup(self, ctxt: RequestContext, backup: NewBackup) -> str:
        """Begin to back a volume up; return the backup's id.

        Raises VolumeNotFound, Invalid (the volume's status; of a snapshot, incremental),
        QuotaExceeded, Unavailable (the volume's host has no storage for backups).
        """

    def edit_backup(self, ctxt: RequestContext, backup_id: str, edit: VolumeEdit) -> None:
        """Change a backup's record. Raises BackupNotFound."""

    def delete_backup(self, ctxt: RequestContext, backup_id: str, *, force: bool = False) -> None:
        """Begin to remove a backup; ``force``: in more states.

        Raises BackupNotFound, Invalid (its status, or a volume is being made from it).
        """

    def restore_backup(
        self, ctxt: RequestContext, backup_id: str, volume_id: str | None, name: str | None
    ) -> str:
        """Begin to restore a backup in place of what a volume has; return the volume's id.

        ``volume_id``: None makes a new one, of this name. Raises BackupNotFound, VolumeNotFound,
        Invalid (statuses, the volume's size, its snapshots, its place), QuotaExceeded.
        """

    def reset_backup(self, ctxt: RequestContext, backup_id: str, status: str) -> None:
        """Set a backup's status. Raises BackupNotFound, Invalid."""
