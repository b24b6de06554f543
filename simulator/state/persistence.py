"""State on disk: one SQLite file, one row per object, written when a mutex is released.

`synchronous=OFF` leaves writing to the operating system: the data survive the death of this
process, not of the machine, and a commit takes tens of microseconds.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

Change = tuple[str, str, object | None]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    cluster INTEGER NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (cluster, kind, key)
) WITHOUT ROWID
"""


class Store:
    """The objects of all clusters. Bytes are stored as they are, all else as JSON."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=OFF")
        self._db.execute(_SCHEMA)

    def write(self, cluster: int, changes: Iterable[Change]) -> None:
        """Write objects, or delete those that are None, in one transaction."""
        upserts: list[tuple[int, str, str, bytes]] = []
        deletes: list[tuple[int, str, str]] = []
        for kind, key, value in changes:
            if value is None:
                deletes.append((cluster, kind, key))
            else:
                body = value if isinstance(value, bytes) else orjson.dumps(value)
                upserts.append((cluster, kind, key, body))
        with self._lock:
            self._db.execute("BEGIN")
            self._db.executemany("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)", upserts)
            self._db.executemany(
                "DELETE FROM objects WHERE cluster = ? AND kind = ? AND key = ?", deletes
            )
            self._db.execute("COMMIT")

    def read(self, cluster: int, kind: str) -> Iterator[tuple[str, Any]]:
        """Yield key and decoded object of one kind; kind `data` is not decoded."""
        with self._lock:
            rows = self._db.execute(
                "SELECT key, body FROM objects WHERE cluster = ? AND kind = ? ORDER BY key",
                (cluster, kind),
            ).fetchall()
        for key, body in rows:
            yield key, body if kind == "data" else orjson.loads(body)

    def clear(self) -> None:
        """Delete everything."""
        with self._lock:
            self._db.execute("DELETE FROM objects")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()
