"""Offers of volumes to other projects. Of an auth key a salted hash is kept, until its end."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Any

import sqlalchemy as sa

from common import clock, ids
from conductor.rpc.volumes.transfers import NewVolumeTransfer
from db.schema import volume_transfers

_C = volume_transfers.c
_SALT_BYTES = 16


def insert(connection: sa.Connection, volume: Any, new: NewVolumeTransfer, auth_key: str) -> str:
    """Write an offer of a volume that is locked; return its id."""
    transfer_id, salt = ids.new_uuid(), secrets.token_hex(_SALT_BYTES)
    connection.execute(
        volume_transfers.insert().values(
            id=transfer_id,
            volume_id=volume.id,
            name=new.name,
            salt=salt,
            key_hash=_hash(salt, auth_key),
            no_snapshots=new.no_snapshots,
            source_project_id=volume.project_id,
            accepted=False,
            created_at=clock.utcnow(),
        )
    )
    return transfer_id


def get(connection: sa.Connection, transfer_id: str, *, lock: bool = False) -> Any | None:
    """Return an offer that counts; None: there is none. Lock its volume before it."""
    query = sa.select(volume_transfers).where(_C.id == transfer_id, _C.ended_at.is_(None))
    if lock:
        query = query.with_for_update()
    return connection.execute(query).first()


def opens(row: Any, auth_key: str) -> bool:
    """Return whether a key is that of an offer."""
    return hmac.compare_digest(row.key_hash, _hash(row.salt, auth_key))


def end(connection: sa.Connection, transfer_id: str, accepted_by: str | None = None) -> None:
    """End an offer that is locked; ``accepted_by``: the project that has the volume now."""
    mine = volume_transfers.update().where(_C.id == transfer_id)
    values = {"accepted": accepted_by is not None, "destination_project_id": accepted_by}
    connection.execute(mine.values(ended_at=clock.utcnow(), salt="", key_hash="", **values))


def end_of(connection: sa.Connection, volume_id: str) -> None:
    """End the offer of a volume that is locked, if there is one."""
    query = sa.select(_C.id).where(_C.volume_id == volume_id, _C.ended_at.is_(None))
    for transfer_id in connection.execute(query).scalars().all():
        end(connection, transfer_id)


def _hash(salt: str, auth_key: str) -> str:
    return hmac.new(salt.encode(), auth_key.encode(), hashlib.sha256).hexdigest()
