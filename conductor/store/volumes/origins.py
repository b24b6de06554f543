"""What new volumes are copied from, as the records have it."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from db.reads.images import images
from db.reads.images.images import Image
from db.schema import images as table
from db.schema import servers


def server(connection: sa.Connection, server_uuid: str, project_id: str) -> Any | None:
    """Return (host) of a server of the project; None: there is no such server."""
    mine = (servers.c.uuid == server_uuid) & (servers.c.project_id == project_id)
    query = sa.select(servers.c.host).where(mine, servers.c.deleted_at.is_(None))
    return connection.execute(query).first()


def image(connection: sa.Connection, image_id: str, project_id: str) -> Image | None:
    """Return an image that the project sees."""
    return images.get(connection, image_id, project_id)


def image_volumes(connection: sa.Connection, image_id: str) -> dict[str, str]:
    """Return the image's volume by cluster, for each cluster that stores the image."""
    query = sa.select(table.c.locations).where(table.c.id == image_id)
    found: dict[str, str] = connection.execute(query).scalar_one()
    return found
