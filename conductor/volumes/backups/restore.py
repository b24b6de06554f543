"""Restores backups: into a new volume, or in place of what a volume has.

The archive is restored into a holder of its own; only once that is seen there does the volume's
record name it, and the former holder is removed. Until then nothing of the volume is touched.
"""

from __future__ import annotations

from typing import Any

from common import clock
from common.context import RequestContext, internal
from common.errors import Invalid
from common.log import logger
from common.messages.commands import MakeVolume, VolumeSource
from common.messages.reports import Category, Failure, MadeVolume, Outcome
from common.states import OperationState, ResourceType
from common.volumes import BackupStatus, VolumeAction, VolumeStatus
from conductor.cloud import Cloud
from conductor.engine import begins, ends
from conductor.engine.stages import Stage, Table
from conductor.plans import Place, VolumePlan
from conductor.store import operations as ledger
from conductor.store import vmids
from conductor.store.operations import Operation
from conductor.store.transactions import Transaction
from conductor.store.vmids import BandExhausted
from conductor.store.volumes import backends, backups, records, snapshots
from conductor.volumes import beginning, remove_volume, uncertain
from conductor.volumes.backups import storages
from conductor.volumes.load import VolumeWork, load

LOG = logger(__name__)


def require_available(row: Any) -> None:
    """Raise Invalid unless a backup that is locked can be restored."""
    if row.status != BackupStatus.AVAILABLE:
        raise Invalid("Invalid backup: Backup status must be available")


def begin(
    connection: Transaction, cloud: Cloud, ctxt: RequestContext, volume: Any, row: Any
) -> None:
    """Write the operation that restores a backup in place of what a volume has; both are locked.

    Raises Invalid, Unavailable.
    """
    require_available(row)
    _require_fit(connection, volume, row)
    beginning.begin(connection, volume, VolumeAction.RESTORE)
    try:
        vmid = vmids.reserve(connection, volume.cluster, None, None)
    except BandExhausted as error:
        raise Invalid(f"Invalid volume: {error.message}") from error
    item = begins.new(
        cloud,
        VolumeAction.RESTORE,
        volume.id,
        volume.project_id,
        resource_type=ResourceType.VOLUME,
        plan=VolumePlan(
            Place(volume.host, None, volume.cluster, volume.node, vmid),
            volume.storage,
            volume.size_gib,
            source=VolumeSource(row.archive, archive=True),
            backup_id=row.id,
        ),
    )
    begins.begin_later(connection, ctxt, item)
    backups.change(connection, row.id, status=BackupStatus.RESTORING)


def _require_fit(connection: Transaction, volume: Any, row: Any) -> None:
    """Raise Invalid unless the backup can take the place of what the volume has."""
    if volume.status != VolumeStatus.AVAILABLE:
        raise Invalid("Invalid volume: Volume to be restored to must be available")
    if row.size_gib > volume.size_gib:
        raise Invalid(
            f"Invalid volume: volume size {volume.size_gib} is too small to restore backup of "
            f"size {row.size_gib}."
        )
    if any(one.snapname is not None for one in snapshots.of_volume(connection, volume.id)):
        raise Invalid(
            f"Invalid volume: The snapshots of volume {volume.id} are kept with what it has: "
            "delete them before, or restore into another volume."
        )
    if volume.host not in storages.hosts(backends.read(connection, "backup"), row):
        raise Invalid(
            f"Invalid volume: Host {volume.host}, which has volume {volume.id}, does not reach "
            f"storage {row.storage}, which has backup {row.id}: restore into another volume."
        )


