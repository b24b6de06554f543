"""Time limits of statements, on every kind of database."""

from __future__ import annotations

import math
import time
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

#: instructions of SQLite between two looks at the clock: a fraction of a millisecond
_INSTRUCTIONS = 2000
_ENDS = "micronova.statement_ends"
#: error codes of an ended statement: SQLite, PostgreSQL, MariaDB, MySQL
_ENDED = frozenset({"SQLITE_INTERRUPT", "57014", 1969, 3024})


def limit(engine: sa.Engine, seconds: float) -> None:
    """End every statement of the engine after that many seconds, with OperationalError."""
    if engine.dialect.name == "sqlite":
        _limit_sqlite(engine, seconds)
        return
    remote = _limit_postgresql if engine.dialect.name == "postgresql" else _limit_mariadb

    def connected(connection: Any, _record: Any) -> None:
        remote(connection, seconds)

    sa.event.listen(engine, "connect", connected)


def end_idle_transactions(engine: sa.Engine, seconds: float) -> None:
    """Have the server end a transaction whose process sends nothing for so long: it is frozen, and
    nobody else gets at the rows that it has locked. SQLite and MySQL can't."""
    remote = {
        "postgresql": _end_idle_on_postgresql,
        "mysql": _end_idle_on_mariadb,
        "mariadb": _end_idle_on_mariadb,
    }.get(engine.dialect.name)
    if remote is None:
        return

    def connected(connection: Any, _record: Any) -> None:
        remote(connection, seconds)

    sa.event.listen(engine, "connect", connected)


def exceeded(error: exc.DBAPIError) -> bool:
    """Return whether a statement failed because it took too long."""
    cause = error.orig
    codes = {
        getattr(cause, "sqlite_errorname", None),
        getattr(cause, "sqlstate", None),
        *(cause.args[:1] if cause else ()),
    }
    return not _ENDED.isdisjoint(codes)


def _limit_sqlite(engine: sa.Engine, seconds: float) -> None:
    def connected(connection: Any, record: Any) -> None:
        info = record.info

        def over() -> bool:
            ends: float = info.get(_ENDS, math.inf)
            return time.monotonic() > ends

        connection.set_progress_handler(over, _INSTRUCTIONS)

    def begun(connection: sa.Connection, *_statement: Any) -> None:
        connection.info[_ENDS] = time.monotonic() + seconds

    sa.event.listen(engine, "connect", connected)
    sa.event.listen(engine, "before_cursor_execute", begun)


def _limit_postgresql(connection: Any, seconds: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET statement_timeout = {math.ceil(seconds * 1000)}")
    # What a transaction sets is taken back when that is rolled back.
    connection.commit()


def _limit_mariadb(connection: Any, seconds: float) -> None:
    if "mariadb" in connection.get_server_info().lower():
        statement = f"SET SESSION max_statement_time = {seconds}"
    else:
        statement = f"SET SESSION max_execution_time = {math.ceil(seconds * 1000)}"
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _end_idle_on_postgresql(connection: Any, seconds: float) -> None:
    with connection.cursor() as cursor:
        milliseconds = math.ceil(seconds * 1000)
        cursor.execute(f"SET idle_in_transaction_session_timeout = {milliseconds}")
    connection.commit()


def _end_idle_on_mariadb(connection: Any, seconds: float) -> None:
    if "mariadb" in connection.get_server_info().lower():
        with connection.cursor() as cursor:
            cursor.execute(f"SET SESSION idle_transaction_timeout = {math.ceil(seconds)}")
