"""What the cloud database says about itself."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from db.schema import cloud_identity, leases, operations

_C = cloud_identity.c
#: rows of ``leases``: the signs of conductors; a conductor that has stopped has an empty owner
SIGN, ENDED = "sign ", ""


@dataclass(frozen=True)
class Identity:
    """Which cloud it is, and how far its record is."""

    cloud_id: str
    epoch: int


def identity(connection: sa.Connection) -> Identity:
    """Return which cloud it is, and how far its record is."""
    row = connection.execute(sa.select(_C.cloud_id, _C.epoch_base)).first()
    last = connection.scalar(sa.select(sa.func.max(operations.c.id))) or 0
    return Identity("", last) if row is None else Identity(row.cloud_id, row.epoch_base + last)


def running(connection: sa.Connection, since: datetime.datetime) -> list[str]:
    """Return the conductors that gave a sign since then, and have not stopped in order."""
    query = sa.select(leases.c.owner).where(
        leases.c.name.like(f"{SIGN}%"), leases.c.owner != ENDED, leases.c.expires_at > since
    )
    return sorted(connection.scalars(query))


def held_because(connection: sa.Connection) -> str | None:
    """Return why everything that destroys is held, in a sentence; None: it isn't."""
    row = connection.execute(sa.select(_C.held_at, _C.held_because)).first()
    if row is None or row.held_at is None:
        return None
    return sentence(row.held_because or {})


def sentence(because: Mapping[str, Any]) -> str:
    """Return in a sentence what proves that the database was restored, and what follows."""
    if "made_at" in because:
        proof = f"a backup of {because['made_at']} took its place"
    else:
        proof = (
            f"{because.get('where')} is {because.get('resource')}, made at epoch "
            f"{because.get('epoch')}, and the record ends at epoch {because.get('record_epoch')}"
        )
    return (
        f"The database was put back, or a replica that was behind took over: {proof}. Nothing is "
        "destroyed until an operator has decided: micronova restore."
    )
