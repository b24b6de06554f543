"""Images of servers and volumes: rows with an owner, and the templates that hold them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from common import clock
from common.messages.reports import CopiedDisk
from common.messages.scheduling import ImageHome
from conductor.rpc.servers.flavors import root_gib
from conductor.store.images import image_members, templates
from conductor.store.images.templates import Known
from conductor.store.records import Server
from conductor.store.servers.servers import OWN_ROOT
from db.schema import images, servers
from db.schema import templates as holding

QUEUED, SAVING, ACTIVE, DEACTIVATED = "queued", "saving", "active", "deactivated"

_GIB = 2**30
_C = images.c


def insert(
    connection: sa.Connection,
    image_id: str,
    name: str,
    project_id: str,
    server_uuid: str | None,
    properties: Mapping[str, str],
    least: tuple[int, int],
    **more: Any,
) -> None:
    """Write the image of a server, or of a volume, queued.

    ``least``: GiB of disk and MiB of memory it needs. ``more``: further columns.
    """
    now = clock.utcnow()
    values: dict[str, Any] = {
        "id": image_id,
        "name": name,
        "status": QUEUED,
        "size_bytes": 0,
        "disk_format": "qcow2",
        "min_disk_gib": least[0],
        "min_ram_mib": least[1],
        "properties": dict(properties),
        "locations": {},
        "project_id": project_id,
        "server_uuid": server_uuid,
        "created_at": now,
        "updated_at": now,
        **more,
    }
    connection.execute(images.insert(), [values])


def list_parked(connection: sa.Connection, image_id: str, server: Server) -> None:
    """Write the image that lists a shelved server, as in Nova; there is no data of it."""
    properties = {"image_type": "snapshot", "instance_uuid": server.uuid}
    if server.image_id is not None:
        properties["base_image_ref"] = server.image_id
    least = (root_gib(server.flavor), 0)
    name, owner = f"{server.name[:247]}-shelved", server.project_id
    insert(connection, image_id, name, owner, server.uuid, properties, least)
    connection.execute(images.update().where(_C.id == image_id).values(status=ACTIVE))


def list_volumes(
    connection: sa.Connection,
    image_id: str,
    name: str,
    project_id: str,
    properties: Mapping[str, str],
    least: tuple[int, int],
) -> None:
    """Write the image that lists the snapshots of a server's volumes: it has no data of its own.

    It isn't known as the server's, whose other images are copies of its disk.
    """
    now = clock.utcnow()
    connection.execute(
        images.insert().values(
            id=image_id,
            name=name,
            status=ACTIVE,
            size_bytes=0,
            disk_format="",
            container_format="",
            min_disk_gib=least[0],
            min_ram_mib=least[1],
            properties=dict(properties),
            locations={},
            project_id=project_id,
            created_at=now,
            updated_at=now,
        )
    )


def forget_parked(connection: sa.Connection, server_uuid: str) -> None:
    """Delete the image that lists a shelved server."""
    parked = _C.status.in_((ACTIVE, DEACTIVATED)) & _C.home.is_(None)
    query = sa.select(_C.id).where(_C.server_uuid == server_uuid, parked)
    for image_id in connection.execute(query).scalars().all():
        delete(connection, image_id)


def least_of(connection: sa.Connection, image_id: str | None) -> tuple[int, int]:
    """Return the GiB of disk and the MiB of memory that an image needs; 0 for a deleted image."""
    query = sa.select(_C.min_disk_gib, _C.min_ram_mib).where(_C.id == image_id)
    row = connection.execute(query).first()
    return (0, 0) if row is None else (int(row.min_disk_gib), int(row.min_ram_mib))


def save(connection: sa.Connection, image_id: str, home: ImageHome, vmid: int) -> bool:
    """Store where an image is being saved, with its template; return False if it was deleted."""
    changed = connection.execute(
        images.update()
        .where(_C.id == image_id)
        .values(
            status=SAVING,
            home=dataclasses.asdict(home),
            locations={home.cluster: f"{home.storage}:{vmid}"},
            updated_at=clock.utcnow(),
        )
    )
    connection.execute(
        holding.insert().values(
            cluster=home.cluster,
            node=home.node,
            storage=home.storage,
            image_id=image_id,
            vmid=vmid,
            created_at=clock.utcnow(),
        )
    )
    return changed.rowcount == 1


def activate(connection: sa.Connection, image_id: str, cluster: str, copied: CopiedDisk) -> bool:
    """Store that a saved image can be used; return False if it has been deleted."""
    size = copied.virtual_size_bytes
    changed = connection.execute(
        images.update()
        .where(_C.id == image_id, _C.status == SAVING)
        .values(
            status=ACTIVE,
            size_bytes=copied.size_bytes,
            virtual_size_bytes=size,
            disk_format=copied.disk_format,
            min_disk_gib=sa.case(
                (_C.min_disk_gib < -(-size // _GIB), -(-size // _GIB)), else_=_C.min_disk_gib
            ),
            locations={cluster: copied.volid},
            updated_at=clock.utcnow(),
        )
    )
    return changed.rowcount == 1


def delete(connection: sa.Connection, image_id: str) -> None:
    """Delete an image, protected or not."""
    image_members.forget(connection, image_id)
    connection.execute(images.delete().where(_C.id == image_id))


def backups(connection: sa.Connection, server_uuid: str, backup_type: str) -> Sequence[str]:
    """Return the backups of this type of a server that can be used, the newest first."""
    query = (
        sa.select(_C.id, _C.properties)
        .where(_C.server_uuid == server_uuid, _C.status == ACTIVE)
        .order_by(_C.created_at.desc(), _C.id.desc())
    )
    return [
        row.id
        for row in connection.execute(query)
        if row.properties.get("image_type") == "backup"
        and row.properties.get("backup_type") == backup_type
    ]


def template_of(connection: sa.Connection, image_id: str) -> Known | None:
    """Return the template that holds a server's image."""
    row = connection.execute(
        sa.select(holding.c.cluster, holding.c.vmid).where(holding.c.image_id == image_id)
    ).first()
    return None if row is None else templates.get(connection, row.cluster, row.vmid)


def has_servers(connection: sa.Connection, image_id: str) -> bool:
    """Return whether a server that lives has a disk of the image: it may be a linked clone."""
    query = sa.select(servers.c.id).where(
        servers.c.image_id == image_id, servers.c.deleted_at.is_(None), OWN_ROOT
    )
    return connection.execute(query.limit(1)).first() is not None
