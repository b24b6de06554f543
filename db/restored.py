"""Marks a cloud database that was just replaced by a backup."""

from __future__ import annotations

from common import clock
from db import engine
from db.reads.cloud import ENDED, SIGN
from db.schema import cloud_identity, leases


def hold(url: str, made_at: str, epoch: int) -> None:
    """Have all that destroys held from the first start on, by the backup's time and epoch.

    The conductors that ran when the backup was made count as ended: none of them has seen what
    became of the operations that were open.
    """
    writer = engine.writer(url, pool_size=1)
    because = {"made_at": made_at, "epoch": epoch}
    values = {"held_at": clock.utcnow(), "held_because": because}
    try:
        with writer.begin() as connection:
            connection.execute(cloud_identity.update().values(values))
            signs = leases.update().where(leases.c.name.like(f"{SIGN}%"))
            connection.execute(signs.values(owner=ENDED))
    finally:
        writer.dispose()
