"""A full disk, as the driver of each database reports it."""

from __future__ import annotations

import sqlite3

import psycopg
import pymysql
import pytest
import sqlalchemy as sa

from common.databases.fullness import is_full


def sqlite_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("x")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (sqlite_error(sqlite3.SQLITE_FULL), True),
        (sqlite_error(sqlite3.SQLITE_BUSY), False),
        (sqlite3.OperationalError("database or disk is full"), False),  # of no connection
        (psycopg.errors.DiskFull("could not extend file"), True),
        (psycopg.OperationalError("the connection is closed"), False),
        (psycopg.OperationalError("connection failed: FATAL:  could not write init file"), True),
        (pymysql.err.OperationalError(1021, "Disk full (/tmp/x); waiting"), True),
        (pymysql.err.OperationalError(1114, "The table 'servers' is full"), True),
        (pymysql.err.InternalError(3, 'Error writing file (Errcode: 28 "No space left")'), True),
        (pymysql.err.InternalError(1030, "Got error 28 from storage engine InnoDB"), True),
        (pymysql.err.InternalError(1030, "Got error 122 from storage engine"), False),
        (pymysql.err.OperationalError(2006, "MySQL server has gone away"), False),
        (OSError("x"), False),
    ],
)
def test_which_errors_say_that_a_disk_is_full(error: Exception, full: bool) -> None:
    assert is_full(error) is full
    assert is_full(sa.exc.OperationalError("INSERT", {}, error)) is full
