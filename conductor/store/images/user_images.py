"""Images that users make: rows without data; and what users change of any image.

To change an image, its tags or its members, lock the image's row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from common import clock, ids
from common.errors import Conflict, Forbidden, ImageNotFound, NotFound
from common.resources.states import ResourceType
from common.rpc import deadlines
from conductor.rpc.images import ImageEdit, NewImage
from conductor.store.images import image_edits, image_members
from conductor.store.images.server_images import ACTIVE, DEACTIVATED, QUEUED
from db import resources
from db.schema import images, operations, servers, templates

_C = images.c


def create(connection: sa.Connection, new: NewImage) -> str:
    """Write an image, queued; return its id. Raises Conflict, TooLarge."""
    image_edits.require_few("properties", len(new.properties), image_edits.MOST_PROPERTIES)
    image_edits.require_few("tags", len(new.tags), image_edits.MOST_TAGS)
    if new.id is not None:
        _require_free(connection, new.id)
    now, image_id = clock.utcnow(), new.id or deadlines.new_uuid()
    connection.execute(
        images.insert().values(
            id=image_id,
            name=new.name,
            status=QUEUED,
            size_bytes=0,
            disk_format=new.disk_format,
            container_format=new.container_format,
            min_disk_gib=new.min_disk_gib,
            min_ram_mib=new.min_ram_mib,
            properties=dict(new.properties),
            locations={},
            project_id=new.project_id,
            visibility=new.visibility,
            protected=new.protected,
            hidden=new.hidden,
            tags=sorted(set(new.tags)),
            created_at=now,
            updated_at=now,
        )
    )
    return image_id


def locked(connection: sa.Connection, image_id: str, project_id: str | None) -> Any:
    """Return an image's row, locked; ``project_id`` None: of any owner. Raises ImageNotFound."""
    query = sa.select(images).where(_C.id == image_id, _C.status != "deleted")
    row = connection.execute(query.with_for_update()).first()
    if row is None or project_id not in (None, row.project_id):
        raise ImageNotFound(f"No image found with ID {image_id}")
    return row


def edit(connection: sa.Connection, row: Any, edits: Sequence[ImageEdit]) -> None:
    """Change an image that is locked. Raises Conflict, Forbidden, TooLarge."""
    values = image_edits.after(row, edits)
    if values:
        _write(connection, row.id, **values)


def tag(connection: sa.Connection, row: Any, name: str, *, wanted: bool) -> None:
    """Give an image that is locked a tag, or take it away. Raises NotFound, TooLarge."""
    had = set(row.tags or ())
    if not wanted and name not in had:
        raise NotFound(f"Image {row.id} has no tag {name}.")
    tags = sorted(had | {name} if wanted else had - {name})
    image_edits.require_few("tags", len(tags), image_edits.MOST_TAGS, len(had))
    if set(tags) != had:
        _write(connection, row.id, tags=tags)


def activate(connection: sa.Connection, row: Any, *, wanted: bool) -> None:
    """Activate or deactivate a locked image for new servers. Raises Forbidden."""
    if row.status not in {ACTIVE, DEACTIVATED}:
        verb = "reactivate" if wanted else "deactivate"
        raise Forbidden(f"Not allowed to {verb} image in status '{row.status}'")
    status = ACTIVE if wanted else DEACTIVATED
    if status != row.status:
        _write(connection, row.id, status=status)


def delete(connection: sa.Connection, image_id: str, project_id: str | None) -> Any:
    """Delete an image that has an owner; return its row.

    Raises ImageNotFound, Forbidden for a protected one and for operators'.
    """
    row = locked(connection, image_id, project_id)
    if row.project_id is None or row.protected:
        raise Forbidden(f"Image {image_id} is protected and cannot be deleted.")
    image_members.forget(connection, image_id)
    connection.execute(images.delete().where(_C.id == image_id))
    return row


def _require_free(connection: sa.Connection, image_id: str) -> None:
    """Raise Conflict for an id that an image has, had while servers live, or may get."""
    if ids.is_of_name(image_id):
        raise Conflict(
            f"Image ID {image_id} is reserved: UUIDs with this end are made of files' names."
        )
    alive = servers.c.deleted_at.is_(None)
    taken = (
        sa.select(_C.id).where(_C.id == image_id),
        sa.select(templates.c.image_id).where(templates.c.image_id == image_id),
        sa.select(servers.c.image_id).where(servers.c.image_id == image_id, alive),
        # Its file may be there still, under the name that the new one's would have.
        sa.select(operations.c.id).where(resources.about(ResourceType.IMAGE, image_id)),
    )
    if any(connection.execute(query.limit(1)).first() is not None for query in taken):
        raise Conflict(f"Image ID {image_id} already exists!")


def _write(connection: sa.Connection, image_id: str, **values: Any) -> None:
    changed = images.update().where(_C.id == image_id)
    connection.execute(changed.values(updated_at=clock.utcnow(), **values))
