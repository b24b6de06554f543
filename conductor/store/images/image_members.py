"""The projects that images are shared with. To change them, lock the image's row."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import Conflict, Forbidden, NotFound, TooLarge
from db.reads.images.images import visibility_of
from db.schema import image_members

#: Glance's ``image_member_quota``
MOST = 128

_C = image_members.c


def create(connection: sa.Connection, image: Any, member: str) -> None:
    """Share an image with a project. Raises Forbidden, Conflict, TooLarge."""
    _require_shared(image)
    query = sa.select(_C.member).where(_C.image_id == image.id)
    there = set(connection.execute(query).scalars())
    if member in there:
        raise Conflict(f"Member {member} is duplicated for image {image.id}")
    if len(there) >= MOST:
        raise TooLarge(
            f"Image member limit exceeded for image {image.id}: The limit has been exceeded on "
            f"the number of allowed image members for this image. Attempted: {len(there) + 1}, "
            f"Maximum: {MOST}:"
        )
    now = clock.utcnow()
    row = {"image_id": image.id, "member": member, "status": "pending"}
    connection.execute(image_members.insert(), [row | {"created_at": now, "updated_at": now}])


def change(
    connection: sa.Connection, image: Any, member: str, status: str, project_id: str | None
) -> None:
    """Store a member's status; ``project_id``: the only project that may do so, None: any may.

    Raises Forbidden, NotFound.
    """
    _require_shared(image)
    mine = _mine(image, member)
    known = connection.execute(sa.select(_C.member).where(mine)).first()
    if known is None:
        raise _missing(image, member)
    if project_id not in (None, member):
        raise Forbidden(f"Not allowed to update members for image {image.id}.")
    values = {"status": status, "updated_at": clock.utcnow()}
    connection.execute(image_members.update().where(mine).values(**values))


def delete(connection: sa.Connection, image: Any, member: str) -> None:
    """Share an image with a project no more. Raises Forbidden, NotFound."""
    _require_shared(image)
    if not connection.execute(image_members.delete().where(_mine(image, member))).rowcount:
        raise _missing(image, member)


def forget(connection: sa.Connection, image_id: str) -> None:
    """Delete the members of an image that is deleted."""
    connection.execute(image_members.delete().where(_C.image_id == image_id))


def _mine(image: Any, member: str) -> sa.ColumnElement[bool]:
    return sa.and_(_C.image_id == image.id, _C.member == member)


def _require_shared(image: Any) -> None:
    if visibility_of(image.visibility, image.project_id) != "shared":
        raise Forbidden("Only shared images have members.")


def _missing(image: Any, member: str) -> NotFound:
    return NotFound(f"{member} not found in the member list of the image {image.id}.")
