"""What is run again, and what must not be."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from common.errors import Unavailable
from conductor.store.transactions import Store
from db import engine


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
