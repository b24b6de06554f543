"""Parks a volume's disk in its holder again after a failed operation on the volume.

The failed operation may have left the disk plugged into another VM, if its node did not answer;
the volume could then not be attached. Repeated until the disk is confirmed parked.
"""

from __future__ import annotations

from typing import Any

from common.context import RequestContext
from common.messages.commands import SnapshotVerb
from common.messages.reports import Removed
from common.resources.states import ResourceType
from common.resources.volumes import VolumeAction
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.command_end import End
from conductor.engine.removal import Removal
from conductor.plans import OfVolumePlan
from conductor.store.records import Operation
from conductor.store.transactions import Transaction
from conductor.store.volumes import volumes
from conductor.volumes import remove_volume
from conductor.volumes.snapshots.snapshot_command import SnapshotCommand, SnapshotWork, snap


def begin(connection: Transaction, cloud: Cloud, ctxt: RequestContext, row: Any) -> Operation:
    """Write the operation that parks a volume that is locked, due at once."""
    plan = OfVolumePlan(remove_volume.place_of(row), snap(SnapshotVerb.PARK, row), row.id)
    resource = (ResourceType.VOLUME, row.id)
    item = start.new(cloud, VolumeAction.PARK, resource, row.project_id, plan)
    return start.begin_later(connection, ctxt, item)


class ParkVolumeFlow(Removal[SnapshotWork], SnapshotCommand):
    """The flow of ``VolumeAction.PARK``, repeated as a removal is: from the VM that names it."""

    stage = "park"
    unseen = "The volume was not seen parked."

    def succeeded(self, task: SnapshotWork, outcome: Removed) -> bool:
        """Return whether it rests in its holder."""
        return outcome.ok

    def lock(self, connection: Transaction, task: SnapshotWork) -> Any:
        """Lock the volume."""
        return volumes.held(connection, task.operation.resource_id)

    def write_done(self, connection: Transaction, end: End[SnapshotWork, Removed]) -> None:
        """Begin to remove a volume that was deleted while it was parked."""
        if end.row is not None:
            remove_volume.after_snapshots(connection, self._cloud, end.row)

    def write_failed(self, connection: Transaction, end: End[SnapshotWork, Removed]) -> None:
        """Begin to remove a volume that was deleted while it was parked."""
        self.write_done(connection, end)
