"""Every SQLite file of a cloud has a write-ahead log, and who finds it busy waits for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from db import engine, migrate
from identity.layout import Job, identity_at
from identity.prepare import configuration
from placement.db import migrate as placement_migrate
from placement.db.engine import Database

LEAST_MS = 10_000


def of_placement(url: str) -> list[sa.Engine]:
    database = Database(url)
    return [database.reader, database.writer]


def of_the_cloud(url: str) -> list[sa.Engine]:
    return [engine.reader(url), engine.writer(url)]


@pytest.mark.parametrize(
    ("upgrade", "engines"),
    [(migrate.upgrade, of_the_cloud), (placement_migrate.upgrade, of_placement)],
    ids=["cloud", "placement"],
)
def test_how_files_are_opened(
    sqlite_url: str, upgrade: Callable[[str], None], engines: Callable[[str], list[sa.Engine]]
) -> None:
    upgrade(sqlite_url)
    for one in engines(sqlite_url):
        with one.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
            assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() >= LEAST_MS
        one.dispose()


def test_how_keystone_opens_its_file(tmp_path: Path) -> None:
    """Its log is tried in tests/functional/identity, on the running one."""
    job = Job((identity_at("http://127.0.0.1:5000/v3"),), {})
    lines = configuration(tmp_path, job).splitlines()
    urls = [line for line in lines if line.startswith(("connection", "slave_connection"))]
    assert len(urls) == 2
    for line in urls:
        assert int(line.rpartition("?timeout=")[2]) * 1000 >= LEAST_MS