class RestoreFlow:
    """The flow of ``VolumeAction.RESTORE``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[VolumeWork]:
        """Return the one stage: an agent restores the archive into a holder of its own."""
        stage = Stage("restore", self._send, self._heard)
        return Table(
            (stage,),
            lost=None,
            late=self._late,
            owns=False,
            load=load,
            uncertain=uncertain.restored_volume,
        )

    def _late(self, task: VolumeWork) -> None:
        text = "The backup was not restored in time."
        self._give_up(task, Failure(Category.TASK_TIMEOUT, text), gone=False)

    def _send(self, task: VolumeWork) -> None:
        operation, plan = task.operation, task.operation.planned(VolumePlan)
        worker = self._cloud.take_to(operation, task.place.host)
        if worker is None:
            text = f"The agent of host {task.place.host} does not answer."
            failure = Failure(Category.NODE_UNHEALTHY, text, host=task.place.host)
            if not ends.waits(self._cloud, operation, failure):
                self._give_up(task, failure, gone=False)
            return
        command = MakeVolume(
            operation.id,
            operation.attempt,
            operation.resource_id,
            task.place,
            operation.deadline or clock.utcnow(),
            name="" if task.volume is None else task.volume.name,
            size_gib=plan.size_gib,
            storage=plan.storage,
            source=plan.source,
            project_id=str(operation.project_id),
        )
        self._cloud.compute.execute(operation.ctxt, worker, command)

    def _heard(self, task: VolumeWork, outcome: Outcome) -> None:
        operation, made = task.operation, outcome.volume
        if outcome.ok and made is not None:
            self._cloud.store.run(lambda c: self._swap(c, operation, made))
            LOG.info("Volume %s has what was backed up.", operation.resource_id)
            self._cloud.wake()
            return
        unknown = Failure(Category.UNKNOWN_OUTCOME, "The restored volume was not seen there.")
        failure = outcome.failure or unknown
        LOG.warning("Volume %s: %s", operation.resource_id, failure.message)
        if not ends.waits(self._cloud, operation, failure):
            self._give_up(task, failure, gone=outcome.gone)

    def _swap(self, connection: Transaction, operation: Operation, made: MadeVolume) -> None:
        """Have the record name the restored holder, and have the former one removed."""
        plan = operation.planned(VolumePlan)
        row = records.held(connection, operation.resource_id)
        backup = None if plan.backup_id is None else backups.held(connection, plan.backup_id)
        if ends.has_ended(connection, operation):
            return
        ledger.close(connection, operation.id, OperationState.DONE)
        backups.restored(connection, plan.backup_id)
        if row is None or row.status != VolumeStatus.RESTORING_BACKUP:
            self._remove(connection, operation, plan.target, made.volid)
            return
        former, volid = remove_volume.place_of(row), row.volid
        values: dict[str, Any] = {"volid": made.volid, "vmid": plan.target.vmid}
        values["snapshot_way"] = made.snapshots or row.snapshot_way
        if backup is not None:
            values |= backups.restored_values(backup, row)
        records.change(connection, row.id, **values)
        records.end(connection, row, VolumeAction.RESTORE, ok=True)
        self._remove(connection, operation, former, volid)

    def _give_up(self, task: VolumeWork, failure: Failure, *, gone: bool) -> None:
        """Have the volume say that it wasn't restored. What it has is what it had."""
        operation = task.operation
        plan = operation.planned(VolumePlan)

        def work(connection: Transaction) -> None:
            row = records.held(connection, operation.resource_id)
            if ends.has_ended(connection, operation):
                return
            ends.close_failed(connection, operation, failure)
            backups.restored(connection, plan.backup_id)
            if row is not None:
                fault = failure.message
                records.end(connection, row, VolumeAction.RESTORE, ok=False, fault=fault)
            if not gone:
                self._remove(connection, operation, plan.target, None)
                return
            vmids.free(connection, str(plan.target.cluster), int(plan.target.vmid or 0))
            if row is not None and row.status == VolumeStatus.DELETING:
                # It was deleted by force meanwhile.
                where = remove_volume.place_of(row)
                remove_volume.begin(connection, self._cloud, internal(), row, where, gone=True)

        self._cloud.store.run(work)
        self._cloud.wake()

    def _remove(
        self, connection: Transaction, operation: Operation, where: Place, volid: str | None
    ) -> None:
        """Write the removal of a holder that the volume's record doesn't name."""
        item = begins.new(
            self._cloud,
            VolumeAction.DELETE,
            operation.resource_id,
            str(operation.project_id),
            resource_type=ResourceType.VOLUME,
            plan=VolumePlan(where, operation.planned(VolumePlan).storage, volid=volid),
        )
        begins.begin_later(connection, operation.ctxt, item)
