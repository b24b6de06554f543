"""Removes snapshots; repeated until they were seen gone. The last one lets its volume go."""

from __future__ import annotations

import dataclasses
from typing import Any

from common.context import RequestContext, internal
from common.errors import Invalid
from common.messages.commands import Command, RemoveVolume, SnapshotVerb, SnapVolume
from common.messages.reports import Removed
from common.resources.states import ResourceType
from common.resources.volumes import (
    DELETABLE_SNAPSHOTS,
    SnapshotStatus,
    VolumeAction,
    VolumeStatus,
)
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.command_end import End
from conductor.engine.removal import Removal
from conductor.plans import OfVolumePlan, Place
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation
from conductor.store.servers import vmids
from conductor.store.transactions import Transaction
from conductor.store.volumes import snapshots, volumes
from conductor.volumes import remove_volume
from conductor.volumes.snapshots import closed
from conductor.volumes.snapshots.snapshot_command import SnapshotCommand, SnapshotWork, snap

#: statuses of volumes in whose holders something is done
_CHANGING = (
    *(VolumeStatus.EXTENDING, VolumeStatus.REVERTING),
    *(VolumeStatus.RETYPING, VolumeStatus.UPLOADING, VolumeStatus.BACKING_UP),
)


def begin(
    connection: Transaction, cloud: Cloud, ctxt: RequestContext, row: Any, volume: Any
) -> None:
    """Write the removal of a snapshot that is locked, with its volume. Raises Invalid."""
    if row.status not in DELETABLE_SNAPSHOTS:
        names = " or ".join(sorted(DELETABLE_SNAPSHOTS))
        raise Invalid(
            f"Invalid snapshot: Snapshot status must be {names}, and the snapshot must not be "
            f"part of a group; it is {row.status}."
        )
    if volume.status in _CHANGING:
        raise Invalid(f"Invalid volume: Volume {volume.id} is {volume.status}.")
    snapshots.require_uncopied(connection, row)
    if row.snapname is not None:
        closed.require(connection, volume)
    was_made = row.vmid is not None or row.snapname is not None
    if not was_made:
        # A copy that left nothing.
        snapshots.delete(connection, row.id)
        return
    snapshots.change(connection, row.id, status=SnapshotStatus.DELETING)
    if ledger.open_of(connection, row.id, ResourceType.SNAPSHOT):
        # The operation that removes what was left of it deletes its record, too.
        return
    of_copy = row.snapname is None
    where = Place(
        *(row.host, None, row.cluster, row.node, row.vmid)
        if of_copy
        else (volume.host, None, volume.cluster, volume.node, volume.vmid)
    )
    command: Command = RemoveVolume(volid=row.volid)
    if not of_copy:
        command = snap(SnapshotVerb.REMOVE, volume, row.snapname)
    plan = OfVolumePlan(where, command, row.volume_id)
    _begin(connection, cloud, ctxt, row.id, row.project_id, plan)


def begin_again(connection: Transaction, cloud: Cloud, operation: Operation) -> None:
    """Write the removal of what an operation left of its snapshot."""
    plan = operation.planned(OfVolumePlan)
    if isinstance(plan.command, SnapVolume):
        plan = plan.with_fields(verb=SnapshotVerb.REMOVE)
    else:
        plan = dataclasses.replace(plan, command=RemoveVolume())
    project = str(operation.project_id)
    _begin(connection, cloud, internal(), operation.resource_id, project, plan)


def _begin(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    snapshot_id: str,
    project_id: str,
    plan: OfVolumePlan,
) -> None:
    resource = (ResourceType.SNAPSHOT, snapshot_id)
    item = start.new(cloud, VolumeAction.DELETE_SNAPSHOT, resource, project_id, plan)
    start.begin_later(connection, ctxt, item)


class RemoveSnapshotFlow(Removal[SnapshotWork], SnapshotCommand):
    """The flow of ``VolumeAction.DELETE_SNAPSHOT``."""

    stage = "remove"
    unseen = "The snapshot was not seen gone."

    def lock(self, connection: Transaction, task: SnapshotWork) -> Any:
        """Lock the volume, then the snapshot; return both rows. None: it is gone."""
        volume = volumes.held(connection, task.plan.volume_id)
        return volume, snapshots.held(connection, task.operation.resource_id)

    def write_done(self, connection: Transaction, end: End[SnapshotWork, Removed]) -> None:
        """Forget it, and remove a deleted volume with its last one."""
        plan, (volume, row) = end.task.plan, end.row
        if isinstance(plan.command, RemoveVolume):
            vmids.free(connection, str(plan.target.cluster), int(plan.target.vmid or 0))
        if row is None:
            return
        if row.status == SnapshotStatus.DELETING:
            snapshots.delete(connection, row.id)
        else:
            # In error, and nothing of it is left.
            snapshots.change(connection, row.id, vmid=None, volid=None, snapname=None)
        if volume is not None:
            remove_volume.after_snapshots(connection, self._cloud, volume)

    def write_failed(self, connection: Transaction, end: End[SnapshotWork, Removed]) -> None:
        """Show why it is still there, on its volume as well if that is to be removed."""
        (volume, row), fault = end.row, end.failure.message
        if row is not None and row.status == SnapshotStatus.DELETING:
            values = {"status": SnapshotStatus.ERROR_DELETING, "fault": fault}
            snapshots.change(connection, row.id, **values)
        if volume is not None and volume.status == VolumeStatus.DELETING:
            values = {"status": VolumeStatus.ERROR_DELETING, "fault": fault}
            volumes.change(connection, volume.id, **values)
