"""IDs are given out once, in databases that have lived too."""

from __future__ import annotations

import datetime
from typing import Any

import sqlalchemy as sa

from db import migrate
from db.schema import metadata
from db.types import UtcDateTime
from tests.functional.db.test_migrate import connected

BEFORE = "0010_secrets"
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


def columns_there(connection: sa.Connection) -> dict[str, list[sa.Column[Any]]]:
    """Return the columns of each table that the database has: later revisions add some."""
    inspector = sa.inspect(connection)
    found = {}
    there = set(inspector.get_table_names())
    for table in metadata.sorted_tables:
        if table.name not in there:
            continue
        names = {column["name"] for column in inspector.get_columns(table.name)}
        found[table.name] = [column for column in table.columns if column.name in names]
    return found


def everything(
    connection: sa.Connection, columns: dict[str, list[sa.Column[Any]]]
) -> dict[str, list[tuple[Any, ...]]]:
    return {
        name: [tuple(row) for row in connection.execute(sa.select(*of_table))]
        for name, of_table in columns.items()
    }


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


def test_a_database_that_has_lived_keeps_its_rows_and_counts_on(url: str) -> None:
    migrate.upgrade(url, BEFORE)
    with connected(url) as connection:
        columns = columns_there(connection)
        for table in (each for each in metadata.sorted_tables if each.name in columns):
            if not connection.execute(sa.select(sa.literal(1)).select_from(table)).first():
                row = a_row(table)
                known = [each for each in columns[table.name] if each.key in row]
                plain = sa.table(table.name, *[sa.column(each.name, each.type) for each in known])
                connection.execute(
                    plain.insert().values({each.name: row[each.key] for each in known})
                )
        before = everything(connection, columns)
    migrate.upgrade(url)
    with connected(url) as connection:
        assert everything(connection, columns) == before
        for table in (each for each in COUNTED if each.name in columns):
            connection.execute(table.delete())
            assert inserted(connection, table) > 1, table.name
