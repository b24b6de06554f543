"""Which releases use a database: by the signs of services, and by the names of sessions."""

from __future__ import annotations

import datetime

import sqlalchemy as sa

from common import clock
from common.release import VERSION
from conductor.store.hosts import registry
from db import engine, migrate
from db.reads import releases
from db.reads.releases import Running


def named(url: str, name: str) -> str:
    """The URL of a process that names itself so."""
    return sa.make_url(url).update_query_dict({"application_name": name}).render_as_string(False)


def test_services_say_their_release_until_they_fall_silent(sqlite_url: str) -> None:
    migrate.upgrade(sqlite_url)
    since = clock.utcnow() - datetime.timedelta(seconds=60)
    writer = engine.writer(sqlite_url)
    try:
        with writer.begin() as connection:
            registry.seen(connection, "conductor", ["a"], worker="a", version="1.0.0")
            registry.seen(connection, "scheduler", ["b"], worker="b")
            found = releases.running(connection, since)
            assert found == [Running("conductor a", "1.0.0"), Running("scheduler b", "")]
            assert str(found[1]) == "scheduler b (of an unknown release)"
            later = since + datetime.timedelta(seconds=120)
            assert releases.running(connection, later) == []
    finally:
        writer.dispose()


def test_sessions_say_their_release(postgres_url: str) -> None:
    migrate.upgrade(postgres_url)
    ours, old = engine.reader(postgres_url), engine.reader(named(postgres_url, "micronova/0.9.0"))
    other = engine.reader(named(postgres_url, "psql"))
    with ours.connect() as first, ours.connect(), old.connect(), other.connect():
        shown = releases.connected(first)
    for one in (ours, old, other):
        one.dispose()
    assert {one.version for one in shown} == {"0.9.0", VERSION}
    assert {one.name for one in shown} == {"1 database session"}
