"""Reads on a replica: what was committed before is read, however far behind the replica is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from common.databases.primary import TIMELINE
from db import engine, replicas, schema
from db.reading import reading
from tests.functional import postgres_pair
from tests.functional.postgres_pair import Member, Pair
from tests.functional.waiting import eventually

pytestmark = pytest.mark.distributed

LOCKS = schema.project_locks


class Cloud:
    """A writer, and what the API reads by."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.writer = engine.writer(pair.url("cloud"))
        schema.metadata.create_all(self.writer)
        with self.writer.begin() as connection:
            row = {"id": 1, "cloud_id": "c", "timeline": connection.info[TIMELINE]}
            connection.execute(schema.cloud_identity.insert(), row)
        self.reader = engine.reader(pair.url("cloud"))
        address = f"postgresql+psycopg://postgres@127.0.0.1:{pair.replica.port}/cloud"
        self.replica = engine.reader(address)
        replicas.use(self.reader, self.replica)
        eventually(pair.caught_up)

    def write(self, name: str) -> None:
        with self.writer.begin() as connection:
            connection.execute(LOCKS.insert().values(project_id=name))

    def read(self) -> tuple[set[str], int]:
        """What there is, and the port of the server that says so."""
        with reading(self.reader) as connection:
            found = set(connection.scalars(sa.select(LOCKS.c.project_id)))
            port = connection.exec_driver_sql("SELECT inet_server_port()").scalar_one()
        return found, port

    def close(self) -> None:
        for one in (self.writer, self.reader, self.replica):
            one.dispose()


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    monkeypatch.setattr(replicas, "BEHIND_SECONDS", 0.2)
    with postgres_pair.pair() as pair:
        pair.execute("CREATE DATABASE cloud")
        made = Cloud(pair)
        yield made
        made.close()


def test_what_was_written_is_read_though_the_replica_stands_still(cloud: Cloud) -> None:
    pair = cloud.pair
    cloud.write("one")
    eventually(lambda: cloud.read() == ({"one"}, pair.replica.port))
    pair.replica.server.execute("SELECT pg_wal_replay_pause()")
    for name in ("two", "three"):
        cloud.write(name)
        found, port = cloud.read()
        assert name in found
        assert port == pair.primary.port
    pair.replica.server.execute("SELECT pg_wal_replay_resume()")
    eventually(lambda: cloud.read() == ({"one", "two", "three"}, pair.replica.port))


def test_without_its_replica_the_primary_is_read(cloud: Cloud) -> None:
    cloud.write("one")
    eventually(lambda: cloud.read()[1] == cloud.pair.replica.port)
    cloud.pair.replica.stop()
    assert cloud.read() == ({"one"}, cloud.pair.primary.port)


def test_a_replica_that_was_promoted_is_no_replica(cloud: Cloud) -> None:
    cloud.write("one")
    eventually(cloud.pair.caught_up)
    cloud.pair.fail_over(Member.kill)
    cloud.write("two")
    assert cloud.read() == ({"one", "two"}, cloud.pair.primary.port)


def test_a_replica_of_another_timeline_is_not_read(cloud: Cloud) -> None:
    """As of a former primary, on which somebody wrote more than on the present one."""
    cloud.write("one")
    eventually(lambda: cloud.read()[1] == cloud.pair.replica.port)
    statement = "UPDATE cloud_identity SET timeline = '77/9'"
    cloud.pair.execute(statement, database="cloud")
    assert cloud.read() == ({"one"}, cloud.pair.primary.port)
