"""What the records of resources say after an operation that overslept and was not seen done.

Each is in error, with the reason. The record still says what exists, so that it is removed when
the owner deletes the resource. See ``conductor.engine.overslept``.
"""

from __future__ import annotations

from common.messages.commands import Copy
from common.resources.volumes import BackupStatus, SnapshotStatus, VolumeAction
from conductor.engine import overslept
from conductor.engine.stages import Work
from conductor.store.images import uploads
from conductor.store.transactions import Transaction
from conductor.store.volumes import backups, snapshots, volumes
from conductor.volumes import build_waiting_for_volume


def volume(connection: Transaction, task: Work) -> None:
    """Show that it isn't known what became of the action on a volume."""
    operation = task.operation
    row = volumes.held(connection, operation.resource_id)
    fault = overslept.unseen(task).message
    if row is None or not volumes.end(connection, row, operation.action, ok=False, fault=fault):
        return
    if operation.action == VolumeAction.CREATE:
        build_waiting_for_volume.wake(connection, row.id)


def restored_volume(connection: Transaction, task: Work) -> None:
    """As ``volume``, for a volume restored from a backup, which is free again."""
    volume(connection, task)
    backups.restored(connection, getattr(task.operation.plan, "backup_id", None))


def uploaded_volume(connection: Transaction, task: Work) -> None:
    """As ``volume``, for a volume uploaded as an image, which can be deleted."""
    volume(connection, task)
    uploads.kill(connection, task.operation.ordered(Copy).image_id)


def snapshot(connection: Transaction, task: Work) -> None:
    """Show that it isn't known whether a snapshot was taken."""
    row = snapshots.held(connection, task.operation.resource_id)
    if row is not None and row.status == SnapshotStatus.CREATING:
        fault = overslept.unseen(task).message
        snapshots.change(connection, row.id, status=SnapshotStatus.ERROR, fault=fault)


def backup(connection: Transaction, task: Work, volume_id: str) -> None:
    """Show that it isn't known whether a backup was made; its volume can be used."""
    held = volumes.held(connection, volume_id)
    row = backups.held(connection, task.operation.resource_id)
    if held is not None:
        volumes.end(connection, held, VolumeAction.BACK_UP, ok=False)
    if row is not None and row.status == BackupStatus.CREATING:
        reason = overslept.unseen(task).message
        backups.change(connection, row.id, status=BackupStatus.ERROR, fail_reason=reason)
