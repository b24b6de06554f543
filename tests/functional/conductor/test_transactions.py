"""What is run again, and what must not be."""

from __future__ import annotations

import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

import prometheus_client
import pytest
import sqlalchemy as sa

from common.errors import Invalid, Unavailable
from common.metrics import table
from common.resources.server_groups import Policy
from common.rpc import UNKNOWN, deadlines
from conductor.rpc.servers.server_groups import NewServerGroup
from conductor.store.servers import server_groups
from conductor.store.transactions import Store
from db import engine, schema
from tests.fixtures import databases


class Lossy:
    """A store on SQLite that loses its connection once, at the n-th statement or the commit."""

    def __init__(self, folder: Path, *, at_commit: bool) -> None:
        url = f"sqlite:///{folder}/cloud.sqlite"
        writer = engine.writer(url)
        self.store = Store(writer, engine.reader(url))
        self.store.run(lambda c: c.exec_driver_sql("CREATE TABLE things (id INTEGER)"))
        self.losses = 1
        event = "commit" if at_commit else "before_cursor_execute"
        sa.event.listen(writer, event, self._lose)

    def _lose(self, connection: sa.Connection, statement: object = "", *_: object) -> None:
        if self.losses and statement != "BEGIN IMMEDIATE":
            self.losses -= 1
            connection.invalidate()
            lost = OSError("the server closed the connection")
            raise sa.exc.OperationalError("", {}, lost, connection_invalidated=True)

    def insert(self) -> None:
        self.store.run(lambda c: c.exec_driver_sql("INSERT INTO things VALUES (1)"))

    def count(self) -> int:
        with self.store.read() as connection:
            return int(connection.exec_driver_sql("SELECT count(*) FROM things").scalar_one())


def test_a_connection_that_is_lost_before_the_commit_is_no_loss(tmp_path: Path) -> None:
    lossy = Lossy(tmp_path, at_commit=False)
    lossy.insert()
    assert lossy.count() == 1


def test_it_is_tried_five_times(tmp_path: Path) -> None:
    store, _ = a_store(tmp_path)
    tries, before = [], _repeated()

    def work(connection: sa.Connection) -> None:
        tries.append(connection)
        raise sa.exc.IntegrityError("", {}, sqlite3.IntegrityError())

    with pytest.raises(sa.exc.IntegrityError):
        store.run(work)
    assert (len(tries), _repeated() - before) == (5, 4)


def _repeated() -> float:
    value = prometheus_client.REGISTRY.get_sample_value(table.SQL_REPEATED.name)
    return value or 0.0


def test_a_transaction_without_errors_costs_no_retrying(tmp_path: Path) -> None:
    store, _ = a_store(tmp_path)
    entered = set()

    def enter(frame: Any, *_: object) -> None:
        entered.add(str(frame.f_globals.get("__name__")).partition(".")[0])

    sys.setprofile(enter)
    try:
        store.run(lambda c: c.exec_driver_sql("SELECT 1"))
    finally:
        sys.setprofile(None)
    assert "sqlalchemy" in entered
    assert "tenacity" not in entered


def test_what_may_have_been_committed_is_not_done_again(tmp_path: Path) -> None:
    lossy = Lossy(tmp_path, at_commit=True)
    with pytest.raises(Unavailable):
        lossy.insert()
    assert lossy.losses == 0
    lossy.insert()
    assert lossy.count() == 1


def test_an_error_writes_nothing(tmp_path: Path) -> None:
    lossy = Lossy(tmp_path, at_commit=True)

    def work(connection: sa.Connection) -> None:
        connection.exec_driver_sql("INSERT INTO things VALUES (1)")
        raise KeyError

    with pytest.raises(KeyError):
        lossy.store.run(work)
    assert lossy.count() == 0


def a_store(folder: Path) -> tuple[Store, sa.Engine]:
    url = f"sqlite:///{folder}/cloud.sqlite"
    writer = engine.writer(url)
    return Store(writer, engine.reader(url)), writer


def test_a_full_disk_is_reported_and_changes_nothing(tmp_path: Path) -> None:
    store, writer = a_store(tmp_path)
    store.run(lambda c: c.exec_driver_sql("CREATE TABLE things (text TEXT)"))

    def fill(connection: sa.Connection) -> None:
        connection.exec_driver_sql("INSERT INTO things VALUES ('small')")
        connection.exec_driver_sql("INSERT INTO things VALUES (?)", ("x" * 1_000_000,))

    def limit(connection: Any, _record: object, _proxy: object) -> None:
        # What SQLite says then is what it says of a disk without room.
        connection.execute(f"PRAGMA max_page_count = {pages[0]}").close()

    pages = [10]
    sa.event.listen(writer, "checkout", limit)
    with pytest.raises(Unavailable, match="disk of the database is full"):
        store.run(fill)
    pages[0] = 2**30
    store.run(fill)  # there is room again
    with store.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM things").scalar_one() == 2


def test_a_value_that_no_column_takes_is_the_requests_fault(tmp_path: Path) -> None:
    store, _ = a_store(tmp_path)
    store.run(lambda c: c.exec_driver_sql("CREATE TABLE things (id INTEGER)"))
    with pytest.raises(Invalid, match="can't be stored"):
        store.run(lambda c: c.exec_driver_sql("INSERT INTO things VALUES (?)", (2**63,)))


def test_a_call_that_comes_twice_makes_one(tmp_path: Path) -> None:
    """The second time its UUID is taken, and the transaction repeated: with the same UUID."""
    url = f"sqlite:///{tmp_path}/cloud.sqlite"
    databases.create(url)
    store = Store(engine.writer(url), engine.reader(url))

    def work(connection: sa.Connection) -> str:
        new = NewServerGroup("p", "u", "web", Policy.AFFINITY, {})
        return server_groups.create(connection, new)

    wait = deadlines.Wait(60.0, call="the call")
    with deadlines.answering(deadlines.Deadline(wait, time.monotonic())):
        store.run(work)
    again = deadlines.Deadline(wait, time.monotonic())
    with pytest.raises(Unavailable) as caught, deadlines.answering(again):
        store.run(work)
    assert caught.value.details["outcome"] == UNKNOWN
    with store.read() as connection:
        assert (
            connection.execute(sa.select(sa.func.count(schema.server_groups.c.id))).scalar() == 1
        )
