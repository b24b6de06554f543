"""Times as they are read, whatever the database gives: aware and in UTC, or as they are shown."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from sqlalchemy.dialects import mysql, postgresql, sqlite

from db.types import SharedJson, ShownTime, UtcDateTime

MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, datetime.UTC)
EAST = datetime.timezone(datetime.timedelta(hours=2))


of_each_database = pytest.mark.parametrize(
    ("dialect", "given"),
    [
        (sqlite.dialect(), "2026-01-02 03:04:05.678901"),
        (mysql.dialect(), MOMENT.replace(tzinfo=None)),
        (postgresql.dialect(), MOMENT),
        (postgresql.dialect(), MOMENT.astimezone(EAST)),
    ],
)


@of_each_database
def test_a_time_is_read_in_utc(dialect: Any, given: Any) -> None:
    read = UtcDateTime().dialect_impl(dialect).result_processor(dialect, None)
    assert read is not None
    found: Any = read(given)
    assert (found, found.tzinfo) == (MOMENT, datetime.UTC)
    assert read(None) is None


@of_each_database
def test_a_time_is_read_as_it_is_shown(dialect: Any, given: Any) -> None:
    read = ShownTime().dialect_impl(dialect).result_processor(dialect, None)
    assert read is not None
    assert (read(given), read(None)) == ("2026-01-02T03:04:05.678901", None)


@pytest.mark.parametrize("dialect", [sqlite.dialect(), mysql.dialect(), postgresql.dialect()])
def test_equal_json_is_loaded_once(dialect: Any) -> None:
    read = SharedJson().dialect_impl(dialect).result_processor(dialect, None)
    assert read is not None
    first, second = read('{"a": [1]}'), read("".join(('{"a"', ": [1]}")))
    assert first == {"a": [1]}
    assert first is second
    assert (read("[]"), read("null"), read(None)) == ([], None, None)
