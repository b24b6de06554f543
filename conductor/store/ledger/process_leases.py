"""Leases by name, for what only one process may do at a time."""

from __future__ import annotations

import datetime

import sqlalchemy as sa

from common import clock
from db.schema import leases


def take(connection: sa.Connection, name: str, owner: str, seconds: float) -> bool:
    """Take or renew a lease by its name; return False while another process holds it."""
    now = clock.utcnow()
    values = {"owner": owner, "expires_at": now + datetime.timedelta(seconds=seconds)}
    free = (leases.c.owner == owner) | (leases.c.expires_at < now)
    mine = leases.c.name == name
    if connection.execute(leases.update().where(mine, free).values(**values)).rowcount == 1:
        return True
    if connection.execute(sa.select(leases.c.name).where(mine)).first() is not None:
        return False
    connection.execute(leases.insert().values(name=name, **values))
    return True


def drop(connection: sa.Connection, name: str, owner: str) -> None:
    """Release a lease."""
    mine = (leases.c.name == name) & (leases.c.owner == owner)
    connection.execute(leases.delete().where(mine))
