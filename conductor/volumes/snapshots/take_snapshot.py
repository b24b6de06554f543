"""Takes snapshots: of the holder, where its storage can; else as a copy with its own holder."""

from __future__ import annotations

from typing import Any

from common import clock
from common.context import RequestContext
from common.errors import Invalid
from common.log import logger
from common.messages.commands import MakeVolume, SnapshotVerb, VolumeSource
from common.messages.reports import Category, Failure, Outcome
from common.states import OperationState, ResourceType
from common.volumes import SnapshotStatus, SnapshotWay, VolumeAction, VolumeStatus, snapname
from conductor.cloud import Cloud
from conductor.engine import begins, ends
from conductor.engine.stages import Stage, Table
from conductor.plans import NOWHERE, Place, VolumeSnapshotPlan
from conductor.rpc.volume_snapshots import NewVolumeSnapshot
from conductor.store import operations as ledger
from conductor.store import vmids
from conductor.store.operations import Operation
from conductor.store.transactions import Transaction
from conductor.store.vmids import BandExhausted
from conductor.store.volumes import attachments, quota, snapshots, types
from conductor.volumes import remove_volume, uncertain
from conductor.volumes.snapshots import closed, remove_snapshot
from conductor.volumes.snapshots.load import SnapshotWork, load

LOG = logger(__name__)


def begin(
    connection: Transaction, cloud: Cloud, ctxt: RequestContext, row: Any, new: NewVolumeSnapshot
) -> tuple[str, Operation | None]:
    """Write a snapshot of a volume that is locked, with the operation that takes it.

    Return its id, and what is to be started. Raises Invalid, QuotaExceeded.
    """
    _require_status(connection, row, new)
    snapshots.require_alone(connection, row)
    type_ = None if row.type_id is None else types.get(connection, row.type_id)
    wanted = {"snapshots": 1, "gigabytes": row.size_gib}
    name = None if type_ is None else str(type_.name)
    quota.take(connection, row.project_id, cloud.conf, wanted, name, 0)
    snapshot_id, way = snapshots.new_id(), _way(row)
    where, why, native = remove_volume.place_of(row), "", way != SnapshotWay.COPY
    if not native:
        try:
            vmid = vmids.reserve(connection, row.cluster, None, None)
            where = Place(row.host, None, row.cluster, row.node, vmid)
        except BandExhausted as error:
            where, why = NOWHERE, error.message
    plan = VolumeSnapshotPlan(
        where,
        volume_id=row.id,
        storage=row.storage,
        size_gib=row.size_gib,
        volid=row.volid,
        snapname=snapname(snapshot_id) if native else None,
        way=way,
    )
    of_copy = {"vmid": where.vmid, "host": row.host, "cluster": row.cluster, "node": row.node}
    of_copy |= {"storage": row.storage, "shared": row.shared}
    snapshots.insert(
        connection,
        row,
        new,
        str(ctxt.user_id),
        snapshot_id,
        snapname=plan.snapname,
        **({} if native else of_copy),
    )
    item = begins.new(
        cloud,
        VolumeAction.TAKE_SNAPSHOT,
        snapshot_id,
        row.project_id,
        resource_type=ResourceType.SNAPSHOT,
        plan=plan,
    )
    operation = begins.begin_now(connection, cloud, ctxt, item)
    if why:
        ends.close_failed(connection, operation, Failure(Category.NO_VALID_HOST, why))
        snapshots.change(connection, snapshot_id, status=SnapshotStatus.ERROR, fault=why)
        return snapshot_id, None
    return snapshot_id, operation


def _way(row: Any) -> SnapshotWay:
    """Return how snapshots of a volume are made; one that nobody asked for can be copied."""
    return SnapshotWay(row.snapshot_way or SnapshotWay.COPY)


def _require_status(connection: Transaction, row: Any, new: NewVolumeSnapshot) -> None:
    """Raise Invalid where the volume, or the server that has it, doesn't allow a snapshot now."""
    may = [VolumeStatus.AVAILABLE, *([VolumeStatus.IN_USE] if new.in_use else [])]
    if row.status not in may:
        raise Invalid(
            f"Invalid volume: Volume {row.id} status must be {' or '.join(may)}, but current "
            f"status is: {row.status}."
        )
    if _way(row) == SnapshotWay.COPY and attachments.of_volume(connection, row.id) is not None:
        raise Invalid(
            f"Invalid volume: Snapshots on storage {row.storage} are copies: volume {row.id} must "
            "be detached from its server before."
        )
    closed.require(connection, row)


