"""IDs are given out once."""

from __future__ import annotations

import datetime
from typing import Any

import sqlalchemy as sa

from db import migrate
from db.schema import metadata
from db.types import UtcDateTime
from tests.functional.db.test_migrate import connected

COUNTED = [one for one in metadata.sorted_tables if one.autoincrement_column is not None]


def a_row(table: sa.Table, **given: Any) -> dict[str, Any]:
    """Return values for every column but the ID that the database makes."""
    return {
        column.key: _value(column)
        for column in table.columns
        if column is not table.autoincrement_column
    } | given


def _value(column: sa.Column[Any]) -> Any:
    if isinstance(column.type, UtcDateTime):
        return datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, datetime.UTC)
    if isinstance(column.type, sa.JSON):
        return {"b": [1], "a": None}
    if isinstance(column.type, sa.String):
        return f"of {column.key}"[: column.type.length or 99]
    return column.type.python_type(1)


def inserted(connection: sa.Connection, table: sa.Table) -> int:
    (number,) = connection.execute(table.insert().values(a_row(table))).inserted_primary_key or (
        0,
    )
    return int(number)


def test_no_table_gives_an_id_out_twice(url: str) -> None:
    migrate.upgrade(url)
    with connected(url) as connection:
        for table in COUNTED:
            first = inserted(connection, table)
            connection.execute(table.delete())
            assert inserted(connection, table) > first, table.name
