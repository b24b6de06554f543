"""Who this cloud is: made with its database, the same for ever."""

from __future__ import annotations

import sqlalchemy as sa

from db.schema import cloud_identity


def cloud_id(connection: sa.Connection) -> str:
    """Return the cloud's id; empty in a database that was not made by the migrations."""
    found: str | None = connection.execute(sa.select(cloud_identity.c.cloud_id)).scalar()
    return found or ""
