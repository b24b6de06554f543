"""Tokens of consoles, for `/os-console-auth-tokens`."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import sqlalchemy as sa

from db import schema
from db.records import columns

_T = schema.console_tokens.c


@dataclass(frozen=True, slots=True)
class ConsoleToken:
    """What a token opens: the console of a server, which was on a host then."""

    server_uuid: str
    host: str
    port: int


_COLUMNS = columns(schema.console_tokens, ConsoleToken)


def find(
    connection: sa.Connection, token_hash: str, now: datetime.datetime
) -> ConsoleToken | None:
    """Return what a token opens; None where there is no such token, or it opens nothing now."""
    row = connection.execute(
        sa.select(*_COLUMNS).where(
            _T.token_hash == token_hash, _T.expires_at > now, _T.used_at.is_(None)
        )
    ).first()
    return None if row is None else ConsoleToken(*row)
