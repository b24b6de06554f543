"""What the cloud database says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from db.schema import cloud_identity


def held_because(connection: sa.Connection) -> str | None:
    """Return why everything that destroys is held, in a sentence; None: it isn't."""
    columns = cloud_identity.c
    row = connection.execute(sa.select(columns.held_at, columns.held_because)).first()
    if row is None or row.held_at is None:
        return None
    return sentence(row.held_because or {})


def sentence(because: Mapping[str, Any]) -> str:
    """Return in a sentence what proves that the database was restored, and what follows."""
    return (
        f"The database was put back: {because.get('where')} is {because.get('resource')}, made at "
        f"epoch {because.get('epoch')}, and the record ends at epoch "
        f"{because.get('record_epoch')}. Nothing is destroyed until an operator has decided: "
        "micronova restore."
    )
