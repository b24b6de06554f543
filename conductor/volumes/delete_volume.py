"""Begins the deletion of a volume that nothing has: for its user, or for the group whose it is."""

from __future__ import annotations

from typing import Any

from common.context import RequestContext
from common.errors import Invalid
from common.resources.states import ResourceType
from common.resources.volumes import RULES, VolumeAction, VolumeStatus
from conductor.cloud import Cloud
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments, snapshots, volumes
from conductor.volumes import remove_volume
from conductor.volumes.snapshots import remove_snapshot


def begin(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    row: Any,
    *,
    force: bool = False,
    cascade: bool = False,
    now: bool = True,
) -> Operation | None:
    """Begin to delete a volume that is locked; return what is to be started after the commit.

    ``now``: as in ``remove_volume.begin``. None: its record is deleted, or what is under way ends
    with it. Raises Invalid.
    """
    _require_free(ctxt, connection, row, force=force, cascade=cascade)
    snapshots.require_alone(connection, row)
    for one in snapshots.of_volume(connection, row.id):
        # The removal of the last snapshot begins that of the volume.
        volumes.change(connection, row.id, status=VolumeStatus.DELETING)
        remove_snapshot.begin(connection, cloud, ctxt, one, row)
    if volumes.has_snapshots(connection, row.id):
        return None
    if row.vmid is None:
        volumes.delete(connection, row.id)
        return None
    volumes.change(connection, row.id, status=VolumeStatus.DELETING)
    # An open create or cleanup operation reads the status at its end and removes the volume then.
    if ledger.open_of(connection, row.id, ResourceType.VOLUME):
        return None
    where = remove_volume.place_of(row)
    return remove_volume.begin(connection, cloud, ctxt, row, where, now=now)


def _require_free(
    ctxt: RequestContext, connection: Transaction, row: Any, *, force: bool, cascade: bool
) -> None:
    """Raise Invalid, in Cinder's words, unless the volume may be deleted."""
    may = set(RULES[VolumeAction.DELETE].begins)
    if force:
        may |= {VolumeStatus.CREATING, VolumeStatus.DOWNLOADING, VolumeStatus.RESERVED}
        may |= {VolumeStatus.RESTORING_BACKUP, VolumeStatus.ATTACHING}
        may |= {VolumeStatus.MAINTENANCE, VolumeStatus.AWAITING_TRANSFER}
    attached = attachments.of_volume(connection, row.id) is not None
    kept = volumes.has_snapshots(connection, row.id)
    if cascade:
        kept = not ctxt.is_admin and volumes.has_snapshots_of_others(connection, row)
    if row.status in may and not attached and not kept:
        return
    names = " or ".join(sorted(may))
    raise Invalid(
        f"Invalid volume: Volume status must be {names} and must not be migrating, attached, "
        "belong to a group, have snapshots, awaiting a transfer, or be disassociated from "
        "snapshots after volume transfer."
    )
