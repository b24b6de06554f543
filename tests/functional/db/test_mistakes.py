"""A wrong statement is a fault of the program, and not a database that doesn't answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import psycopg
import pymysql
import pytest
from sqlalchemy import exc

from common.databases.mistakes import is_mistake
from common.errors import Unavailable
from conductor.store.monitoring import Reader
from conductor.store.transactions import Store
from db import engine, migrate
from db.reading import reading

WRONG = (
    "SELEC 1",
    "SELECT missing FROM servers",
    "SELECT missing(1)",
    "SELECT 1 FROM servers x y",
)


def sqlite_error(code: int, text: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("kind", "error", "is_so"),
    [
        (exc.OperationalError, sqlite_error(1, 'near "SELEC": syntax error'), True),
        (exc.OperationalError, sqlite_error(1, "no such column: nothing"), True),
        (exc.OperationalError, sqlite_error(1, "no such table: servers"), False),
        (exc.OperationalError, sqlite_error(5, "database is locked"), False),
        (exc.OperationalError, sqlite_error(13, "database or disk is full"), False),
        (exc.OperationalError, sqlite_error(14, "unable to open database file"), False),
        (exc.OperationalError, sqlite3.OperationalError("x"), False),
        (exc.ProgrammingError, psycopg.errors.SyntaxError("x"), True),
        (exc.ProgrammingError, psycopg.errors.UndefinedColumn("x"), True),
        (exc.ProgrammingError, psycopg.errors.UndefinedTable("x"), False),
        (exc.ProgrammingError, psycopg.errors.InsufficientPrivilege("x"), False),
        (exc.OperationalError, psycopg.errors.LockNotAvailable("x"), False),
        (exc.OperationalError, psycopg.errors.AdminShutdown("x"), False),
        (exc.OperationalError, psycopg.errors.DiskFull("x"), False),
        (exc.InternalError, psycopg.errors.ReadOnlySqlTransaction("x"), False),
        (exc.OperationalError, psycopg.OperationalError("connection refused"), False),
        (exc.ProgrammingError, pymysql.err.ProgrammingError(1064, "x"), True),
        (exc.OperationalError, pymysql.err.OperationalError(1054, "x"), True),
        (exc.ProgrammingError, pymysql.err.ProgrammingError(1146, "x"), False),
        (exc.OperationalError, pymysql.err.OperationalError(2006, "gone away"), False),
        (exc.OperationalError, pymysql.err.OperationalError(1205, "lock wait"), False),
    ],
)
def test_which_errors_are_the_programs(
    kind: type[exc.DBAPIError], error: Exception, is_so: bool
) -> None:
    assert is_mistake(kind("SELECT", {}, error)) is is_so


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    migrate.upgrade(url)
    writer, reader = engine.writer(url), engine.reader(url)
    yield Store(writer, reader)
    writer.dispose()
    reader.dispose()


@pytest.mark.parametrize("statement", WRONG)
def test_a_wrong_statement_passes(store: Store, statement: str) -> None:
    with pytest.raises(exc.DBAPIError), reading(store._reader) as connection:
        connection.exec_driver_sql(statement)
    with pytest.raises(exc.DBAPIError):
        store.run(lambda connection: connection.exec_driver_sql(statement))
    assert store.answers()


def test_a_metric_of_a_column_that_there_is_not(store: Store) -> None:
    rename = "ALTER TABLE operations RENAME COLUMN action TO deed"
    store.run(lambda connection: connection.exec_driver_sql(rename))
    with pytest.raises(exc.DBAPIError):
        Reader(store, 60).read()


def test_a_database_without_tables_is_not_available(url: str) -> None:
    writer, reader = engine.writer(url), engine.reader(url)
    with pytest.raises(Unavailable):
        Reader(Store(writer, reader), 60).read()
    writer.dispose()
    reader.dispose()
