"""Restores backups: into a new volume, or in place of what a volume has.

The archive is restored into a holder of its own; only once that is seen there does the volume's
record name it, and the former holder is removed. Until then nothing of the volume is touched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.context import RequestContext, internal
from common.errors import Invalid
from common.messages.commands import MakeVolume, RemoveVolume, VolumeSource
from common.messages.reports import VolumeMade
from common.resources.states import ResourceType
from common.resources.volumes import BackupStatus, VolumeAction, VolumeStatus
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.command_end import End
from conductor.plans import Place, VolumePlan
from conductor.store.records import Operation
from conductor.store.servers import vmids
from conductor.store.servers.vmids import BandExhausted
from conductor.store.transactions import Transaction
from conductor.store.volumes import backends, backups, snapshots, volumes
from conductor.volumes import remove_volume, status_rules, uncertain
from conductor.volumes.backups import storages
from conductor.volumes.volume_command import MakingVolume, VolumeWork


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
    status_rules.begin(connection, volume, VolumeAction.RESTORE)
    try:
        vmid = vmids.reserve(connection, volume.cluster, None, None)
    except BandExhausted as error:
        raise Invalid(f"Invalid volume: {error.message}") from error
    plan = VolumePlan(
        Place(volume.host, None, volume.cluster, volume.node, vmid),
        MakeVolume(
            size_gib=volume.size_gib,
            storage=volume.storage,
            source=VolumeSource(row.archive, archive=True),
        ),
        backup_id=row.id,
    )
    resource = (ResourceType.VOLUME, volume.id)
    item = start.new(cloud, VolumeAction.RESTORE, resource, volume.project_id, plan)
    start.begin_later(connection, ctxt, item)
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


class RestoreFlow(MakingVolume):
    """The flow of ``VolumeAction.RESTORE``."""

    stage = "restore"
    unseen = "The restored volume was not seen there."
    late = "The backup was not restored in time."

    def unwanted(self, task: VolumeWork) -> str | None:
        """Return nothing: a volume that is deleted is removed when this ends."""
        return None

    def write_done(self, connection: Transaction, end: End[VolumeWork, VolumeMade]) -> None:
        """Record the restored holder, and request the removal of the former one."""
        operation, row, made = end.operation, end.row, end.made
        plan = operation.planned(VolumePlan)
        backup = None if plan.backup_id is None else backups.held(connection, plan.backup_id)
        backups.restored(connection, plan.backup_id)
        if row is None or row.status != VolumeStatus.RESTORING_BACKUP:
            self._remove(connection, operation, plan.target, made.volid)
            return
        former, volid = remove_volume.place_of(row), row.volid
        values: dict[str, Any] = {"volid": made.volid, "vmid": plan.target.vmid}
        values["snapshot_way"] = made.snapshots or row.snapshot_way
        if backup is not None:
            values |= backups.restored_values(backup, row)
        volumes.change(connection, row.id, **values)
        volumes.end(connection, row, VolumeAction.RESTORE, ok=True)
        self._remove(connection, operation, former, volid)

    def write_failed(self, connection: Transaction, end: End[VolumeWork, VolumeMade]) -> None:
        """Set the volume to error_restoring. Its content is unchanged."""
        operation, row = end.operation, end.row
        plan = operation.planned(VolumePlan)
        backups.restored(connection, plan.backup_id)
        if row is not None:
            fault = end.failure.message
            volumes.end(connection, row, VolumeAction.RESTORE, ok=False, fault=fault)
        if not end.outcome.gone:
            self._remove(connection, operation, plan.target, None)
            return
        vmids.free(connection, str(plan.target.cluster), int(plan.target.vmid or 0))
        if row is not None and row.status == VolumeStatus.DELETING:
            # It was deleted by force while it was restored.
            where = remove_volume.place_of(row)
            remove_volume.begin(connection, self._cloud, internal(), row, where)

    def uncertain(self) -> Callable[[Transaction, VolumeWork], None]:
        """Set the volume to error and the backup to available."""
        return uncertain.restored_volume

    def _remove(
        self, connection: Transaction, operation: Operation, where: Place, volid: str | None
    ) -> None:
        """Write the removal of a holder that the volume's record doesn't name."""
        plan = VolumePlan(where, RemoveVolume(volid=volid))
        resource = (ResourceType.VOLUME, operation.resource_id)
        item = start.new(
            self._cloud, VolumeAction.DELETE, resource, str(operation.project_id), plan
        )
        start.begin_later(connection, operation.ctxt, item)
