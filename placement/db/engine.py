"""Connections to the placement database: short reads in autocommit, short write transactions.

SQLite: write-ahead log, `BEGIN IMMEDIATE`, and one lock per process, so that the writers of a
process queue instead of polling a busy file. PostgreSQL: READ COMMITTED with row locks.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.engine import Connection, Engine

from common.databases import fullness, mistakes, primary, sessions, write_ahead
from common.errors import Invalid, Unavailable
from common.log import logger
from common.metrics import statements

LOG = logger(__name__)
T = TypeVar("T")

#: A plan is cached as long as its connection is open. A plan made while a table was small would
#: scan the whole table in every statement once it has ten thousand rows: find by index only.
_SETTINGS = (
    "enable_seqscan = off",
    "enable_hashjoin = off",
    "enable_mergejoin = off",
    "jit = off",
)
#: SQLSTATEs of a transaction that lost against another and may simply be run again
_LOST = frozenset({"40001", "40P01"})
#: the same, as MariaDB numbers them: deadlock, and a lock waited for too long
_LOST_NUMBERS = frozenset({1213, 1205})
_BUSY = "database is locked"


class Database:
    """Both ways into the placement database; threads may share it.

    It connects at its first use. Raises Unavailable where the database doesn't answer,
    Invalid for a value that no column takes; IntegrityError, and the error of a wrong statement,
    pass to the caller.
    """

    def __init__(
        self,
        url: str,
        *,
        connections: int = 16,
        busy_timeout_seconds: float = 10.0,
        attempts: int = 10,
        foreign_keys: bool = True,
    ) -> None:
        """Name the database; without `foreign_keys` SQLite doesn't hold them."""
        self._attempts = attempts
        shape: dict[str, Any] = {"pool_size": connections, "max_overflow": 0, "pool_timeout": 10}
        shape["connect_args"] = sessions.named(sa.make_url(url))
        name = sa.make_url(url).get_backend_name()
        self.is_sqlite, self.is_postgresql = name == "sqlite", name == "postgresql"
        # In autocommit there is nothing to roll back.
        reset = None if self.is_postgresql else "rollback"
        self.reader = sa.create_engine(
            url, isolation_level="AUTOCOMMIT", pool_reset_on_return=reset, **shape
        )
        if self.is_sqlite:
            shape["pool_size"] = 1
        if name in ("mysql", "mariadb"):
            # Locked reads see the latest commit, not the transaction's first snapshot.
            shape["isolation_level"] = "READ COMMITTED"
        self.writer = sa.create_engine(url, **shape)
        statements.measure(self.reader, "placement", "reader")
        statements.measure(self.writer, "placement", "writer")
        for engine in (self.reader, self.writer):
            # On PostgreSQL the reader also writes, where one statement is enough.
            primary.follow(engine)
        self._gate: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        if self.is_sqlite:
            self._gate = threading.Lock()
            for engine in (self.reader, self.writer):
                _prepare_sqlite(engine, busy_timeout_seconds, foreign_keys)
            event.listen(self.writer, "begin", _begin_immediate)
        if self.is_postgresql:
            for engine in (self.reader, self.writer):
                event.listen(engine, "connect", _prepare_postgresql)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` on a connection in autocommit: each statement sees the latest commit."""

        def once() -> T:
            with self.reader.connect() as connection:
                return work(connection)

        return self._until_committed(once)

    def write(self, work: Callable[[Connection], T], *, alone: bool = False) -> T:
        """Run `work` in a transaction and commit it.

        With `alone` it is one statement, which on PostgreSQL needs no transaction around it.

        `work` is retried, a bounded number of times, when the database rolled the transaction
        back (deadlock, busy file) or the connection was stale.
        """

        if alone and self.is_postgresql:
            return self.read(work)

        def once() -> T:
            with self._gate, self.writer.begin() as connection:
                return work(connection)

        return self._until_committed(once)

    def close(self) -> None:
        """Close all connections."""
        self.reader.dispose()
        self.writer.dispose()

    def _until_committed(self, once: Callable[[], T]) -> T:
        stale = False
        for _ in range(self._attempts):
            try:
                return once()
            except exc.IntegrityError:
                raise
            except (exc.DataError, OverflowError) as error:
                # A number too large, a NUL in a text: the schemas allow more than columns do.
                raise Invalid("The request has a value that can't be stored.") from error
            except exc.DBAPIError as error:
                if error.connection_invalidated and not stale:
                    stale = True
                elif not _lost(error):
                    raise _unavailable(error) from error
            except exc.TimeoutError as error:
                raise _unavailable(error) from error
        raise Unavailable("The placement database is too busy, try again.")


def _prepare_sqlite(engine: Engine, busy_timeout_seconds: float, foreign_keys: bool) -> None:
    def connected(connection: Any, record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={int(busy_timeout_seconds * 1000)}")
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.execute(f"PRAGMA foreign_keys={'ON' if foreign_keys else 'OFF'}")
        cursor.close()
        write_ahead.switch(connection, busy_timeout_seconds)

    event.listen(engine, "connect", connected)


def _prepare_postgresql(connection: Any, record: Any) -> None:
    autocommit = connection.autocommit
    connection.autocommit = True
    for setting in _SETTINGS:
        connection.execute(f"SET {setting}")
    connection.autocommit = autocommit


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _lost(error: exc.DBAPIError) -> bool:
    arguments = getattr(error.orig, "args", None) or (None,)
    return getattr(error.orig, "sqlstate", None) in _LOST or arguments[0] in _LOST_NUMBERS


def _unavailable(error: exc.SQLAlchemyError) -> Exception:
    if isinstance(error, exc.DBAPIError) and (
        mistakes.is_mistake(error)
        or not isinstance(error, exc.OperationalError | exc.InterfaceError | exc.InternalError)
    ):
        return error
    if fullness.is_full(error):
        LOG.error(fullness.SENTENCE)
        return Unavailable(fullness.SENTENCE)
    busy = _BUSY in str(error)
    LOG.error("The placement database doesn't answer: %s", error.__class__.__name__)
    return Unavailable(
        "The placement database is too busy, try again."
        if busy
        else "The placement database doesn't answer."
    )
