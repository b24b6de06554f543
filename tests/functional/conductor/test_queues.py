"""What heartbeats say of queues is stored with each host, by the statement that notes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from common import clock
from common.messages.facts import Heartbeat, HostFacts
from common.messages.queues import OPERATIONS, STORAGE, Queue, Queues
from conductor.store.hosts import registry
from conductor.store.transactions import Store
from db import engine, schema
from db.reads.hosts import queues
from tests.fixtures.listings import counted
from tests.functional.db.conftest import (  # noqa: F401
    mariadb_server,
    mariadb_url,
    postgres_server,
    postgres_url,
    sqlite_url,
    url,
)

HOSTS = ("pve1", "pve2", "pve3")
IDLE = (Queue(OPERATIONS, OPERATIONS, 32, shared=True),)
BUSY = (
    dataclasses.replace(IDLE[0], running=2, waiting=1, oldest_waiting_seconds=1.5),
    Queue(STORAGE, "it's: local\\", 4, shared=False, running=2),
)


def some_facts(host: str) -> HostFacts:
    return HostFacts(host, "c1", host, f"uuid-{host}", "w1", "nova", clock.utcnow())


@pytest.fixture
def store(url: str) -> Iterator[Store]:  # noqa: F811
    writer, reader = engine.writer(url), engine.reader(url)
    schema.metadata.create_all(writer)
    yield Store(writer, reader)
    writer.dispose()
    reader.dispose()


def beat(store: Store, reported: Queues | None, facts: tuple[HostFacts, ...] = ()) -> int:
    """Take a heartbeat; return the number of its statements."""
    heartbeat = Heartbeat("w1", clock.utcnow(), HOSTS, facts, queues=reported)
    with counted(store._writer) as count:
        store.run(lambda connection: registry.take(connection, heartbeat))
        return count()


def stored(store: Store) -> list[tuple[Queue, ...] | None]:
    with store.read() as connection, counted(store._reader) as count:
        found = queues.list_queues(connection, 10)
        assert count() == 1
    assert [one.host for one in found] == list(HOSTS)
    assert all(one.reported_at is not None for one in found)
    return [one.queues for one in found]


def test_each_host_has_what_its_agent_said_last(store: Store) -> None:
    beat(store, Queues(IDLE, {"pve2": BUSY, "gone": BUSY}), tuple(map(some_facts, HOSTS)))
    assert stored(store) == [IDLE, BUSY, IDLE]
    statements = beat(store, Queues(IDLE, {"pve1": BUSY, "pve3": (*BUSY, BUSY[1])}))
    assert stored(store) == [BUSY, IDLE, (*BUSY, BUSY[1])]
    assert beat(store, Queues(IDLE)) == statements
    assert stored(store) == [IDLE] * 3
    assert beat(store, None) == statements
    assert stored(store) == [None] * 3
