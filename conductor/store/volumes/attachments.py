"""Which server has, or is to have, which volume. One volume has one attachment at the most."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from common import clock, ids
from common.volumes import AttachStatus
from db.schema import volume_attachments, volumes

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
) -> str:
    """Write an attachment of a volume that is locked; return its id."""
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
            created_at=clock.utcnow(),
        )
    )
    return attachment_id


def of_volume(connection: sa.Connection, volume_id: str) -> Any | None:
    """Return the attachment of a volume; None: no server has it."""
    query = sa.select(volume_attachments).where(_C.volume_id == volume_id)
    return connection.execute(query).first()


def of_server(connection: sa.Connection, server_uuid: str) -> list[Any]:
    """Return the attachments of a server with its volumes' volid and place, by slot."""
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
        )
        .join(volumes, volumes.c.id == _C.volume_id)
        .where(_C.server_uuid == server_uuid)
        .order_by(_C.slot)
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


def keep(connection: sa.Connection, volume_id: str, server_uuid: str, *, delete: bool) -> bool:
    """Set whether a volume goes with its server; return whether the server has it."""
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
