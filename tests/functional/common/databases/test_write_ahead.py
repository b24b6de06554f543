"""A file that another process writes to, and that has no write-ahead log yet, is waited for."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from common.databases import write_ahead
from dashboard.sessions.sqlite import SqliteStore
from db import engine
from placement.db.engine import Database


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new.db"


@pytest.fixture
def other(path: Path) -> Iterator[sqlite3.Connection]:
    """Writes to the file, as the process does that made it."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE things (id INTEGER)")
        connection.execute("BEGIN IMMEDIATE")
        yield connection


def by_itself(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path, timeout=30, check_same_thread=False)) as opened:
        write_ahead.switch(opened, 30)


def of_the_cloud(path: Path) -> None:
    connect(engine.writer(f"sqlite:///{path}"))


def of_placement(path: Path) -> None:
    database = Database(f"sqlite:///{path}")
    connect(database.reader)
    connect(database.writer)


def of_the_dashboard(path: Path) -> None:
    SqliteStore(path)


def connect(opened: sa.Engine) -> None:
    opened.connect().close()
    opened.dispose()


@pytest.mark.parametrize("how", [by_itself, of_the_cloud, of_placement, of_the_dashboard])
def test_a_file_in_use_is_waited_for(
    how: Callable[[Path], None], path: Path, other: sqlite3.Connection
) -> None:
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(how, path)
        with pytest.raises(TimeoutError):
            opening.result(timeout=0.2)
        other.execute("COMMIT")
        opening.result(timeout=30)
    with contextlib.closing(sqlite3.connect(path)) as again:
        assert again.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_not_forever(path: Path, other: sqlite3.Connection) -> None:
    with (
        contextlib.closing(sqlite3.connect(path)) as opened,
        pytest.raises(sqlite3.OperationalError, match="database is locked"),
    ):
        write_ahead.switch(opened, 0.1)


def test_other_faults_are_raised_at_once(tmp_path: Path) -> None:
    (tmp_path / "other.db").write_text("not a database, but a text " * 100)
    with (
        contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as opened,
        pytest.raises(sqlite3.DatabaseError, match="not a database"),
    ):
        write_ahead.switch(opened, 30)
