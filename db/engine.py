"""How the cloud database is opened: for reading by the API, for writing by the conductor."""

from __future__ import annotations

from typing import Any

import orjson
import sqlalchemy as sa
from oslo_config import cfg
from sqlalchemy.engine import make_url

from common import regex
from db import limits

OPTIONS = [
    cfg.StrOpt(
        "connection",
        secret=True,
        help="SQLAlchemy URL of the cloud database with write access; only the conductor and "
        "'micronova db' need it.",
    ),
    cfg.StrOpt(
        "reader_connection",
        secret=True,
        help="SQLAlchemy URL of the cloud database for the API; on PostgreSQL a role with SELECT "
        "only. On SQLite the same file as 'connection': writing is switched off.",
    ),
    cfg.IntOpt(
        "pool_size",
        default=16,
        min=1,
        max=512,
        help="Connections that one process keeps open.",
    ),
    cfg.IntOpt(
        "reader_statement_seconds",
        default=10,
        min=1,
        max=3600,
        help="Seconds that the database may work on one statement of the API. One that takes "
        "longer is ended: the request answers 400 where it asked for a regular expression, else "
        "503.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Declare this module's options; idempotent."""
    conf.register_opts(OPTIONS, group="database")


def writer(url: str, pool_size: int = 16) -> sa.Engine:
    """An engine that may write. On SQLite every transaction begins as the one writer."""
    engine = _engine(url, pool_size)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "begin", _begin_immediate)
    return engine


def reader(url: str, pool_size: int = 16, statement_seconds: float | None = None) -> sa.Engine:
    """An engine that can't write.

    SQLite: ``PRAGMA query_only``. Elsewhere each transaction is read-only, and the role that the
    URL names should have SELECT only. A statement that takes longer than `statement_seconds`
    raises OperationalError (see `db.limits`); None: it may take as long as it likes.
    """
    engine = _engine(url, pool_size)
    if statement_seconds is not None:
        limits.limit(engine, statement_seconds)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _query_only)
        return engine
    if engine.dialect.name in {"mysql", "mariadb"}:
        sa.event.listen(engine, "connect", _transactions_read_only)
        return engine
    return engine.execution_options(postgresql_readonly=True)


def _engine(url: str, pool_size: int) -> sa.Engine:
    options: dict[str, Any] = {
        "json_serializer": lambda value: orjson.dumps(value).decode(),
        "json_deserializer": orjson.loads,
        # Passwords and user data are among them; an error's text ends up in a log.
        "hide_parameters": True,
        "pool_pre_ping": make_url(url).get_backend_name() != "sqlite",
        "pool_size": pool_size,
        "max_overflow": pool_size,
    }
    if make_url(url).get_backend_name() == "sqlite":
        engine = sa.create_engine(
            url, **options, connect_args={"timeout": 30, "check_same_thread": False}
        )
        sa.event.listen(engine, "connect", _tune_sqlite)
        return engine
    # What is read after a lock was waited for must be what is there then: MariaDB's default is
    # what was there when the transaction began.
    options["isolation_level"] = "READ COMMITTED"
    return sa.create_engine(url, **options, pool_recycle=1800, pool_use_lifo=True)


def _tune_sqlite(connection: Any, _record: Any) -> None:
    # sqlite3 must not begin transactions by itself: _begin_immediate does.
    connection.isolation_level = None
    connection.create_function("regexp", 2, _regexp, deterministic=True)
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute("PRAGMA temp_store=MEMORY")
    cursor.close()


def _regexp(pattern: str, value: str | None) -> bool | None:
    """SQLite's ``value REGEXP pattern``: what SQLAlchemy puts there can hold up every thread."""
    return None if value is None else regex.finds(pattern, value)


def _transactions_read_only(connection: Any, _: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION READ ONLY")


def _query_only(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA query_only=ON")
    cursor.close()


def _begin_immediate(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
