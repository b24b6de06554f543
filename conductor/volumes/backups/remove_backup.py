"""Removes backups; repeated until their archives were seen gone.

What was left of a backup that couldn't be made is removed alike, and its record stays: then the
volume is parked before, and can be used.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from common import clock
from common.context import RequestContext, internal
from common.errors import Invalid
from common.messages.commands import RemoveBackup
from common.messages.reports import Category, Failure, Outcome
from common.states import OperationState, ResourceType
from common.volumes import DELETABLE_BACKUPS, BackupStatus, VolumeAction
from conductor.cloud import Cloud, backoff
from conductor.engine import begins, ends
from conductor.engine.stages import Stage, Table
from conductor.plans import BackupPlan, Place
from conductor.store import operations as ledger
from conductor.store.operations import Operation
from conductor.store.transactions import Transaction
from conductor.store.volumes import backends, backups, records
from conductor.volumes import removing
from conductor.volumes.backups import storages
from conductor.volumes.backups.load import BackupWork, load


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
        # What was left of it is being removed; its record goes with that.
        return
    at = storages.remover(backends.read(connection, "backup"), row, cloud.down(connection))
    host, node = (row.host, row.node) if at is None else (at.host, at.node)
    plan = BackupPlan(
        Place(host, None, row.cluster, node, row.vmid),
        volume_id=row.volume_id,
        storage=str(row.storage),
        archive=row.archive,
    )
    _begin(connection, cloud, ctxt, row.id, row.project_id, plan)


def begin_again(connection: Transaction, cloud: Cloud, operation: Operation) -> None:
    """Write the removal of what an operation left of its backup, whose record stays."""
    plan = dataclasses.replace(operation.planned(BackupPlan), archive=None, gone=False)
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
    item = begins.new(
        cloud,
        VolumeAction.DELETE_BACKUP,
        backup_id,
        project_id,
        resource_type=ResourceType.BACKUP,
        plan=plan,
    )
    begins.begin_later(connection, ctxt, item)


class RemoveBackupFlow:
    """The flow of ``VolumeAction.DELETE_BACKUP``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[BackupWork]:
        """Return the one stage: an agent removes the archive."""
        stage = Stage("remove", self._send, self._heard, final=True)
        return Table((stage,), lost=None, owns=False, load=load)

    def _send(self, task: BackupWork) -> None:
        operation, plan = task.operation, task.plan
        worker = self._cloud.take_to(operation, task.place.host)
        if worker is None:
            self._cloud.wait(operation, backoff(operation.attempt))
            return
        command = RemoveBackup(
            operation.id,
            operation.attempt,
            operation.resource_id,
            task.place,
            clock.after(self._cloud.conf.conductor.action_timeout_seconds),
            storage=plan.storage,
            archive=plan.archive,
            volume_id=None if plan.gone else plan.volume_id,
        )
        self._cloud.compute.execute(operation.ctxt, worker, command)

    def _heard(self, task: BackupWork, outcome: Outcome) -> None:
        operation = task.operation
        if outcome.gone:
            self._cloud.store.run(lambda c: self._gone(c, task))
            return
        unknown = Failure(Category.UNKNOWN_OUTCOME, "The archive was not seen gone.")
        failure = outcome.failure or unknown
        removing.again(self._cloud, operation, failure, lambda c: self._give_up(c, task, failure))

    @staticmethod
    def _gone(connection: Transaction, task: BackupWork) -> None:
        operation, plan = task.operation, task.plan
        volume = None if plan.gone else records.held(connection, plan.volume_id)
        row = backups.held(connection, operation.resource_id)
        if ends.has_ended(connection, operation):
            return
        ledger.close(connection, operation.id, OperationState.DONE)
        if volume is not None:
            records.end(connection, volume, VolumeAction.BACK_UP, ok=False)
        if row is not None and row.status == BackupStatus.DELETING:
            backups.delete(connection, row.id)

    @staticmethod
    def _give_up(connection: Transaction, task: BackupWork, failure: Failure) -> None:
        operation, plan = task.operation, task.plan
        volume = None if plan.gone else records.held(connection, plan.volume_id)
        row = backups.held(connection, operation.resource_id)
        if ends.has_ended(connection, operation):
            return
        ends.close_failed(connection, operation, failure)
        if volume is not None:
            records.end(connection, volume, VolumeAction.BACK_UP, ok=False, fault=failure.message)
        if row is not None and row.status == BackupStatus.DELETING:
            values = {"status": BackupStatus.ERROR_DELETING, "fail_reason": failure.message}
            backups.change(connection, row.id, **values)
