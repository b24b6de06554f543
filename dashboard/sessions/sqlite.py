"""Sessions in an SQLite file, for all workers of one host."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from common.databases import write_ahead

_SCHEMA = """
CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, value BLOB NOT NULL, until REAL NOT NULL);
CREATE INDEX IF NOT EXISTS kept_until ON kept (until);
CREATE TABLE IF NOT EXISTS counted (key TEXT PRIMARY KEY, number INTEGER NOT NULL,
                                    until REAL NOT NULL);
"""
_WAIT_SECONDS = 10.0
#: counters beyond this many are forgotten, those that end first
_COUNTERS = 10_000


class SqliteStore:
    """A file that only its owner may read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        with contextlib.closing(self._connect()) as connection:
            connection.executescript(_SCHEMA)

    def get(self, key: str, now: float) -> bytes | None:
        """Return what is kept."""
        with self._transaction() as connection:
            row = connection.execute(
                "SELECT value FROM kept WHERE key = ? AND until > ?", (key, now)
            ).fetchone()
        return bytes(row[0]) if row else None

    def put(self, key: str, value: bytes, until: float) -> None:
        """Store a value."""
        with self._transaction() as connection:
            connection.execute("REPLACE INTO kept VALUES (?, ?, ?)", (key, value, until))

    def replace(self, key: str, value: bytes, until: float) -> None:
        """Overwrite the value of a key; do nothing if the key does not exist."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE kept SET value = ?, until = ? WHERE key = ?", (value, until, key)
            )

    def delete(self, key: str) -> None:
        """Delete a key."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM kept WHERE key = ?", (key,))

    def count(self, key: str, now: float, seconds: int, *, more: int) -> int:
        """Add to a counter; delete expired counters and values in the same transaction."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM counted WHERE until <= ?", (now,))
            connection.execute("DELETE FROM kept WHERE until <= ?", (now,))
            connection.execute(
                "INSERT INTO counted VALUES (?, max(?, 0), ?) "
                "ON CONFLICT (key) DO UPDATE SET number = max(number + ?, 0)",
                (key, more, now + seconds, more),
            )
            connection.execute(
                "DELETE FROM counted WHERE key IN (SELECT key FROM counted "
                "ORDER BY until DESC LIMIT -1 OFFSET ?)",
                (_COUNTERS,),
            )
            row = connection.execute("SELECT number FROM counted WHERE key = ?", (key,)).fetchone()
        return int(row[0]) if row else 0

    def forget(self, key: str) -> None:
        """Reset a counter."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM counted WHERE key = ?", (key,))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        # a connection of the process before a fork isn't used after it
        if getattr(self._local, "pid", None) != os.getpid():
            self._local.connection, self._local.pid = self._connect(), os.getpid()
        connection: sqlite3.Connection = self._local.connection
        with connection:
            yield connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_WAIT_SECONDS)
        write_ahead.switch(connection, _WAIT_SECONDS)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA cache_size = -256")
        return connection
