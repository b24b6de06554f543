"""Two servers of PostgreSQL, and one takes over: connections lead to the present primary."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from common.databases import primary
from common.errors import Unavailable
from conductor.store.transactions import Store
from db import engine, schema
from placement.db.engine import Database
from tests.functional import postgres_pair
from tests.functional.postgres_pair import Member, Pair
from tests.functional.waiting import eventually

pytestmark = pytest.mark.distributed

LOCKS = schema.project_locks


@pytest.fixture
def pair() -> Iterator[Pair]:
    with postgres_pair.pair() as running:
        running.execute("CREATE DATABASE cloud")
        yield running


@pytest.fixture
def url(pair: Pair) -> str:
    url = pair.url("cloud")
    made = engine.writer(url)
    schema.metadata.create_all(made)
    made.dispose()
    eventually(pair.caught_up)
    return url


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    writer, reader = engine.writer(url), engine.reader(url)
    yield Store(writer, reader)
    writer.dispose()
    reader.dispose()


def port(connection: sa.Connection) -> int:
    return int(connection.exec_driver_sql("SELECT inet_server_port()").scalar_one())


def insert(store: Store, name: str) -> int:
    def work(connection: sa.Connection) -> int:
        connection.execute(LOCKS.insert().values(project_id=name))
        return port(connection)

    return store.run(work)


def names(store: Store) -> set[str]:
    with store.read() as connection:
        return set(connection.scalars(sa.select(LOCKS.c.project_id)))


def test_the_primary_is_found_wherever_it_is_named(pair: Pair, store: Store) -> None:
    insert(store, "before")
    pair.primary, pair.replica = pair.replica, pair.primary
    other = engine.writer(pair.url("cloud"))
    with other.connect() as connection:
        assert port(connection) == pair.replica.port
    other.dispose()


def test_a_replica_that_is_promoted_is_used_at_once(pair: Pair, store: Store) -> None:
    insert(store, "before")
    eventually(pair.caught_up)
    pair.fail_over()
    assert insert(store, "after") == pair.primary.port
    assert names(store) == {"before", "after"}


def test_what_waits_is_answered_while_none_is_promoted_yet(pair: Pair, store: Store) -> None:
    insert(store, "before")
    eventually(pair.caught_up)
    pair.primary.kill()
    later = threading.Timer(3.0, pair.replica.promote)
    later.start()
    try:
        assert insert(store, "after") == pair.replica.port
    finally:
        later.join()


def test_a_server_that_became_a_replica_is_left(pair: Pair, store: Store) -> None:
    """Its connections are open, and statements on them are refused: they are repeated."""
    insert(store, "before")
    pair.fail_over(Member.stop)
    pair.rebuild_replica()
    address = engine.writer(
        f"postgresql+psycopg://postgres@127.0.0.1:{pair.replica.port}/cloud", pool_size=1
    )
    with (
        pytest.raises(sa.exc.DBAPIError, match="read-only") as refused,
        address.connect() as connection,
    ):
        connection.execute(LOCKS.insert().values(project_id="nowhere"))
    # So that the store repeats it on another connection, which leads to the primary by then.
    assert refused.value.connection_invalidated
    address.dispose()
    assert insert(store, "after") == pair.primary.port


def test_a_statement_on_a_frozen_primary_ends_when_another_takes_over(
    pair: Pair, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what the former one takes when it comes back is nobody's."""
    monkeypatch.setattr(primary, "LOOK_SECONDS", 0.5)
    insert(store, "before")
    eventually(pair.caught_up)
    former = pair.primary
    asked, found = threading.Event(), []

    def work(connection: sa.Connection) -> int:
        connection.execute(sa.select(LOCKS)).all()
        if not asked.is_set():
            former.freeze()
            asked.set()
        connection.execute(LOCKS.insert().values(project_id="during"))
        return port(connection)

    thread = threading.Thread(target=lambda: found.append(store.run(work)))
    thread.start()
    try:
        assert asked.wait(30)
        pair.fail_over(Member.freeze)
        thread.join(60)
    finally:
        former.thaw()
    assert found == [pair.primary.port]
    # Two primaries now, and the former one is named first.
    assert former.value("SELECT pg_is_in_recovery()") is False
    assert insert(store, "after") == pair.primary.port
    assert names(store) == {"before", "during", "after"}
    other = engine.writer(f"postgresql+psycopg://postgres@127.0.0.1:{former.port}/cloud")
    with other.connect() as connection:
        assert "during" not in set(connection.scalars(sa.select(LOCKS.c.project_id)))
    other.dispose()


def test_nobody_waits_for_long_for_a_frozen_primary(
    pair: Pair, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(primary, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr(primary, "PATIENCE_SECONDS", 0.5)
    insert(store, "before")

    def work(connection: sa.Connection) -> None:
        connection.execute(sa.select(LOCKS)).all()
        pair.primary.freeze()
        connection.execute(LOCKS.insert().values(project_id="during"))

    try:
        with pytest.raises(Unavailable, match="not available"):
            store.run(work)
    finally:
        pair.primary.thaw()
    eventually(lambda: names(store) == {"before"})


def test_a_process_that_begins_between_two_primaries_takes_the_newer(
    pair: Pair, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    insert(store, "before")
    eventually(pair.caught_up)
    pair.fail_over(Member.freeze)
    pair.replica.thaw()
    monkeypatch.setattr(primary, "_known", {})
    url = pair.url("cloud").replace(
        f"host=127.0.0.1:{pair.primary.port}&host=127.0.0.1:{pair.replica.port}",
        f"host=127.0.0.1:{pair.replica.port}&host=127.0.0.1:{pair.primary.port}",
    )
    made = engine.writer(url)
    with made.connect() as connection:
        assert port(connection) == pair.primary.port
    made.dispose()
    assert "is a former primary" in caplog.text


def test_placement_follows(pair: Pair) -> None:
    pair.execute("CREATE DATABASE placement")
    database = Database(pair.url("placement"))
    database.write(lambda c: c.exec_driver_sql("CREATE TABLE t (x int)"))
    database.read(lambda c: c.exec_driver_sql("SELECT * FROM t").all())
    eventually(pair.caught_up)
    pair.fail_over()
    database.write(lambda c: c.exec_driver_sql("INSERT INTO t VALUES (1)"))
    assert database.read(lambda c: c.exec_driver_sql("SELECT x FROM t").scalar_one()) == 1
    database.close()
