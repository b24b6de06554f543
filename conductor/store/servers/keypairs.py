"""Writes of key pairs."""

from __future__ import annotations

import sqlalchemy as sa

from common import clock
from common.errors import Conflict, KeyPairNotFound
from conductor.rpc.servers.keypairs import NewKeyPair
from db.schema import keypairs


def create(connection: sa.Connection, keypair: NewKeyPair) -> None:
    """Store a key pair. Raises Conflict when the user has one of that name."""
    mine = (keypairs.c.user_id == keypair.user_id) & (keypairs.c.name == keypair.name)
    if connection.execute(sa.select(keypairs.c.id).where(mine)).first() is not None:
        raise Conflict(f"Key pair '{keypair.name}' already exists.")
    connection.execute(
        keypairs.insert().values(
            user_id=keypair.user_id,
            name=keypair.name,
            type=keypair.type,
            fingerprint=keypair.fingerprint,
            public_key=keypair.public_key,
            created_at=clock.utcnow(),
        )
    )


def delete(connection: sa.Connection, user_id: str, name: str) -> None:
    """Delete a key pair. Raises KeyPairNotFound."""
    mine = (keypairs.c.user_id == user_id) & (keypairs.c.name == name)
    if connection.execute(keypairs.delete().where(mine)).rowcount == 0:
        raise KeyPairNotFound(f"Keypair {name} not found for user {user_id}")
