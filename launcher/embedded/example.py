"""Facts printed at the start: the name of an image, and the number of servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa

from db import engine
from db.schema import images
from db.schema import servers as _servers

#: where there is no image yet
NO_IMAGE = "<image>"


def image(state_dir: Path) -> str:
    """Return the name of the smallest image that the cloud has; a placeholder for none."""
    query = (
        sa.select(images.c.name)
        .where(images.c.status == "active", images.c.project_id.is_(None))
        .order_by(images.c.size_bytes, images.c.name)
        .limit(1)
    )
    found = _scalar(state_dir, query)
    return str(found) if found else NO_IMAGE


def servers(state_dir: Path) -> int:
    """Return how many servers the cloud has."""
    query = sa.select(sa.func.count()).where(_servers.c.deleted_at.is_(None))
    return int(_scalar(state_dir, query))


def _scalar(state_dir: Path, query: sa.Select[Any]) -> Any:
    reader = engine.reader(f"sqlite:///{state_dir}/cloud.sqlite")
    try:
        with reader.connect() as connection:
            return connection.execute(query).scalar()
    finally:
        reader.dispose()
