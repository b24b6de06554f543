"""Deletes backups; retried until the archive is confirmed absent.

What was left of a backup that couldn't be made is removed alike, but not its record; its volume is
parked before, and can be used then.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from common.context import RequestContext, internal
from common.errors import Invalid
from common.messages.commands import BackUpVolume, RemoveBackup
from common.messages.reports import Removed
from common.resources.states import ResourceType
from common.resources.volumes import DELETABLE_BACKUPS, BackupStatus, VolumeAction
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.command_end import End
from conductor.engine.removal import Removal
from conductor.plans import BackupPlan, Place
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation
from conductor.store.transactions import Transaction
from conductor.store.volumes import backends, backups, volumes
from conductor.volumes.backups import storages
from conductor.volumes.backups.backup_command import BackupCommand, BackupWork


def begin(
    connection: Transaction, cloud: Cloud, ctxt: RequestContext, row: Any, *, force: bool
) -> None:
    """Write the removal of a backup that is locked. Raises Invalid.

    ``force``: in any status in which nothing is under way.
    """
    working = bool(ledger.open_of(connection, row.id, ResourceType.BACKUP))
    may = set(DELETABLE_BACKUPS) | ({BackupStatus.CREATING} if force and not working else set())
    if row.status not in may:
        raise Invalid("Invalid backup: Backup status must be available or error")
    backups.require_uncopied(connection, row)
    backups.change(connection, row.id, status=BackupStatus.DELETING)
    if working:
        # The operation that removes what was left of it deletes its record, too.
        return
    at = storages.remover(backends.read(connection, "backup"), row, cloud.down(connection))
    host, node = (row.host, row.node) if at is None else (at.host, at.node)
    plan = BackupPlan(
        Place(host, None, row.cluster, node, row.vmid),
        RemoveBackup(storage=str(row.storage), archive=row.archive),
        row.volume_id,
    )
    _begin(connection, cloud, ctxt, row.id, row.project_id, plan)


def begin_again(connection: Transaction, cloud: Cloud, operation: Operation) -> None:
    """Write the removal of what an operation left of its backup, without its record."""
    plan = operation.planned(BackupPlan)
    storage = operation.ordered(BackUpVolume).storage
    command = RemoveBackup(storage=storage, volume_id=plan.volume_id)
    plan = dataclasses.replace(plan, command=command, gone=False)
    project = str(operation.project_id)
    _begin(connection, cloud, internal(), operation.resource_id, project, plan)


def _begin(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    backup_id: str,
    project_id: str,
    plan: BackupPlan,
) -> None:
    resource = (ResourceType.BACKUP, backup_id)
    item = start.new(cloud, VolumeAction.DELETE_BACKUP, resource, project_id, plan)
    start.begin_later(connection, ctxt, item)


class RemoveBackupFlow(Removal[BackupWork], BackupCommand[Removed]):
    """The flow of ``VolumeAction.DELETE_BACKUP``."""

    stage = "remove"
    sends = RemoveBackup
    unseen = "The archive was not seen gone."
    wakes = False

    def lock(self, connection: Transaction, task: BackupWork) -> Any:
        """Lock the volume, if it is parked before, then the backup; return both rows."""
        plan = task.plan
        volume = None if plan.gone else volumes.held(connection, plan.volume_id)
        return volume, backups.held(connection, task.operation.resource_id)

    def write_done(self, connection: Transaction, end: End[BackupWork, Removed]) -> None:
        """Delete the backup's record; after a failed backup set its volume to available."""
        volume, row = end.row
        if volume is not None:
            volumes.end(connection, volume, VolumeAction.BACK_UP, ok=False)
        if row is not None and row.status == BackupStatus.DELETING:
            backups.delete(connection, row.id)

    def write_failed(self, connection: Transaction, end: End[BackupWork, Removed]) -> None:
        """Record the fault in the backup, and in its volume if that wasn't confirmed parked."""
        (volume, row), fault = end.row, end.failure.message
        if volume is not None:
            volumes.end(connection, volume, VolumeAction.BACK_UP, ok=False, fault=fault)
        if row is not None and row.status == BackupStatus.DELETING:
            values = {"status": BackupStatus.ERROR_DELETING, "fail_reason": fault}
            backups.change(connection, row.id, **values)
