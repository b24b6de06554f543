"""Backs volumes up that no server has: Proxmox VE makes an archive of the holder."""

from __future__ import annotations

from typing import Any

from common import clock
from common.context import RequestContext
from common.errors import Invalid
from common.log import logger
from common.messages.commands import BackUpVolume
from common.messages.reports import Category, Failure, Outcome
from common.states import OperationState, ResourceType
from common.volumes import BackupStatus, VolumeAction, VolumeStatus
from conductor.cloud import Cloud
from conductor.engine import begins, ends
from conductor.engine.stages import Stage, Table
from conductor.plans import BackupPlan
from conductor.rpc.backups import NewBackup
from conductor.store import operations as ledger
from conductor.store.transactions import Transaction
from conductor.store.volumes import backends, backups, quota, records, snapshots
from conductor.volumes import beginning, remove_volume, uncertain
from conductor.volumes.backups import remove_backup, storages
from conductor.volumes.backups.load import BackupWork, load

LOG = logger(__name__)


def begin(
    connection: Transaction, cloud: Cloud, ctxt: RequestContext, row: Any, new: NewBackup
) -> str:
    """Write a backup of a volume that is locked, with the operation that makes it.

    Return its id. Raises Invalid, SnapshotNotFound, QuotaExceeded, Unavailable.
    """
    _require_able(connection, row, new)
    snapshots.require_alone(connection, row)
    wanted = {"backups": 1, "backup_gigabytes": row.size_gib}
    quota.take(connection, row.project_id, cloud.conf, wanted, None, 0)
    found = backends.read(connection, "backup")
    storage = storages.choose(found, row, cloud.conf.volumes.backup_storage).storage
    beginning.begin(connection, row, VolumeAction.BACK_UP)
    place = {"host": row.host, "cluster": row.cluster, "node": row.node, "vmid": row.vmid}
    place |= {"storage": storage.name, "shared": storage.shared}
    backup_id = backups.insert(connection, row, new, str(ctxt.user_id), **place)
    where = remove_volume.place_of(row)
    item = begins.new(
        cloud,
        VolumeAction.BACK_UP,
        backup_id,
        row.project_id,
        resource_type=ResourceType.BACKUP,
        plan=BackupPlan(where, row.id, str(row.volid), storage.name),
    )
    begins.begin_later(connection, ctxt, item)
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
            f"Invalid volume: Volume {row.id} can't be backed up while a server has it: detach "
            "it, or make a volume of a snapshot of it and back that up."
        )
    if new.incremental:
        if not backups.of_volume(connection, row.id):
            text = "No backups available to do an incremental backup."
            raise Invalid(f"Invalid backup: {text}")
        raise Invalid("Invalid backup: Backups are whole here, not incremental.")


class BackUpFlow:
    """The flow of ``VolumeAction.BACK_UP``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[BackupWork]:
        """Return the one stage: an agent has the archive made."""
        stage = Stage("dump", self._send, self._heard)
        return Table(
            (stage,),
            lost=None,
            late=self._late,
            owns=False,
            load=load,
            uncertain=lambda c, task: uncertain.backup(c, task, task.plan.volume_id),
        )

    def _late(self, task: BackupWork) -> None:
        text = "The backup was not made in time."
        if task.operation.message:
            text += f" It waited: {task.operation.message}"
        self._give_up(task, Failure(Category.TASK_TIMEOUT, text), gone=False)

    def _send(self, task: BackupWork) -> None:
        operation, plan = task.operation, task.plan
        worker = self._cloud.take_to(operation, task.place.host)
        if worker is None:
            text = f"The agent of host {task.place.host} does not answer."
            failure = Failure(Category.NODE_UNHEALTHY, text, host=task.place.host)
            if not ends.waits(self._cloud, operation, failure):
                self._give_up(task, failure, gone=False)
            return
        command = BackUpVolume(
            operation.id,
            operation.attempt,
            plan.volume_id,
            task.place,
            operation.deadline or clock.utcnow(),
            backup_id=operation.resource_id,
            volid=plan.volid,
            storage=plan.storage,
        )
        self._cloud.compute.execute(operation.ctxt, worker, command)

    def _heard(self, task: BackupWork, outcome: Outcome) -> None:
        operation, made = task.operation, outcome.volume
        if outcome.ok and made is not None:
            values = {"archive": made.volid, "size_bytes": made.size_bytes}
            self._cloud.store.run(lambda c: self._made(c, task, values))
            LOG.info("Backup %s is made.", operation.resource_id)
            return
        unknown = Failure(Category.UNKNOWN_OUTCOME, "The archive was not seen there.")
        failure = outcome.failure or unknown
        LOG.warning("Backup %s: %s", operation.resource_id, failure.message)
        if not ends.waits(self._cloud, operation, failure):
            self._give_up(task, failure, gone=outcome.gone)

    @staticmethod
    def _made(connection: Transaction, task: BackupWork, values: dict[str, Any]) -> None:
        operation = task.operation
        volume = records.held(connection, task.plan.volume_id)
        row = backups.held(connection, operation.resource_id)
        if ends.has_ended(connection, operation):
            return
        ledger.close(connection, operation.id, OperationState.DONE)
        if volume is not None:
            records.end(connection, volume, VolumeAction.BACK_UP, ok=True)
        if row is not None:
            backups.change(connection, row.id, status=BackupStatus.AVAILABLE, **values)

    def _give_up(self, task: BackupWork, failure: Failure, *, gone: bool) -> None:
        """Have it be in error. The volume can be used once it was seen parked."""
        operation = task.operation

        def work(connection: Transaction) -> None:
            volume = records.held(connection, task.plan.volume_id)
            row = backups.held(connection, operation.resource_id)
            if ends.has_ended(connection, operation):
                return
            ends.close_failed(connection, operation, failure)
            if row is not None:
                values = {"status": BackupStatus.ERROR, "fail_reason": failure.message}
                backups.change(connection, row.id, **values)
            if not gone:
                remove_backup.begin_again(connection, self._cloud, operation)
            elif volume is not None:
                records.end(connection, volume, VolumeAction.BACK_UP, ok=False)

        self._cloud.store.run(work)
        self._cloud.wake()
