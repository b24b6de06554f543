"""Images whose data users sent: what is known of them, and which clusters have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import Conflict
from common.resources.states import OPEN_STATES, InternalAction, ResourceType
from conductor.rpc.images import ImageData
from conductor.store.images.imports import IMPORTING
from conductor.store.images.server_images import ACTIVE, QUEUED, SAVING
from db import resources
from db.schema import images, operations

KILLED = "killed"

_C = images.c


def begin(connection: sa.Connection, row: Any, data: ImageData, was: str) -> None:
    """Write that an image that is locked has these data, which no cluster has yet.

    ``was``: the status in which it waits for them. Raises Conflict if it doesn't any more, or was
    changed since they were checked.
    """
    if row.status != was or row.checksum is not None:
        raise Conflict(f"Image status transition from {row.status} to saving is not allowed")
    if row.disk_format != data.disk_format:
        raise Conflict(f"The disk_format of image {row.id} was changed during the upload.")
    _write(
        connection,
        row.id,
        status=SAVING if row.status == QUEUED else IMPORTING,
        size_bytes=data.size_bytes,
        virtual_size_bytes=data.virtual_size_bytes,
        checksum=data.sha512,
        md5=data.md5,
    )


def exists(connection: sa.Connection, image_id: str) -> bool:
    """Return whether there is such an image."""
    return connection.execute(sa.select(_C.id).where(_C.id == image_id)).first() is not None


def locked(connection: sa.Connection, image_id: str) -> Any | None:
    """Return an image's row, locked; None: it was deleted."""
    query = sa.select(images).where(_C.id == image_id).with_for_update()
    return connection.execute(query).first()


def stored(connection: sa.Connection, row: Any, cluster: str, volid: str) -> None:
    """Write that a cluster has an image that is locked: from the first one on it can be used."""
    status = ACTIVE if row.status in (SAVING, IMPORTING, KILLED) else row.status
    _write(connection, row.id, locations={**row.locations, cluster: volid}, status=status)


def gave_up(connection: sa.Connection, row: Any, operation_id: int) -> None:
    """Record that storing a locked image in one place has failed.

    The image is killed if no place stores it, or may still get it.
    """
    others = sa.select(operations.c.id).where(
        resources.about(ResourceType.IMAGE, row.id),
        operations.c.action == InternalAction.STORE_IMAGE,
        operations.c.state.in_(OPEN_STATES),
        operations.c.id != operation_id,
    )
    if row.status in (SAVING, IMPORTING) and connection.execute(others.limit(1)).first() is None:
        _write(connection, row.id, status=KILLED)


def kill(connection: sa.Connection, image_id: str) -> None:
    """Set an image that is being saved to killed, if there is one."""
    made = (_C.id == image_id) & (_C.status == SAVING)
    connection.execute(
        images.update().where(made).values(status=KILLED, updated_at=clock.utcnow())
    )


def volumes(row: Any) -> Sequence[tuple[str, str]]:
    """Return (cluster, volume) of the files with an image's data; none of a server's image."""
    if row.project_id is None or row.home is not None or row.server_uuid is not None:
        return []
    return sorted(row.locations.items())


def _write(connection: sa.Connection, image_id: str, **values: Any) -> None:
    changed = images.update().where(_C.id == image_id)
    connection.execute(changed.values(updated_at=clock.utcnow(), **values))
