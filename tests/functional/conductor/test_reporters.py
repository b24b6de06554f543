"""Which worker is believed on which hosts and clusters."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock
from common.errors import Forbidden
from common.rpc import senders
from conductor.sync.reporters import AGAIN_SECONDS, READ_SECONDS, Reporters
from db import engine, schema
from tests.fixtures import databases
from tests.fixtures.compute import a_host, a_service

MINE, OTHER = (senders.user_of(senders.COMPUTE, name) for name in ("w1", "w2"))
DOWN_SECONDS = 60.0


class Record:
    """The database, with a time of its own."""

    def __init__(self, url: str) -> None:
        self._writer = engine.writer(url)
        self.at = 0.0
        self.read_count = 0
        self.add("pve1", "w1", "east")
        self.add("pve2", "w2", "west")

    def add(self, host: str, worker: str, cluster: str) -> None:
        for table, values in (a_service(host, worker=worker), a_host(host, cluster=cluster)):
            with self._writer.begin() as connection:
                connection.execute(table.insert().values(**values))

    def seen(self, host: str, seconds_ago: float) -> None:
        at = clock.utcnow() - datetime.timedelta(seconds=seconds_ago)
        mine = schema.services.c.host == host
        with self._writer.begin() as connection:
            connection.execute(schema.services.update().where(mine).values(last_seen_at=at))

    @contextlib.contextmanager
    def read(self) -> Iterator[sa.Connection]:
        self.read_count += 1
        with self._writer.connect() as connection:
            yield connection

    def close(self) -> None:
        self._writer.dispose()


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    url = f"sqlite:///{tmp_path / 'cloud.sqlite'}"
    databases.create(url)
    made = Record(url)
    yield made
    made.close()


@pytest.fixture
def reporters(record: Record) -> Reporters:
    store: Any = record
    return Reporters(store, DOWN_SECONDS, lambda: record.at)


def test_a_worker_reports_on_its_hosts(record: Record, reporters: Reporters) -> None:
    for _ in range(50):
        reporters.check_hosts(MINE, ["pve1"])
        reporters.check_cluster(MINE, "east")
    assert record.read_count == 1
    with pytest.raises(Forbidden):
        reporters.check_hosts(MINE, ["pve2"])
    assert record.read_count == 2
    for hosts in (["pve2"], ["pve1", "pve2"], ["nobody"]):
        with pytest.raises(Forbidden):
            reporters.check_hosts(MINE, hosts)
    with pytest.raises(Forbidden):
        reporters.check_cluster(MINE, "west")
    assert record.read_count == 2  # refusals don't make the database work


def test_who_is_no_worker_is_not_asked(record: Record, reporters: Reporters) -> None:
    for user in (None, "micronova", senders.user_of(senders.CONDUCTOR)):
        reporters.check_hosts(user, ["pve1", "nobody"])
        reporters.check_cluster(user, "west")
        reporters.check_claim(user, ["pve2"])
    assert record.read_count == 0


def test_a_new_host_is_known_soon(record: Record, reporters: Reporters) -> None:
    with pytest.raises(Forbidden):
        reporters.check_hosts(MINE, ["pve3"])
    record.add("pve3", "w1", "east")
    record.at += AGAIN_SECONDS
    reporters.check_hosts(MINE, ["pve3"])


def test_a_host_that_has_moved_is_its_new_worker_s(record: Record, reporters: Reporters) -> None:
    reporters.check_hosts(MINE, ["pve1"])
    with record.read() as connection, connection.begin():
        mine = schema.services.c.host == "pve1"
        connection.execute(schema.services.update().where(mine).values(worker="w2"))
    record.at += READ_SECONDS
    reporters.check_hosts(OTHER, ["pve1"])
    with pytest.raises(Forbidden):
        reporters.check_hosts(MINE, ["pve1"])


def test_a_worker_that_takes_over_is_believed_at_once(
    record: Record, reporters: Reporters
) -> None:
    with pytest.raises(Forbidden):
        reporters.check_hosts(MINE, ["nobody"])  # has just had the record read
    with record.read() as connection, connection.begin():
        mine = schema.services.c.host == "pve1"
        connection.execute(schema.services.update().where(mine).values(worker="w2@7"))
    reporters.check_hosts(OTHER, ["pve1"])
    reporters.check_cluster(OTHER, "east")


def test_a_host_is_taken_over_when_its_worker_is_silent(
    record: Record, reporters: Reporters
) -> None:
    record.seen("pve2", 5)
    with pytest.raises(Forbidden):
        reporters.check_claim(MINE, ["pve1", "pve2"])
    reporters.check_claim(MINE, ["pve1", "new"])
    record.seen("pve2", DOWN_SECONDS + 5)
    record.at += AGAIN_SECONDS
    reporters.check_claim(MINE, ["pve1", "pve2"])
