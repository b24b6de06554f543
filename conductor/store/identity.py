"""The id of this cloud: made with its database, and never changed."""

from __future__ import annotations

import sqlalchemy as sa

from db.schema import cloud_identity


def cloud_id(connection: sa.Connection) -> str:
    """Return the cloud's id; empty in a database that was not made by the migrations."""
    found: str | None = connection.execute(sa.select(cloud_identity.c.cloud_id)).scalar()
    return found or ""
