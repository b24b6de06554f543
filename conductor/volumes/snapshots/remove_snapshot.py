"""Removes snapshots; repeated until they were seen gone. The last one lets its volume go."""

from __future__ import annotations

import dataclasses
from typing import Any

from common import clock
from common.context import RequestContext, internal
from common.errors import Invalid
from common.messages.commands import RemoveVolume, SnapshotVerb
from common.messages.reports import Category, Failure, Outcome
from common.states import OperationState, ResourceType
from common.volumes import DELETABLE_SNAPSHOTS, SnapshotStatus, VolumeAction, VolumeStatus
from conductor.cloud import Cloud, backoff
from conductor.engine import begins, ends
from conductor.engine.stages import Stage, Table
from conductor.plans import Place, VolumeSnapshotPlan
from conductor.store import operations as ledger
from conductor.store import vmids
from conductor.store.operations import Operation
from conductor.store.transactions import Transaction
from conductor.store.volumes import records, snapshots
from conductor.volumes import remove_volume, removing
from conductor.volumes.snapshots import closed
from conductor.volumes.snapshots.load import SnapshotWork, load

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
        # A copy of which nothing is left.
        snapshots.delete(connection, row.id)
        return
    snapshots.change(connection, row.id, status=SnapshotStatus.DELETING)
    if ledger.open_of(connection, row.id, ResourceType.SNAPSHOT):
        # What was left of it is being removed; its record goes with that.
        return
    of_copy = row.snapname is None
    where = Place(
        *(row.host, None, row.cluster, row.node, row.vmid)
        if of_copy
        else (volume.host, None, volume.cluster, volume.node, volume.vmid)
    )
    plan = VolumeSnapshotPlan(
        where,
        volume_id=row.volume_id,
        storage=str(row.storage if of_copy else volume.storage),
        size_gib=row.size_gib,
        volid=row.volid if of_copy else volume.volid,
        snapname=row.snapname,
        way=str(volume.snapshot_way or ""),
    )
    _begin(connection, cloud, ctxt, row.id, row.project_id, plan)


def begin_again(
    connection: Transaction, cloud: Cloud, operation: Operation, *, gone: bool
) -> None:
    """Write the removal of what an operation left of its snapshot; ``gone``: its record, too."""
    plan = operation.planned(VolumeSnapshotPlan)
    volid = plan.volid if plan.snapname is not None else None
    plan = dataclasses.replace(plan, volid=volid, gone=gone)
    project = str(operation.project_id)
    _begin(connection, cloud, internal(), operation.resource_id, project, plan)


def _begin(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    snapshot_id: str,
    project_id: str,
    plan: VolumeSnapshotPlan,
) -> None:
    item = begins.new(
        cloud,
        VolumeAction.DELETE_SNAPSHOT,
        snapshot_id,
        project_id,
        resource_type=ResourceType.SNAPSHOT,
        plan=plan,
    )
    begins.begin_later(connection, ctxt, item)


class RemoveSnapshotFlow:
    """The flow of ``VolumeAction.DELETE_SNAPSHOT``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[SnapshotWork]:
        """Return the one stage: an agent removes it."""
        stage = Stage("remove", self._send, self._heard, final=True)
        return Table((stage,), lost=None, owns=False, load=load)

    def _send(self, task: SnapshotWork) -> None:
        operation, plan = task.operation, task.plan
        worker = self._cloud.take_to(operation, task.place.host)
        if worker is None:
            self._cloud.wait(operation, backoff(operation.attempt))
            return
        deadline = clock.after(self._cloud.conf.conductor.action_timeout_seconds)
        if plan.snapname is not None:
            command = task.command(SnapshotVerb.REMOVE, deadline)
            self._cloud.compute.execute(operation.ctxt, worker, command)
            return
        copy = RemoveVolume(
            operation.id,
            operation.attempt,
            operation.resource_id,
            task.place,
            deadline,
            volid=plan.volid,
        )
        self._cloud.compute.execute(operation.ctxt, worker, copy)

    def _heard(self, task: SnapshotWork, outcome: Outcome) -> None:
        operation, native = task.operation, task.plan.snapname is not None
        if outcome.gone or (native and outcome.ok):
            self._cloud.store.run(lambda c: self._gone(c, operation))
            self._cloud.wake()
            return
        unknown = Failure(Category.UNKNOWN_OUTCOME, "The snapshot was not seen gone.")
        failure = outcome.failure or unknown
        removing.again(self._cloud, operation, failure, lambda c: self._give_up(c, task, failure))

    def _gone(self, connection: Transaction, operation: Operation) -> None:
        plan = operation.planned(VolumeSnapshotPlan)
        volume = records.held(connection, plan.volume_id)
        row = snapshots.held(connection, operation.resource_id)
        if ends.has_ended(connection, operation):
            return
        if plan.snapname is None:
            vmids.free(connection, str(plan.target.cluster), int(plan.target.vmid or 0))
        ledger.close(connection, operation.id, OperationState.DONE)
        if row is None:
            return
        if row.status == SnapshotStatus.DELETING:
            snapshots.delete(connection, row.id)
        else:
            # In error, and nothing of it is left.
            snapshots.change(connection, row.id, vmid=None, volid=None, snapname=None)
        if volume is not None:
            remove_volume.after_snapshots(connection, self._cloud, volume)

    @staticmethod
    def _give_up(connection: Transaction, task: SnapshotWork, failure: Failure) -> None:
        operation = task.operation
        volume = records.held(connection, task.plan.volume_id)
        row = snapshots.held(connection, operation.resource_id)
        if ends.has_ended(connection, operation):
            return
        ends.close_failed(connection, operation, failure)
        if row is not None and row.status == SnapshotStatus.DELETING:
            values = {"status": SnapshotStatus.ERROR_DELETING, "fault": failure.message}
            snapshots.change(connection, row.id, **values)
        if volume is not None and volume.status == VolumeStatus.DELETING:
            values = {"status": VolumeStatus.ERROR_DELETING, "fault": failure.message}
            records.change(connection, volume.id, **values)
