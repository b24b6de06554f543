"""Removes volumes with their holders; repeated until both are confirmed absent.

What was left of a volume that couldn't be made is removed alike, but not its record.
"""

from __future__ import annotations

from typing import Any

from common.context import RequestContext, internal
from common.messages.commands import RemoveVolume, VolumeUser
from common.messages.reports import Category, Failure, Removed
from common.resources.states import ResourceType
from common.resources.volumes import VolumeAction, VolumeStatus
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.command_end import End
from conductor.engine.removal import MOST_TRIES, Removal
from conductor.plans import Place, VolumePlan
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation
from conductor.store.servers import vmids
from conductor.store.transactions import Transaction
from conductor.store.volumes import volumes
from conductor.volumes.volume_command import VolumeCommand, VolumeWork


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
    now: bool = False,
) -> Operation:
    """Write the removal of a volume that is locked, due at once.

    ``gone``: the record is deleted, too. ``now``: for ``cloud.start`` after the commit.
    """
    plan = VolumePlan(where, RemoveVolume(volid=row.volid))
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
    plan = VolumePlan(where, RemoveVolume(volid=volid, users=users))
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
    resource = (ResourceType.VOLUME, volume_id)
    item = start.new(cloud, VolumeAction.DELETE, resource, project_id, plan)
    if now:
        return start.begin_now(connection, cloud, ctxt, item)
    return start.begin_later(connection, ctxt, item)


def after_snapshots(connection: Transaction, cloud: Cloud, volume: Any) -> None:
    """Begin the removal of a volume that is locked, once it is to go and has no snapshot left."""
    if volume.status != VolumeStatus.DELETING or volumes.has_snapshots(connection, volume.id):
        return
    if not ledger.open_of(connection, volume.id, ResourceType.VOLUME):
        where = place_of(volume)
        begin(connection, cloud, internal(), volume, where)


class RemoveVolumeFlow(Removal[VolumeWork], VolumeCommand[Removed]):
    """The flow of ``VolumeAction.DELETE``."""

    stage = "remove"
    unseen = "The volume was not seen gone."
    wakes = False

    def command(self, task: VolumeWork) -> RemoveVolume:
        """Return what removes it."""
        users = (*last_users(task.volume), *task.operation.ordered(RemoveVolume).users)
        return self.planned(task, RemoveVolume, users=users)

    def is_hopeless(self, task: VolumeWork, failure: Failure) -> bool:
        """Return whether another try can't help: servers may name its disk for a while yet."""
        users = task.operation.ordered(RemoveVolume).users
        used = failure.category is Category.PROTECTED and users
        return task.operation.attempt >= MOST_TRIES if used else super().is_hopeless(task, failure)

    def write_done(self, connection: Transaction, end: End[VolumeWork, Removed]) -> None:
        """Free the VMID of a deleted volume, and delete its record."""
        row, target = end.row, end.operation.plan.target
        vmids.free(connection, str(target.cluster), int(target.vmid or 0))
        if row is not None and row.vmid == target.vmid:
            if row.status == VolumeStatus.DELETING:
                volumes.delete(connection, row.id)
            else:
                volumes.change(connection, row.id, vmid=None, volid=None)
        self._go_on(connection, end)

    def write_failed(self, connection: Transaction, end: End[VolumeWork, Removed]) -> None:
        """Show on the volume why its holder is still there."""
        row = end.row
        if row is not None and row.vmid == end.operation.plan.target.vmid:
            fault = end.failure.message
            volumes.end(connection, row, VolumeAction.DELETE, ok=False, fault=fault)
        self._go_on(connection, end)

    def _go_on(self, connection: Transaction, end: End[VolumeWork, Removed]) -> None:
        """Begin to remove a volume that was deleted while another holder of it was removed."""
        if end.row is not None and end.row.vmid != end.operation.plan.target.vmid:
            after_snapshots(connection, self._cloud, end.row)
            self.wake_after(connection)


def last_users(row: Any | None) -> tuple[VolumeUser, ...]:
    """Return the server that had a volume last, which may name its disk; none: empty."""
    had = None if row is None else row.last_user
    return () if had is None else (VolumeUser(had["server_uuid"], had["node"], had["vmid"]),)
