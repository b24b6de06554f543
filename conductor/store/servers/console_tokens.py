"""Tokens of consoles, by their hashes: written once, used once."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import sqlalchemy as sa

from db.schema import console_tokens

_T = console_tokens.c


@dataclass(frozen=True)
class Permit:
    """The console that a token opens."""

    server_uuid: str
    console_type: str


def insert(
    connection: sa.Connection,
    token_hash: str,
    permit: Permit,
    *,
    host: str,
    port: int,
    now: datetime.datetime,
    expires_at: datetime.datetime,
) -> None:
    """Store a token, and delete those that have expired. Two statements."""
    connection.execute(console_tokens.delete().where(_T.expires_at <= now))
    connection.execute(
        console_tokens.insert(),
        {
            "token_hash": token_hash,
            "server_uuid": permit.server_uuid,
            "console_type": permit.console_type,
            "host": host,
            "port": port,
            "expires_at": expires_at,
        },
    )


def use(connection: sa.Connection, token_hash: str, now: datetime.datetime) -> Permit | None:
    """Use a token up; return what it opens, to the first who asks and in time only."""
    used = connection.execute(
        console_tokens.update()
        .where(_T.token_hash == token_hash, _T.used_at.is_(None), _T.expires_at > now)
        .values(used_at=now)
    )
    if used.rowcount != 1:
        return None
    row = connection.execute(
        sa.select(_T.server_uuid, _T.console_type).where(_T.token_hash == token_hash)
    ).one()
    return Permit(*row)
