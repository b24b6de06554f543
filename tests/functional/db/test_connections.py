"""Connections that the server ended are seen before they are used; readers can't write."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sqlalchemy as sa

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


def test_a_reader_can_not_write(postgres_url: str) -> None:
    writer, reader = engine.writer(postgres_url), engine.reader(postgres_url)
    schema.metadata.create_all(writer)
    with reader.connect() as connection, pytest.raises(sa.exc.DBAPIError, match="read-only"):
        connection.execute(schema.project_locks.insert(), {"project_id": "p"})
    writer.dispose()
    reader.dispose()
