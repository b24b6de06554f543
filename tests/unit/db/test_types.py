"""Times as they are read: aware, in UTC, whatever the database gives."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from sqlalchemy.dialects import mysql, postgresql, sqlite

from db.types import UtcDateTime

MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, datetime.UTC)
EAST = datetime.timezone(datetime.timedelta(hours=2))


@pytest.mark.parametrize(
    ("dialect", "given"),
    [
        (sqlite.dialect(), "2026-01-02 03:04:05.678901"),
        (mysql.dialect(), MOMENT.replace(tzinfo=None)),
        (postgresql.dialect(), MOMENT),
        (postgresql.dialect(), MOMENT.astimezone(EAST)),
    ],
)
def test_a_time_is_read_in_utc(dialect: Any, given: Any) -> None:
    read = UtcDateTime().dialect_impl(dialect).result_processor(dialect, None)
    assert read is not None
    found: Any = read(given)
    assert (found, found.tzinfo) == (MOMENT, datetime.UTC)
    assert read(None) is None
