"""Connections that the server ended are seen before they are used; readers can't write."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from conductor.store.transactions import Store
from db import engine, schema

_END = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"


@pytest.mark.parametrize("opened", [engine.writer, engine.reader])
def test_a_connection_that_the_server_ended_is_replaced(
    postgres_url: str, opened: Callable[[str], sa.Engine]
) -> None:
    used, other = opened(postgres_url), engine.writer(postgres_url)
    try:
        with used.connect() as one, used.connect() as two:
            pids = {c.exec_driver_sql("SELECT pg_backend_pid()").scalar_one() for c in (one, two)}
        with other.connect() as connection:
            ended = connection.exec_driver_sql(
                _END + " AND datname = current_database()"
            ).scalars()
            assert len(list(ended)) >= 2
        for _ in range(2):
            with used.connect() as connection:
                pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
                assert pid not in pids
    finally:
        used.dispose()
        other.dispose()


def test_a_connection_that_was_idle_for_long_is_tried(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = engine.writer(postgres_url, idle_seconds=-1.0)
    pings: list[object] = []
    ping = writer.dialect.do_ping

    def counted(connection: object) -> bool:
        pings.append(connection)
        return ping(connection)  # type: ignore[arg-type]

    monkeypatch.setattr(writer.dialect, "do_ping", counted)
    for _ in range(2):
        with writer.connect() as connection:
            assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1
    assert len(pings) == 1
    writer.dispose()


def test_a_transaction_that_stands_still_is_ended_and_repeated(postgres_url: str) -> None:
    """Such as that of a frozen process: others get at its rows, and nothing of it is written."""
    slow = engine.writer(postgres_url, standstill_seconds=0.5)
    other = engine.writer(postgres_url)
    schema.metadata.create_all(other)
    row = schema.project_locks.insert().values(project_id="p")
    lock = sa.select(schema.project_locks).with_for_update()
    with other.begin() as connection:
        connection.execute(row)
    runs: list[int] = []

    def work(connection: sa.Connection) -> int:
        found = len(connection.execute(lock).all())
        runs.append(found)
        if len(runs) == 1:
            # What waits for the lock gets it, though nothing continues here.
            with other.begin() as waiting:
                assert len(waiting.execute(lock).all()) == 1
        return found

    def ends(connection: sa.Connection) -> None:
        connection.execute(schema.project_locks.insert().values(project_id=f"p{len(runs)}"))
        work(connection)

    store = Store(slow, other)
    try:
        # At its commit, and at a statement before.
        assert store.run(work) == 1
        assert runs == [1, 1]
        runs.clear()
        store.run(ends)
        with other.connect() as connection:
            names = set(connection.execute(sa.select(schema.project_locks.c.project_id)).scalars())
        assert names == {"p", "p1"}
    finally:
        slow.dispose()
        other.dispose()


def test_a_reader_can_not_write(postgres_url: str) -> None:
    writer, reader = engine.writer(postgres_url), engine.reader(postgres_url)
    schema.metadata.create_all(writer)
    with reader.connect() as connection, pytest.raises(sa.exc.DBAPIError, match="read-only"):
        connection.execute(schema.project_locks.insert(), {"project_id": "p"})
    writer.dispose()
    reader.dispose()


def test_sessions_give_times_in_utc(postgres_url: str) -> None:
    owner = sa.create_engine(postgres_url, isolation_level="AUTOCOMMIT")
    with owner.connect() as connection:
        name = sa.make_url(postgres_url).database
        connection.exec_driver_sql(f"ALTER DATABASE {name} SET timezone = 'Asia/Tokyo'")
    for one in (engine.writer(postgres_url), engine.reader(postgres_url)):
        with one.connect() as connection:
            for _ in range(2):
                now = connection.execute(sa.select(sa.func.now())).scalar_one()
                assert now.tzinfo is datetime.UTC
                connection.rollback()
        one.dispose()
    owner.dispose()
