"""Brings volumes back to their last snapshot."""

from __future__ import annotations

from typing import Any

from common import clock
from common.context import RequestContext
from common.errors import Conflict, Invalid, SnapshotNotFound
from common.log import logger
from common.messages.commands import SnapshotVerb
from common.messages.reports import Category, Failure, Outcome
from common.states import OperationState, ResourceType
from common.volumes import SnapshotStatus, SnapshotWay, VolumeAction
from conductor.cloud import Cloud
from conductor.engine import begins, ends
from conductor.engine.stages import Stage, Table
from conductor.plans import VolumeSnapshotPlan
from conductor.store import operations as ledger
from conductor.store.operations import Operation
from conductor.store.transactions import Transaction
from conductor.store.volumes import records, snapshots
from conductor.volumes import beginning, park_volume, remove_volume
from conductor.volumes.snapshots.load import SnapshotWork, load

LOG = logger(__name__)


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
        beginning.begin(connection, row, VolumeAction.REVERT)
    except Invalid as error:
        raise Conflict(error.message) from error
    plan = VolumeSnapshotPlan(
        remove_volume.place_of(row),
        volume_id=row.id,
        storage=row.storage,
        size_gib=row.size_gib,
        volid=row.volid,
        snapname=last.snapname,
        way=str(row.snapshot_way or ""),
    )
    item = begins.new(
        cloud,
        VolumeAction.REVERT,
        row.id,
        row.project_id,
        resource_type=ResourceType.VOLUME,
        plan=plan,
    )
    return begins.begin_now(connection, cloud, ctxt, item)


class RevertVolumeFlow:
    """The flow of ``VolumeAction.REVERT``. It may run twice."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[SnapshotWork]:
        """Return the one stage: an agent brings it back."""
        stage = Stage("revert", self._send, self._heard)
        return Table((stage,), lost=None, late=self._late, owns=False, load=load)

    def _late(self, task: SnapshotWork) -> None:
        self._fail(task, Failure(Category.TASK_TIMEOUT, "The volume was not reverted in time."))

    def _send(self, task: SnapshotWork) -> None:
        operation = task.operation
        worker = self._cloud.take_to(operation, task.place.host)
        if worker is None:
            text = f"The agent of host {task.place.host} does not answer."
            self._failed(task, Failure(Category.NODE_UNHEALTHY, text))
            return
        deadline = operation.deadline or clock.utcnow()
        command = task.command(SnapshotVerb.REVERT, deadline)
        self._cloud.compute.execute(operation.ctxt, worker, command)

    def _heard(self, task: SnapshotWork, outcome: Outcome) -> None:
        if not outcome.ok:
            unknown = Failure(Category.UNKNOWN_OUTCOME, "The volume was not seen reverted.")
            self._failed(task, outcome.failure or unknown)
            return
        self._cloud.store.run(lambda c: self._end(c, task.operation, None))
        LOG.info("Volume %s is reverted.", task.operation.resource_id)

    def _failed(self, task: SnapshotWork, failure: Failure) -> None:
        if not ends.waits(self._cloud, task.operation, failure):
            self._fail(task, failure)

    def _fail(self, task: SnapshotWork, failure: Failure) -> None:
        LOG.warning("Volume %s: %s", task.operation.resource_id, failure.message)
        self._cloud.store.run(lambda c: self._end(c, task.operation, failure))
        self._cloud.wake()

    def _end(self, connection: Transaction, operation: Operation, failure: Failure | None) -> None:
        row = records.held(connection, operation.resource_id)
        if ends.has_ended(connection, operation):
            return
        if failure is None:
            ledger.close(connection, operation.id, OperationState.DONE)
        else:
            ends.close_failed(connection, operation, failure)
        if row is not None:
            values = {} if failure is None else {"fault": failure.message}
            records.end(connection, row, VolumeAction.REVERT, ok=failure is None, **values)
            if failure is not None:
                park_volume.begin(connection, self._cloud, operation.ctxt, row)