class TakeSnapshotFlow:
    """The flow of ``VolumeAction.TAKE_SNAPSHOT``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[SnapshotWork]:
        """Return the one stage: an agent takes it."""
        stage = Stage("take", self._send, self._heard)
        return Table(
            (stage,),
            lost=None,
            late=self._late,
            owns=False,
            load=load,
            uncertain=uncertain.snapshot,
        )

    def _late(self, task: SnapshotWork) -> None:
        text = "The snapshot was not taken in time."
        self._give_up(task, Failure(Category.TASK_TIMEOUT, text), gone=False)

    def _send(self, task: SnapshotWork) -> None:
        operation, plan = task.operation, task.plan
        if task.volume is None or task.snapshot is None:
            text = "The volume was deleted."
            self._give_up(task, Failure(Category.CREATION_FAILED, text), gone=False)
            return
        worker = self._cloud.take_to(operation, task.place.host)
        if worker is None:
            text = f"The agent of host {task.place.host} does not answer."
            failure = Failure(Category.NODE_UNHEALTHY, text, host=task.place.host)
            if not ends.waits(self._cloud, operation, failure):
                self._give_up(task, failure, gone=False)
            return
        deadline = operation.deadline or clock.utcnow()
        if plan.snapname is not None:
            command = task.command(SnapshotVerb.TAKE, deadline)
            self._cloud.compute.execute(operation.ctxt, worker, command)
            return
        copy = MakeVolume(
            operation.id,
            operation.attempt,
            operation.resource_id,
            task.place,
            deadline,
            name=task.snapshot.name,
            size_gib=plan.size_gib,
            storage=plan.storage,
            source=VolumeSource(str(plan.volid)),
            project_id=str(operation.project_id),
        )
        self._cloud.compute.execute(operation.ctxt, worker, copy)

    def _heard(self, task: SnapshotWork, outcome: Outcome) -> None:
        operation = task.operation
        if outcome.ok:
            made = None if outcome.volume is None else outcome.volume.volid
            self._cloud.store.run(lambda c: self._taken(c, operation, made))
            LOG.info("Snapshot %s is taken.", operation.resource_id)
            self._cloud.wake()
            return
        unknown = Failure(Category.UNKNOWN_OUTCOME, "The snapshot was not seen there.")
        failure = outcome.failure or unknown
        LOG.warning("Snapshot %s: %s", operation.resource_id, failure.message)
        if not ends.waits(self._cloud, operation, failure):
            self._give_up(task, failure, gone=outcome.gone)

    @staticmethod
    def _taken(connection: Transaction, operation: Operation, volid: str | None) -> None:
        row = snapshots.held(connection, operation.resource_id)
        if ends.has_ended(connection, operation):
            return
        ledger.close(connection, operation.id, OperationState.DONE)
        if row is not None and row.status == SnapshotStatus.CREATING:
            status = SnapshotStatus.AVAILABLE
            snapshots.change(connection, row.id, status=status, volid=volid)

    def _give_up(self, task: SnapshotWork, failure: Failure, *, gone: bool) -> None:
        """Have it be in error. What may be left of it is removed now: a copy, or what is in the
        volume's holder, which rests afterwards.
        """
        operation = task.operation

        def work(connection: Transaction) -> None:
            row = snapshots.held(connection, operation.resource_id)
            if ends.has_ended(connection, operation):
                return
            ends.close_failed(connection, operation, failure)
            if row is None:
                return
            fault = failure.message
            snapshots.change(connection, row.id, status=SnapshotStatus.ERROR, fault=fault)
            if row.snapname is not None or not gone:
                remove_snapshot.begin_again(connection, self._cloud, operation, gone=False)
            elif row.vmid is not None:
                vmids.free(connection, str(row.cluster), int(row.vmid))
                snapshots.change(connection, row.id, vmid=None)

        self._cloud.store.run(work)
        self._cloud.wake()
