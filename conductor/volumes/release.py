"""What becomes of the volumes of servers that are deleted, in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common.context import internal
from common.resources.states import ResourceType
from common.resources.volumes import VolumeStatus
from conductor.cloud import Cloud
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.records import Server
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments, volumes
from conductor.volumes import remove_volume

#: statuses of a volume that is attached
_ATTACHED = (
    *(VolumeStatus.ATTACHING, VolumeStatus.IN_USE, VolumeStatus.DETACHING),
    VolumeStatus.RESERVED,
    # A rebuild of the server gives it new content.
    VolumeStatus.DOWNLOADING,
)
#: statuses in which a volume with delete_on_termination is deleted with its server
_REMOVABLE = (
    *_ATTACHED,
    *(VolumeStatus.ERROR, VolumeStatus.ERROR_EXTENDING, VolumeStatus.EXTENDING),
)
_LOST = "Its server's record was deleted, but not its VM {}, which may use the volume."


def free_of_deleted(
    connection: Transaction, cloud: Cloud, server_uuids: Sequence[str], *, failed: bool = False
) -> bool:
    """Free the volumes of servers whose VMs were seen gone; return whether some are removed now.

    A volume that was made with a server is removed, unless the build has succeeded. ``failed``:
    the build has failed, and no other volume is removed. One query if there are none. The
    servers' rows must be locked before.
    """
    removed = False
    for one in attachments.of_servers(connection, server_uuids):
        row = volumes.held(connection, one.volume_id)
        attachments.delete(connection, one.volume_id, one.server_uuid)
        if row is None:
            continue
        if one.with_build:
            discard(connection, cloud, row)
            _end_wait(connection, one.server_uuid)
            removed = True
            continue
        deletes = one.delete_on_termination and not failed
        deletes = deletes and not volumes.has_snapshots(connection, row.id)
        values = {"previous_status": VolumeStatus.AVAILABLE, "last_user": None}
        deletes = deletes and row.status in _REMOVABLE
        if deletes or row.status in _ATTACHED:
            status = VolumeStatus.DELETING if deletes else VolumeStatus.AVAILABLE
            values = {"status": status, "previous_status": None, "last_user": None}
        volumes.change(connection, row.id, **values)
        # What extends or parks it removes it, by the status, when it ends.
        waits = row.status not in _ATTACHED
        if deletes and not (waits and ledger.open_of(connection, row.id, ResourceType.VOLUME)):
            where = remove_volume.place_of(row)
            remove_volume.begin(connection, cloud, internal(), row, where)
            removed = True
    return removed


def _end_wait(connection: Transaction, server_uuid: str) -> None:
    """End a build that waits for its volumes now: its server is deleted."""
    for operation in ledger.open_with(connection, server_uuid, "create"):
        leases.make_due(connection, operation.id)


def discard(connection: Transaction, cloud: Cloud, row: Any) -> None:
    """Remove a locked volume that was never attached; its record once the disk is seen gone."""
    working = ledger.open_of(connection, row.id, ResourceType.VOLUME)
    if row.vmid is None and not working:
        volumes.delete(connection, row.id)
        return
    volumes.change(connection, row.id, status=VolumeStatus.DELETING, previous_status=None)
    # An open create or cleanup operation reads the status at its end and deletes the record.
    if not working:
        where = remove_volume.place_of(row)
        remove_volume.begin(connection, cloud, internal(), row, where)


def set_error_of_abandoned(connection: Transaction, server: Server) -> None:
    """Set the volumes of a server to error whose record is deleted, but not its VM."""
    for one in attachments.of_servers(connection, [server.uuid]):
        row = volumes.held(connection, one.volume_id)
        attachments.delete(connection, one.volume_id, server.uuid)
        if row is not None:
            user = {"server_uuid": server.uuid, "node": server.node, "vmid": server.vmid}
            fault = _LOST.format(f"{server.vmid} on {server.node}")
            status = VolumeStatus.ERROR
            volumes.change(connection, row.id, status=status, fault=fault, last_user=user)
