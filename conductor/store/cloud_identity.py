"""The id of this cloud: made with its database, and never changed."""

from __future__ import annotations

import sqlalchemy as sa

from db.schema import cloud_identity


def lock(connection: sa.Connection) -> str:
    """Return the cloud's id; what must not begin twice is begun under this lock."""
    query = sa.select(cloud_identity.c.cloud_id).with_for_update()
    found: str | None = connection.execute(query).scalar()
    return found or ""


def cloud_id(connection: sa.Connection) -> str:
    """Return the cloud's id; empty in a database that was not made by the migrations."""
    found: str | None = connection.execute(sa.select(cloud_identity.c.cloud_id)).scalar()
    return found or ""


def touch(connection: sa.Connection) -> None:
    """Write the cloud's id as it is: it fails where nothing can be written."""
    connection.execute(cloud_identity.update().values(cloud_id=cloud_identity.c.cloud_id))
