"""Has a volume rest in its holder again, after something that was done to it has failed.

Whoever fails may have left the disk plugged in, where its node did not answer: then nobody could
attach the volume. Repeated until it is seen parked.
"""

from __future__ import annotations

from typing import Any

from common import clock
from common.context import RequestContext
from common.log import logger
from common.messages.commands import SnapshotVerb
from common.messages.reports import Category, Failure, Outcome
from common.states import OperationState, ResourceType
from common.volumes import VolumeAction
from conductor.cloud import Cloud, backoff
from conductor.engine import begins, ends
from conductor.engine.stages import Stage, Table
from conductor.plans import VolumeSnapshotPlan
from conductor.store import operations as ledger
from conductor.store.operations import Operation
from conductor.store.transactions import Transaction
from conductor.store.volumes import records
from conductor.volumes import remove_volume, removing
from conductor.volumes.snapshots.load import SnapshotWork, load

LOG = logger(__name__)


def begin(connection: Transaction, cloud: Cloud, ctxt: RequestContext, row: Any) -> Operation:
    """Write the operation that parks a volume that is locked, due at once."""
    plan = VolumeSnapshotPlan(
        remove_volume.place_of(row),
        volume_id=row.id,
        storage=str(row.storage or ""),
        size_gib=row.size_gib,
        volid=row.volid,
        way=str(row.snapshot_way or ""),
    )
    item = begins.new(
        cloud,
        VolumeAction.PARK,
        row.id,
        row.project_id,
        resource_type=ResourceType.VOLUME,
        plan=plan,
    )
    return begins.begin_later(connection, ctxt, item)


class ParkVolumeFlow:
    """The flow of ``VolumeAction.PARK``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[SnapshotWork]:
        """Return the one stage: an agent parks it."""
        stage = Stage("park", self._send, self._heard, final=True)
        return Table((stage,), lost=None, owns=False, load=load)

    def _send(self, task: SnapshotWork) -> None:
        operation = task.operation
        worker = self._cloud.take_to(operation, task.place.host)
        if worker is None:
            self._cloud.wait(operation, backoff(operation.attempt))
            return
        deadline = clock.after(self._cloud.conf.conductor.action_timeout_seconds)
        command = task.command(SnapshotVerb.PARK, deadline)
        self._cloud.compute.execute(operation.ctxt, worker, command)

    def _heard(self, task: SnapshotWork, outcome: Outcome) -> None:
        operation = task.operation
        if outcome.ok:
            self._cloud.store.run(lambda c: self._end(c, operation, None))
            self._cloud.wake()
            LOG.info("Volume %s rests in its holder.", operation.resource_id)
            return
        unknown = Failure(Category.UNKNOWN_OUTCOME, "The volume was not seen parked.")
        failure = outcome.failure or unknown
        removing.again(self._cloud, operation, failure, lambda c: self._end(c, operation, failure))

    def _end(self, connection: Transaction, operation: Operation, failure: Failure | None) -> None:
        row = records.held(connection, operation.resource_id)
        if ends.has_ended(connection, operation):
            return
        if failure is None:
            ledger.close(connection, operation.id, OperationState.DONE)
        else:
            ends.close_failed(connection, operation, failure)
        if row is not None:
            # It was deleted meanwhile.
            remove_volume.after_snapshots(connection, self._cloud, row)
