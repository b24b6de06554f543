"""The clock of a database."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

import sqlalchemy as sa

#: the present time, whatever the transaction's age; SQLite has its machine's clock
_NOW: Mapping[str, str] = {
    "postgresql": "SELECT clock_timestamp() AT TIME ZONE 'UTC'",
    "mysql": "SELECT UTC_TIMESTAMP(6)",
    "mariadb": "SELECT UTC_TIMESTAMP(6)",
}


def has_own(engine: sa.Engine) -> bool:
    """Return whether the database has another clock than this process may have."""
    return engine.dialect.name in _NOW


def now(connection: sa.Connection) -> float:
    """Return the time of the database's clock, in seconds since 1970. One round trip."""
    found: datetime.datetime = connection.exec_driver_sql(
        _NOW[connection.dialect.name]
    ).scalar_one()
    return found.replace(tzinfo=datetime.UTC).timestamp()
