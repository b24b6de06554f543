"""Removes volumes with their holders; repeated until both were seen gone.

What was left of a volume that couldn't be made is removed alike, and its record stays.
"""

from __future__ import annotations

from typing import Any

from common import clock
from common.context import RequestContext, internal
from common.log import logger
from common.messages.commands import RemoveVolume, VolumeUser
from common.messages.reports import Category, Failure, Outcome
from common.states import OperationState, ResourceType
from common.volumes import VolumeAction, VolumeStatus
from conductor.cloud import Cloud, backoff
from conductor.engine import begins, ends
from conductor.engine.stages import Stage, Table
from conductor.plans import Place, VolumePlan
from conductor.store import operations as ledger
from conductor.store import vmids
from conductor.store.operations import Operation
from conductor.store.transactions import Transaction
from conductor.store.volumes import records
from conductor.volumes import removing
from conductor.volumes.load import VolumeWork, load

LOG = logger(__name__)


def place_of(row: Any) -> Place:
    """Return where a volume's holder is."""
    return Place(row.host, None, row.cluster, row.node, row.vmid)


def begin(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    row: Any,
    where: Place,
    *,
    gone: bool,
    now: bool = False,
) -> Operation:
    """Write the removal of a volume that is locked, due at once.

    ``gone``: its record goes as well. ``now``: it is for ``cloud.start`` after the commit.
    """
    plan = VolumePlan(where, str(row.storage or ""), row.size_gib, volid=row.volid, gone=gone)
    return _begin(connection, cloud, ctxt, row.id, row.project_id, plan, now=now)


def begin_holder(
    connection: Transaction,
    cloud: Cloud,
    volume_id: str,
    project_id: str,
    where: Place,
    volid: str | None,
    users: tuple[VolumeUser, ...],
) -> Operation:
    """Write the removal of a holder that isn't the volume's, or isn't any more; due at once.

    ``users``: servers that may have named its disk.
    """
    plan = VolumePlan(where, volid=volid, users=users)
    return _begin(connection, cloud, internal(), volume_id, project_id, plan)


def _begin(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    volume_id: str,
    project_id: str,
    plan: VolumePlan,
    *,
    now: bool = False,
) -> Operation:
    item = begins.new(
        cloud,
        VolumeAction.DELETE,
        volume_id,
        project_id,
        resource_type=ResourceType.VOLUME,
        plan=plan,
    )
    if now:
        return begins.begin_now(connection, cloud, ctxt, item)
    return begins.begin_later(connection, ctxt, item)


def after_snapshots(connection: Transaction, cloud: Cloud, volume: Any) -> None:
    """Begin the removal of a volume that is locked, once it is to go and has no snapshot left."""
    if volume.status != VolumeStatus.DELETING or records.has_snapshots(connection, volume.id):
        return
    if not ledger.open_of(connection, volume.id, ResourceType.VOLUME):
        where = place_of(volume)
        begin(connection, cloud, internal(), volume, where, gone=True)


class RemoveVolumeFlow:
    """The flow of ``VolumeAction.DELETE``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[VolumeWork]:
        """Return the one stage: an agent removes the volume."""
        stage = Stage("remove", self._send, self._heard, final=True)
        return Table((stage,), lost=None, owns=False, load=load)

    def _send(self, task: VolumeWork) -> None:
        operation, plan = task.operation, task.operation.planned(VolumePlan)
        worker = self._cloud.take_to(operation, task.place.host)
        if worker is None:
            self._cloud.wait(operation, backoff(operation.attempt))
            return
        command = RemoveVolume(
            operation.id,
            operation.attempt,
            operation.resource_id,
            task.place,
            clock.after(self._cloud.conf.conductor.action_timeout_seconds),
            volid=plan.volid,
            users=_users(task),
        )
        self._cloud.compute.execute(operation.ctxt, worker, command)

    def _heard(self, task: VolumeWork, outcome: Outcome) -> None:
        operation = task.operation
        if outcome.gone:
            if self._cloud.store.run(lambda c: self._gone(c, operation)):
                self._cloud.wake()
            LOG.info("Volume %s is removed.", operation.resource_id)
            return
        unknown = Failure(Category.UNKNOWN_OUTCOME, "The volume was not seen gone.")
        failure = outcome.failure or unknown
        removing.again(
            self._cloud,
            operation,
            failure,
            lambda c: self._give_up(c, operation, failure),
            used=bool(operation.planned(VolumePlan).users),
        )

    def _gone(self, connection: Transaction, operation: Operation) -> bool:
        """Store it; return whether the removal of another holder has begun by that."""
        row = records.held(connection, operation.resource_id)
        if ends.has_ended(connection, operation):
            return False
        target = operation.plan.target
        vmids.free(connection, str(target.cluster), int(target.vmid or 0))
        if row is not None and row.vmid == target.vmid:
            if row.status == VolumeStatus.DELETING:
                records.delete(connection, row.id)
            else:
                records.change(connection, row.id, vmid=None, volid=None)
        ledger.close(connection, operation.id, OperationState.DONE)
        return self._go_on(connection, operation, row)

    def _give_up(self, connection: Transaction, operation: Operation, failure: Failure) -> None:
        row = records.held(connection, operation.resource_id)
        if ends.has_ended(connection, operation):
            return
        if row is not None and row.vmid == operation.plan.target.vmid:
            records.end(connection, row, VolumeAction.DELETE, ok=False, fault=failure.message)
        ends.close_failed(connection, operation, failure)
        self._go_on(connection, operation, row)

    def _go_on(self, connection: Transaction, operation: Operation, row: Any | None) -> bool:
        """Begin to remove a volume that was deleted while another holder of it was removed.

        Return whether there is one.
        """
        if row is None or row.vmid == operation.plan.target.vmid:
            return False
        after_snapshots(connection, self._cloud, row)
        return True


def _users(task: VolumeWork) -> tuple[VolumeUser, ...]:
    """Return the server that had it last, as the record says, and those that the plan has."""
    had = None if task.volume is None else task.volume.last_user
    last = () if had is None else (VolumeUser(had["server_uuid"], had["node"], had["vmid"]),)
    return (*last, *task.operation.planned(VolumePlan).users)
