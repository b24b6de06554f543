"""Which releases use the database now."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import sqlalchemy as sa

from common.databases import sessions
from db.schema import services

_C = services.c


@dataclass(frozen=True)
class Running:
    """A service that runs."""

    name: str
    version: str
    """Its release; empty: it doesn't say."""

    def __str__(self) -> str:
        return f"{self.name} ({self.version or 'of an unknown release'})"


def running(connection: sa.Connection, since: datetime.datetime) -> list[Running]:
    """Return the services that gave a sign of life since then, and who is connected.

    APIs give no signs; on PostgreSQL their sessions name their release.
    """
    alive = sa.select(_C.binary, _C.host, _C.version).where(_C.last_seen_at > since)
    found = [
        Running(f"{row.binary} {row.host}", row.version)
        for row in connection.execute(alive.order_by(_C.binary, _C.host))
    ]
    return found + connected(connection)


def connected(connection: sa.Connection) -> list[Running]:
    """Return who is connected, besides this process; a row for each release."""
    return [
        Running(f"{number} database session{'s'[: number > 1]}", version)
        for version, number in sorted(sessions.releases(connection).items())
    ]
