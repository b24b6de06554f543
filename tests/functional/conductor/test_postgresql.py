"""What two conductors do at the same time, where the database lets both in."""

from __future__ import annotations

import threading

import sqlalchemy as sa

from common import clock, ids
from common.messages.facts import ClusterFacts, Heartbeat, ImageFacts
from conductor.store.hosts import registry
from conductor.store.transactions import Store
from db import engine, schema
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401

IMAGE = ids.named("image", "debian-12")
_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


def a_beat(cluster: str, volid: str) -> Heartbeat:
    image = ImageFacts(IMAGE, "debian-12", volid, 1, "qcow2", "s")
    facts = ClusterFacts(cluster, "9.2", True, (image,), 100, 200)
    return Heartbeat(f"w-{cluster}", clock.utcnow(), (), (), (facts,))


def test_clusters_that_report_one_image_at_once_are_both_kept(
    postgres_url: str,  # noqa: F811
) -> None:
    writer = engine.writer(postgres_url)
    schema.metadata.create_all(writer)
    reader = engine.reader(postgres_url)
    store = Store(writer, reader)
    store.run(lambda c: registry.take(c, a_beat("c1", "s:import/old.qcow2")))

    def take_second() -> None:
        store.run(lambda c: registry.take(c, a_beat("c2", "t:import/x.qcow2")))

    second = threading.Thread(target=take_second)

    def take_first(connection: sa.Connection) -> None:
        registry.take(connection, a_beat("c1", "s:import/new.qcow2"))
        second.start()
        tick = threading.Event()
        with store.read() as looking:
            while not looking.exec_driver_sql(_WAITING).scalar_one():
                assert second.is_alive()
                looking.rollback()
                tick.wait(0.01)

    store.run(take_first)
    second.join(30)
    with store.read() as connection:
        locations = connection.execute(sa.select(schema.images.c.locations)).scalar_one()
    assert locations == {"c1": "s:import/new.qcow2", "c2": "t:import/x.qcow2"}
    writer.dispose()
    reader.dispose()
