"""Which server has, or is to have, which volume. One volume has one attachment at the most."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from common import clock, ids
from common.errors import Conflict
from common.resources.volumes import SLOTS, AttachStatus, VolumeStatus
from db.schema import volume_attachments, volume_types, volumes

_C = volume_attachments.c


def insert(
    connection: sa.Connection,
    volume_id: str,
    server_uuid: str,
    project_id: str,
    slot: int,
    *,
    mode: str = "rw",
    tag: str | None = None,
    delete_on_termination: bool = False,
    status: AttachStatus = AttachStatus.ATTACHING,
    with_build: bool = False,
) -> str:
    """Write an attachment of a volume that is locked; return its id.

    ``with_build``: the volume is made with the server, whose build has not ended.
    """
    attachment_id = ids.new_uuid()
    connection.execute(
        volume_attachments.insert().values(
            id=attachment_id,
            volume_id=volume_id,
            server_uuid=server_uuid,
            project_id=project_id,
            status=status,
            slot=slot,
            mode=mode,
            tag=tag,
            delete_on_termination=delete_on_termination,
            with_build=with_build,
            created_at=clock.utcnow(),
        )
    )
    return attachment_id


def of_volume(connection: sa.Connection, volume_id: str) -> Any | None:
    """Return the attachment of a volume; None: there is none."""
    query = sa.select(volume_attachments).where(_C.volume_id == volume_id)
    return connection.execute(query).first()


def of_server(connection: sa.Connection, server_uuid: str) -> list[Any]:
    """Return the attachments of a server with its volumes' volid and place, by slot."""
    return with_volumes(connection, [server_uuid])


def with_volumes(connection: sa.Connection, server_uuids: Collection[str]) -> list[Any]:
    """Return the attachments of several servers as ``of_server`` does.

    With what a volume that is not made yet shall be: ``image_id``, and ``of_type``, the storage of
    its type. ``status`` is the attachment's, ``volume_status`` the volume's.
    """
    query = (
        sa.select(
            volume_attachments,
            volumes.c.volid,
            volumes.c.cluster,
            volumes.c.node,
            volumes.c.host,
            volumes.c.storage,
            volumes.c.shared,
            volumes.c.vmid,
            volumes.c.size_gib,
            volumes.c.bootable,
            volumes.c.image_id,
            volumes.c.snapshot_id,
            volumes.c.image_metadata,
            volumes.c.status.label("volume_status"),
            sa.func.nullif(volume_types.c.storage, "").label("of_type"),
        )
        .select_from(
            volume_attachments.join(volumes, volumes.c.id == _C.volume_id).outerjoin(
                volume_types, volume_types.c.id == volumes.c.type_id
            )
        )
        .where(_C.server_uuid.in_(sorted(server_uuids)))
        .order_by(_C.server_uuid, _C.slot)
    )
    return list(connection.execute(query))


def set_status(
    connection: sa.Connection, volume_id: str, server_uuid: str, status: AttachStatus
) -> bool:
    """Set the status of a server's attachment; return whether there is one."""
    values: dict[str, Any] = {"status": status}
    if status == AttachStatus.ATTACHED:
        values["attached_at"] = sa.func.coalesce(_C.attached_at, clock.utcnow())
    mine = (_C.volume_id == volume_id) & (_C.server_uuid == server_uuid)
    return bool(
        connection.execute(volume_attachments.update().where(mine).values(**values)).rowcount
    )


def place(connection: sa.Connection, volume_id: str, server_uuid: str, slot: int) -> None:
    """Record the slot of a volume of a server, whose row is locked.

    Another volume recorded in that slot, which it has not got, gets this volume's former slot.
    """
    theirs = _C.server_uuid == server_uuid
    mine = theirs & (_C.volume_id == volume_id)
    former = connection.execute(sa.select(_C.slot).where(mine)).scalar()
    if former in (None, slot):
        return
    # No two may have one slot, not even between two statements.
    for which, where in ((_C.slot == slot, -1), (_C.volume_id == volume_id, slot)):
        connection.execute(volume_attachments.update().where(theirs, which).values(slot=where))
    there = theirs & (_C.slot == -1)
    connection.execute(volume_attachments.update().where(there).values(slot=former))


def make_room(connection: sa.Connection, server_uuid: str, slot: int) -> None:
    """Have a slot of a server, whose row is locked, for a volume that its VM has there.

    Another volume recorded in it, which the VM can't have there, gets a free slot. Raises
    Conflict if there is none.
    """
    mine = sa.select(_C.volume_id, _C.slot).where(_C.server_uuid == server_uuid)
    used = {row.slot: row.volume_id for row in connection.execute(mine)}
    if slot not in used:
        return
    free = next((one for one in SLOTS if one not in used), None)
    if free is None:
        raise Conflict(f"Server {server_uuid} has no free slot.")
    there = volume_attachments.update().where(_C.volume_id == used[slot])
    connection.execute(there.values(slot=free))


def built(connection: sa.Connection, server_uuids: Collection[str]) -> None:
    """Have servers that were built have their volumes: two statements, whatever their number."""
    theirs = _C.server_uuid.in_(sorted(server_uuids))
    attached = sa.select(_C.volume_id).where(theirs)
    now = clock.utcnow()
    connection.execute(
        volumes.update()
        .where(volumes.c.id.in_(attached), volumes.c.status == VolumeStatus.ATTACHING)
        .values(status=VolumeStatus.IN_USE, previous_status=None, updated_at=now)
    )
    connection.execute(
        volume_attachments.update()
        .where(theirs)
        .values(status=AttachStatus.ATTACHED, attached_at=now, with_build=False)
    )


def set_delete_on_termination(
    connection: sa.Connection, volume_id: str, server_uuid: str, *, delete: bool
) -> bool:
    """Set whether a volume is deleted with its server; return whether it is attached to it."""
    mine = (_C.volume_id == volume_id) & (_C.server_uuid == server_uuid)
    changed = volume_attachments.update().where(mine).values(delete_on_termination=delete)
    return bool(connection.execute(changed).rowcount)


def delete(connection: sa.Connection, volume_id: str, server_uuid: str) -> bool:
    """Forget that a server has a volume; return whether it was known."""
    mine = (_C.volume_id == volume_id) & (_C.server_uuid == server_uuid)
    return bool(connection.execute(volume_attachments.delete().where(mine)).rowcount)


def of_servers(connection: sa.Connection, server_uuids: Collection[str]) -> list[Any]:
    """Return the attachments of several servers, in the order in which volumes are locked."""
    query = sa.select(volume_attachments).where(_C.server_uuid.in_(sorted(server_uuids)))
    return list(connection.execute(query.order_by(_C.volume_id)))


def places(connection: sa.Connection, server_uuids: Collection[str]) -> list[Any]:
    """Return, of the volumes of several servers, whose each is and where it is."""
    query = (
        sa.select(
            _C.server_uuid,
            _C.volume_id,
            _C.slot,
            volumes.c.cluster,
            volumes.c.node,
            volumes.c.storage,
            volumes.c.shared,
        )
        .join(volumes, volumes.c.id == _C.volume_id)
        .where(_C.server_uuid.in_(sorted(server_uuids)))
        .order_by(_C.server_uuid, _C.slot)
    )
    return list(connection.execute(query))
