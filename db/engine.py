"""Engines of the cloud database: read-only for the API, writing for the conductor."""

from __future__ import annotations

import select
import time
from typing import Any

import orjson
import sqlalchemy as sa
from oslo_config import cfg
from sqlalchemy.engine import make_url

from common import regex
from common.databases import primary, sessions, write_ahead
from common.metrics import statements
from db import limits

OPTIONS = [
    cfg.StrOpt(
        "connection",
        secret=True,
        help="SQLAlchemy URL of the cloud database with write access; only the conductor and "
        "'micronova db' need it. It uses the primary of several servers of PostgreSQL: "
        "'…@/micronova?host=db1:5432&host=db2:5432'.",
    ),
    cfg.StrOpt(
        "reader_connection",
        secret=True,
        help="SQLAlchemy URL of the cloud database for the API; on PostgreSQL of a role with "
        "SELECT only. On SQLite the same file as 'connection': writing is disabled.",
    ),
    cfg.StrOpt(
        "replica_connection",
        secret=True,
        help="SQLAlchemy URL of a streaming replica of 'reader_connection', with the same role, "
        "where the API reads as long as the replica has replayed all that was committed before "
        "the request; PostgreSQL only.",
    ),
    cfg.IntOpt(
        "pool_size",
        default=16,
        min=1,
        max=512,
        help="Connections that one process holds open.",
    ),
    cfg.IntOpt(
        "reader_statement_seconds",
        default=10,
        min=1,
        max=3600,
        help="Seconds that one statement of the API may take. A longer one is ended: the request "
        "is answered 400 if it has a regular expression, else 503.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Declare this module's options; idempotent."""
    conf.register_opts(OPTIONS, group="database")


IDLE_SECONDS = 30.0
"""After so long without use a connection is tried before it is used."""
_RETURNED_AT = "micronova.returned_at"
_SQLITE_SECONDS = 30
"""A busy file is waited for so long."""


STANDSTILL_SECONDS = 10.0
"""After so long without a statement a transaction that may write is ended. The conductor's wait
for nothing but the database; the transaction of a frozen process would hold its locks until the
process continues, beyond the deadlines of operations."""


def writer(
    url: str,
    pool_size: int = 16,
    idle_seconds: float = IDLE_SECONDS,
    standstill_seconds: float | None = STANDSTILL_SECONDS,
) -> sa.Engine:
    """Return an engine that may write. On SQLite every transaction begins as the one writer.

    ``standstill_seconds`` None: its transactions may wait for something else.
    """
    engine = _engine(url, pool_size, "READ COMMITTED", idle_seconds)
    statements.measure(engine, "cloud", "writer")
    primary.follow(engine)
    if standstill_seconds is not None:
        limits.end_idle_transactions(engine, standstill_seconds)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "begin", _begin_immediate)
    return engine


def reader(url: str, pool_size: int = 16, statement_seconds: float | None = None) -> sa.Engine:
    """Return an engine that can't write.

    SQLite: ``PRAGMA query_only``. Elsewhere the session is read-only, and the role that the URL
    names should have SELECT only. Each statement sees the latest commit; on PostgreSQL there is
    no transaction around it, which would cost two round trips. A statement that takes longer than
    `statement_seconds` raises OperationalError (see `db.limits`); None: no limit.
    """
    postgresql = make_url(url).get_backend_name() == "postgresql"
    engine = _engine(url, pool_size, "AUTOCOMMIT" if postgresql else "READ COMMITTED")
    statements.measure(engine, "cloud", "reader")
    primary.follow(engine, writes=False)
    if statement_seconds is not None:
        limits.limit(engine, statement_seconds)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _query_only)
        return engine
    if engine.dialect.name in {"mysql", "mariadb"}:
        sa.event.listen(engine, "connect", _transactions_read_only)
        return engine
    sa.event.listen(engine, "connect", _session_read_only)
    return engine


def _engine(
    url: str, pool_size: int, isolation_level: str, idle_seconds: float = IDLE_SECONDS
) -> sa.Engine:
    backend = make_url(url).get_backend_name()
    options: dict[str, Any] = {
        "json_serializer": lambda value: orjson.dumps(value).decode(),
        "json_deserializer": orjson.loads,
        # Passwords and user data are among them; an error's text ends up in a log.
        "hide_parameters": True,
        "pool_pre_ping": backend not in {"sqlite", "postgresql"},
        "pool_size": pool_size,
        "max_overflow": pool_size,
    }
    if backend == "sqlite":
        engine = sa.create_engine(
            url, **options, connect_args={"timeout": _SQLITE_SECONDS, "check_same_thread": False}
        )
        sa.event.listen(engine, "connect", _tune_sqlite)
        return engine
    if isolation_level == "AUTOCOMMIT":
        options["pool_reset_on_return"] = None  # there is nothing to roll back
    # A read after waiting for a lock must see the present rows: MariaDB's default are those at the
    # begin of the transaction.
    options["isolation_level"] = isolation_level
    options["connect_args"] = sessions.named(make_url(url))
    engine = sa.create_engine(url, **options, pool_recycle=1800, pool_use_lifo=True)
    if backend == "postgresql":
        _check_when_in_doubt(engine, idle_seconds)
        sa.event.listen(engine, "connect", _count_in_utc)
    return engine


def _check_when_in_doubt(engine: sa.Engine, idle_seconds: float) -> None:
    """Ping a connection before it is used, if it was idle for long or its socket has news.

    SQLAlchemy's `pool_pre_ping` costs a round trip for each transaction. A server that ends, or
    ends a connection, closes its socket, which is seen here without one.
    """

    def returned(_connection: Any, record: Any) -> None:
        record.info[_RETURNED_AT] = time.monotonic()

    def taken(connection: Any, record: Any, _proxy: Any) -> None:
        since = record.info.get(_RETURNED_AT)
        try:
            if since is None:
                return  # it is new
            if time.monotonic() - since > idle_seconds or _has_news(connection):
                engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            raise sa.exc.InvalidatePoolError("The database has closed connections.") from error

    sa.event.listen(engine, "checkin", returned)
    sa.event.listen(engine, "checkout", taken)


def _has_news(connection: Any) -> bool:
    """Return whether the server has sent something, or closed, since the last statement."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _tune_sqlite(connection: Any, _record: Any) -> None:
    # sqlite3 must not begin transactions by itself: _begin_immediate does.
    connection.isolation_level = None
    connection.create_function("regexp", 2, _regexp, deterministic=True)
    write_ahead.switch(connection, _SQLITE_SECONDS)
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute("PRAGMA temp_store=MEMORY")
    cursor.close()


def _regexp(pattern: str, value: str | None) -> bool | None:
    """Implement ``value REGEXP pattern`` for SQLite; SQLAlchemy's own could block all threads."""
    return None if value is None else regex.finds(pattern, value)


def _transactions_read_only(connection: Any, _: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION READ ONLY")


def _count_in_utc(connection: Any, _record: Any) -> None:
    # A time of another zone takes a multiple of the time to read, and lists have thousands.
    with connection.cursor() as cursor:
        cursor.execute("SET TIME ZONE 'UTC'")
    connection.commit()


def _session_read_only(connection: Any, _record: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")


def _query_only(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA query_only=ON")
    cursor.close()


def _begin_immediate(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
