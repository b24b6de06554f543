"""The image that the command printed at the start names: one that the cloud has."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from db import engine
from db.schema import images

#: where there is no image yet
NO_IMAGE = "<image>"


def image(state_dir: Path) -> str:
    """Return the name of the smallest image that the cloud has; a placeholder for none."""
    reader = engine.reader(f"sqlite:///{state_dir}/cloud.sqlite")
    query = (
        sa.select(images.c.name)
        .where(images.c.status == "active", images.c.project_id.is_(None))
        .order_by(images.c.size_bytes, images.c.name)
        .limit(1)
    )
    try:
        with reader.connect() as connection:
            found = connection.execute(query).scalar()
    finally:
        reader.dispose()
    return str(found) if found else NO_IMAGE
