"""Brings volumes back to their last snapshot."""

from __future__ import annotations

from typing import Any

from common.context import RequestContext
from common.errors import Conflict, Invalid, SnapshotNotFound
from common.messages.commands import SnapshotVerb
from common.messages.reports import Removed
from common.resources.states import ResourceType
from common.resources.volumes import SnapshotStatus, SnapshotWay, VolumeAction
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.command_end import End
from conductor.plans import OfVolumePlan
from conductor.store.records import Operation
from conductor.store.transactions import Transaction
from conductor.store.volumes import snapshots, volumes
from conductor.volumes import remove_volume, status_rules
from conductor.volumes.snapshots import park_volume
from conductor.volumes.snapshots.snapshot_command import SnapshotCommand, SnapshotWork, snap


def begin(
    connection: Transaction, cloud: Cloud, ctxt: RequestContext, row: Any, snapshot_id: str
) -> Operation:
    """Write the operation that brings a volume that is locked back, for ``cloud.start``.

    Raises Invalid, SnapshotNotFound; Conflict for a status that it may not begin in.
    """
    found = snapshots.of_volume(connection, row.id)
    if not found:
        raise Invalid(f"Volume {row.id} has no snapshots.")
    last = found[0]
    if last.project_id != row.project_id and not ctxt.is_admin:
        # It stayed with the project that the volume was transferred from.
        raise SnapshotNotFound(f"Snapshot {snapshot_id} could not be found.")
    if last.id != snapshot_id:
        raise Invalid(
            f"Specified snapshot ID {snapshot_id} is not the latest one of volume {row.id}."
        )
    if last.size_gib != row.size_gib:
        raise Invalid(
            f"Invalid volume: Volume {row.id} has {row.size_gib} GiB by now, and had "
            f"{last.size_gib} GiB at its snapshot."
        )
    if last.status != SnapshotStatus.AVAILABLE:
        raise Conflict(f"Invalid snapshot: Snapshot {last.id} is {last.status}.")
    if last.snapname is None or row.snapshot_way == SnapshotWay.COPY:
        raise Invalid(
            f"Invalid snapshot: Snapshots on storage {row.storage} are copies: make a volume of "
            "the snapshot instead."
        )
    try:
        status_rules.begin(connection, row, VolumeAction.REVERT)
    except Invalid as error:
        raise Conflict(error.message) from error
    command = snap(SnapshotVerb.REVERT, row, last.snapname)
    plan = OfVolumePlan(remove_volume.place_of(row), command, row.id)
    resource = (ResourceType.VOLUME, row.id)
    item = start.new(cloud, VolumeAction.REVERT, resource, row.project_id, plan)
    return start.begin_now(connection, cloud, ctxt, item)


class RevertVolumeFlow(SnapshotCommand):
    """The flow of ``VolumeAction.REVERT``. It may run twice."""

    stage = "revert"
    unseen = "The volume was not seen reverted."
    late = "The volume was not reverted in time."

    def lock(self, connection: Transaction, task: SnapshotWork) -> Any:
        """Lock the volume."""
        return volumes.held(connection, task.operation.resource_id)

    def write_done(self, connection: Transaction, end: End[SnapshotWork, Removed]) -> None:
        """Set the volume to available."""
        if end.row is not None:
            volumes.end(connection, end.row, VolumeAction.REVERT, ok=True)

    def write_failed(self, connection: Transaction, end: End[SnapshotWork, Removed]) -> None:
        """Set the volume to error, and have it parked."""
        if end.row is not None:
            values = {"fault": end.failure.message}
            volumes.end(connection, end.row, VolumeAction.REVERT, ok=False, **values)
            park_volume.begin(connection, self._cloud, end.operation.ctxt, end.row)
