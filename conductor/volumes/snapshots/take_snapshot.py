"""Takes snapshots: of the holder, where its storage can; else as a copy with its own holder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.context import RequestContext
from common.errors import Invalid
from common.messages.commands import Command, MakeVolume, SnapshotVerb, VolumeSource
from common.messages.reports import Category, Failure, Removed, VolumeMade
from common.resources.states import ResourceType
from common.resources.volumes import (
    SnapshotStatus,
    SnapshotWay,
    VolumeAction,
    VolumeStatus,
    snapname,
    snapshot_description,
)
from conductor.cloud import Cloud
from conductor.engine import close, start
from conductor.engine.command_end import End
from conductor.plans import NOWHERE, OfVolumePlan, Place
from conductor.rpc.volumes.snapshots import NewVolumeSnapshot
from conductor.store.quotas import volume_quotas
from conductor.store.records import Operation
from conductor.store.servers import vmids
from conductor.store.servers.vmids import BandExhausted
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments, snapshots, types
from conductor.volumes import remove_volume, uncertain
from conductor.volumes.snapshots import closed, remove_snapshot
from conductor.volumes.snapshots.snapshot_command import SnapshotCommand, SnapshotWork, snap


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
    volume_quotas.take(connection, row.project_id, cloud.conf, wanted, name, 0)
    snapshot_id, way = snapshots.new_id(), _way(row)
    where, why, native = remove_volume.place_of(row), "", way != SnapshotWay.COPY
    if not native:
        try:
            vmid = vmids.reserve(connection, row.cluster, None, None)
            where = Place(row.host, None, row.cluster, row.node, vmid)
        except BandExhausted as error:
            where, why = NOWHERE, error.message
    name, source = snapname(snapshot_id) if native else None, VolumeSource(str(row.volid))
    command: Command = MakeVolume(
        name=new.name,
        size_gib=row.size_gib,
        storage=row.storage,
        source=source,
        project_id=row.project_id,
        user_id=str(ctxt.user_id or ""),
        snapshot_of=row.id,
    )
    if name is not None:
        about = snapshot_description(snapshot_id, str(ctxt.user_id or ""))
        command = snap(SnapshotVerb.TAKE, row, name, about)
    plan = OfVolumePlan(where, command, row.id)
    of_copy = {"vmid": where.vmid, "host": row.host, "cluster": row.cluster, "node": row.node}
    of_copy |= {"storage": row.storage, "shared": row.shared}
    snapshots.insert(
        connection,
        row,
        new,
        str(ctxt.user_id),
        snapshot_id,
        snapname=name,
        **({} if native else of_copy),
    )
    resource = (ResourceType.SNAPSHOT, snapshot_id)
    item = start.new(cloud, VolumeAction.TAKE_SNAPSHOT, resource, row.project_id, plan)
    operation = start.begin_now(connection, cloud, ctxt, item)
    if why:
        close.close_failed(connection, operation, Failure(Category.NO_VALID_HOST, why))
        snapshots.change(connection, snapshot_id, status=SnapshotStatus.ERROR, fault=why)
        return snapshot_id, None
    return snapshot_id, operation


def _way(row: Any) -> SnapshotWay:
    """Return how snapshots of a volume are made; by a copy, if no agent has determined it yet."""
    return SnapshotWay(row.snapshot_way or SnapshotWay.COPY)


def _require_status(connection: Transaction, row: Any, new: NewVolumeSnapshot) -> None:
    """Raise Invalid if the volume, or its server, doesn't allow a snapshot now."""
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


class TakeSnapshotFlow(SnapshotCommand):
    """The flow of ``VolumeAction.TAKE_SNAPSHOT``."""

    stage = "take"
    unseen = "The snapshot was not seen there."
    late = "The snapshot was not taken in time."

    def unwanted(self, task: SnapshotWork) -> str | None:
        """Return that the volume is deleted."""
        deleted = task.volume is None or task.snapshot is None
        return "The volume was deleted." if deleted else None

    def lock(self, connection: Transaction, task: SnapshotWork) -> Any:
        """Lock the snapshot, and return its row; None: it is gone."""
        return snapshots.held(connection, task.operation.resource_id)

    def write_done(self, connection: Transaction, end: End[SnapshotWork, Removed]) -> None:
        """Set the snapshot to available."""
        row, made = end.row, end.outcome.volume if isinstance(end.outcome, VolumeMade) else None
        if row is not None and row.status == SnapshotStatus.CREATING:
            volid = None if made is None else made.volid
            status = SnapshotStatus.AVAILABLE
            snapshots.change(connection, row.id, status=status, volid=volid)

    def write_failed(self, connection: Transaction, end: End[SnapshotWork, Removed]) -> None:
        """Set the snapshot to error. What may be left is removed now: a copy, or what is in the
        volume's holder, which rests afterwards.
        """
        row = end.row
        if row is None:
            return
        fault = end.failure.message
        snapshots.change(connection, row.id, status=SnapshotStatus.ERROR, fault=fault)
        if row.snapname is not None or not end.outcome.gone:
            remove_snapshot.begin_again(connection, self._cloud, end.operation)
        elif row.vmid is not None:
            vmids.free(connection, str(row.cluster), int(row.vmid))
            snapshots.change(connection, row.id, vmid=None)

    def uncertain(self) -> Callable[[Transaction, SnapshotWork], None]:
        """Set the snapshot to error."""
        return uncertain.snapshot
