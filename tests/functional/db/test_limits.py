"""A statement of the API ends in time, on every kind of database."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from common.errors import Invalid, Unavailable
from db import engine, limits, migrate
from db.reading import reading
from db.reads.patterns import bounded
from db.reads.servers import servers
from tests.fixtures.listings import a_server

#: statements that take minutes
SLOW = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT max(i) FROM n",
    "postgresql": "SELECT pg_sleep(600)",
    "mysql": "SELECT SLEEP(600)",
}

#: patterns on which an engine that tries every way would never end
HOSTILE = ("(a?){60}a{60}c", "(a+)+c", "(.*a){20}c", "((a?)*)*c")


@contextlib.contextmanager
def opened(url: str, seconds: float | None) -> Iterator[sa.Engine]:
    reader = engine.reader(url, statement_seconds=seconds)
    try:
        yield reader
    finally:
        reader.dispose()


def test_a_slow_statement_is_ended(url: str) -> None:
    migrate.upgrade(url)
    with opened(url, 0.2) as reader:
        slow = sa.text(SLOW[reader.dialect.name])
        for _ in range(2):  # the connection is of use again, and as limited as before
            with reader.connect() as connection, pytest.raises(exc.OperationalError) as ended:
                connection.execute(slow).all()
            assert limits.exceeded(ended.value)
            with reader.connect() as connection:
                assert connection.execute(sa.text("SELECT 1")).scalar_one() == 1
        with pytest.raises(Unavailable, match="too long"), reading(reader) as connection:
            connection.execute(slow).all()
        with (
            pytest.raises(Invalid, match=r"a\.b"),
            reading(reader) as connection,
            bounded(["a.b"]),
        ):
            connection.execute(slow).all()


def test_other_failures_are_no_slowness(url: str) -> None:
    with opened(url, 60) as reader:
        with reader.connect() as connection, pytest.raises(exc.DBAPIError) as failed:
            connection.execute(sa.text("SELECT * FROM nowhere"))
        assert not limits.exceeded(failed.value)


def test_hostile_patterns_end(url: str) -> None:
    """Found, not found, or refused as too slow; but answered."""
    migrate.upgrade(url)
    writer = engine.writer(url)
    with writer.begin() as connection:
        for number in range(20):
            table, values = a_server(number, name="a" * 250 + f"{number:03}")
            connection.execute(table.insert().values(**values))
    writer.dispose()
    with opened(url, 2) as reader:
        for pattern in HOSTILE:
            filters = servers.Filters(patterns={"name": pattern})
            with contextlib.suppress(Invalid), reading(reader) as connection:
                assert servers.list_servers(connection, filters) == []
        filters = servers.Filters(patterns={"name": "^a+00[0-9]$"})
        with reading(reader) as connection:
            assert len(servers.list_servers(connection, filters)) == 10
