"""SQLite's write-ahead log: readers of a file and its writer don't wait for each other."""

from __future__ import annotations

import sqlite3

import tenacity


def switch(connection: sqlite3.Connection, seconds: float) -> None:
    """Give a file its write-ahead log.

    Raises OperationalError where another connection has written to the file for `seconds`. SQLite
    itself, whatever its ``busy_timeout``, doesn't wait here for a transaction that has begun to
    write, as another process's switch of a new file has, too: this one has read the file already,
    and two that have read and want to write would wait for each other (sqlite3BtreeBeginTrans,
    btree.c).
    """
    try:
        _switch(connection)
    except sqlite3.OperationalError:
        # Tenacity costs more than the switch, so it is entered only now.
        _until(seconds)(_switch, connection)


def _switch(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode=WAL").close()


def _until(seconds: float) -> tenacity.Retrying:
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(_is_busy),
        stop=tenacity.stop_after_delay(seconds),
        wait=tenacity.wait_random(0.001, 0.02),
        reraise=True,
    )


def _is_busy(error: BaseException) -> bool:
    """Return whether `error` is a lock of somebody else."""
    if not isinstance(error, sqlite3.OperationalError):
        return False
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY  # without its extension
