"""``instance.exists``: sent for which servers of an audit period, and once for each."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import config
from common.resources.audit_periods import AuditPeriods
from conductor import config as conductor_config
from conductor.notifications.sender import Sender
from conductor.notifications.usage_audit import MORE_SECONDS, UsageAudits
from conductor.store.servers import usage_audits
from conductor.store.transactions import Store
from db import engine, schema
from db.reads.servers.usage_audits import find
from tests.fixtures.compute import a_full_server, uuid_of
from tests.fixtures.notifications import differences
from tests.functional.conductor.notification_bus import VERSIONED, Bus, data

DAY = datetime.timedelta(days=1)
NOW = datetime.datetime(2026, 3, 17, 12, tzinfo=datetime.UTC)
BEGIN, END = AuditPeriods("day").last(NOW)
INSIDE, LONG_AGO = BEGIN + DAY / 2, BEGIN - 9 * DAY


def fill(store: Store, *rows: Any) -> None:
    def work(connection: sa.Connection) -> None:
        for table, values in rows:
            connection.execute(table.insert().values(**values))

    store.run(work)


def servers(count: int) -> list[Any]:
    return [a_full_server(number, launched_at=LONG_AGO) for number in range(1, count + 1)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    url = f"sqlite:///{tmp_path}/cloud.sqlite"
    engines = engine.writer(url), engine.reader(url)
    schema.metadata.create_all(engines[0])
    yield Store(*engines)
    for one in engines:
        one.dispose()


def an_audit(
    store: Store,
    wake: Callable[[], None] = lambda: None,
    *,
    most: int = 100_000,
    now: datetime.datetime = NOW,
) -> UsageAudits:
    return UsageAudits(store, "day", most, wake, now=lambda: now)


def outboxed(store: Store) -> list[str]:
    with store.read() as connection:
        outbox = schema.notification_outbox
        query = sa.select(outbox.c.server_uuid).order_by(outbox.c.id)
        return list(connection.execute(query).scalars())


def test_servers_that_were_there_in_the_period_are_recorded_once(store: Store) -> None:
    fill(
        store,
        a_full_server(1, launched_at=LONG_AGO),
        a_full_server(2, launched_at=INSIDE, vm_state="stopped"),
        a_full_server(3, launched_at=LONG_AGO, vm_state="deleted", terminated_at=INSIDE),
        a_full_server(4, launched_at=LONG_AGO, vm_state="deleted", terminated_at=NOW),
        a_full_server(5, launched_at=LONG_AGO, vm_state="deleted", terminated_at=BEGIN),
        a_full_server(6, launched_at=END),
        a_full_server(7, launched_at=None, host=None, vm_state="error"),
        a_full_server(8, launched_at=LONG_AGO, vm_state="shelved_offloaded"),
        a_full_server(9, launched_at=LONG_AGO, host="pve2"),
    )
    assert an_audit(store).look() is None
    assert outboxed(store) == [uuid_of(number) for number in (1, 2, 3, 4, 9)]
    with store.read() as connection:
        done = find(connection, (BEGIN, END))
    assert done is not None
    assert (done.servers_by_host, done.finished_at is None) == ({"pve1": 4, "pve2": 1}, False)
    assert an_audit(store).look() is None
    assert len(outboxed(store)) == 5
    # The next day's.
    assert an_audit(store, now=NOW + DAY).look() is None
    assert outboxed(store)[5:] == [uuid_of(number) for number in (1, 2, 4, 6, 9)]


def test_what_is_sent_is_as_nova_sends_it(store: Store) -> None:
    gone = a_full_server(2, launched_at=LONG_AGO, terminated_at=INSIDE, vm_state="deleted")
    fill(store, *servers(1), gone)
    an_audit(store).look()
    conf, bus = config.load([conductor_config.register]), Bus()
    conf.set_override("notification_format", "both", group="notifications")
    Sender(conf, store, "c1", bus.send).send_all()
    assert bus.names() == ["instance.exists"] * 2
    for topic, message in bus.sent:
        if topic == VERSIONED:
            found = differences(message.event_type, message.priority, message.payload)
            assert found == []
    sent = bus.last("instance.exists")
    assert sent.publisher == "nova-compute:pve1"
    assert data(sent)["audit_period"]["nova_object.data"] == {
        "audit_period_beginning": "2026-03-16T00:00:00Z",
        "audit_period_ending": "2026-03-17T00:00:00Z",
    }
    assert (data(sent)["uuid"], data(sent)["state"]) == (uuid_of(2), "deleted")
    assert data(sent)["request_id"] is None
    older = bus.last("compute.instance.exists").payload
    assert older["audit_period_beginning"] == "2026-03-16 00:00:00"
    assert older["audit_period_ending"] == "2026-03-17 00:00:00"
    assert older["instance_id"] == uuid_of(2)


class Killed(BaseException):
    """The conductor's end."""


def die(*_: object) -> None:
    raise Killed


@contextlib.contextmanager
def dies_at(store: Store, statement: str) -> Iterator[None]:
    def look(connection: Any, cursor: Any, text: str, *_: Any) -> None:
        if text.startswith(statement):
            die()

    sa.event.listen(store._writer, "before_cursor_execute", look)
    yield
    sa.event.remove(store._writer, "before_cursor_execute", look)


def test_the_next_conductor_goes_on_where_one_died(store: Store) -> None:
    """It dies before and after each commit: nothing of a page is there, or all of it."""
    fill(store, *servers(5))
    whole = [uuid_of(number) for number in range(1, 6)]
    outbox = schema.notification_outbox
    for done in (0, 2, 4):
        with dies_at(store, "INSERT INTO notification_outbox"), pytest.raises(Killed):
            an_audit(store, most=4).look()
        assert outboxed(store) == whole[:done]
        with pytest.raises(Killed):
            an_audit(store, die, most=4).look()
        assert outboxed(store) == whole[: done + 2]
        # They stay to be counted, and are in nobody's way.
        store.run(lambda c: c.execute(outbox.update().values(set_aside_at=NOW)))
    assert an_audit(store, die).look() is None


def test_no_more_is_recorded_than_the_outbox_has_room_for(store: Store) -> None:
    fill(store, *servers(7))
    audit = an_audit(store, most=4)
    seen = []
    while (again := audit.look()) is not None:
        assert again == MORE_SECONDS
        seen.append(len(outboxed(store)))
        store.run(lambda c: c.execute(schema.notification_outbox.delete()))
    assert seen == [4]
    assert len(outboxed(store)) == 3


def test_a_period_that_was_not_recorded_in_time_is_given_up(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    fill(store, *servers(7))
    assert an_audit(store, most=2).look() == MORE_SECONDS
    begun = len(outboxed(store))
    assert begun < 7
    late = an_audit(store, now=NOW + 5 * DAY)
    assert late.look() is None
    assert len(outboxed(store)) == begun + 7
    assert "The usage audit from 2026-03-16" in caplog.text
    with store.read() as connection:
        assert find(connection, (BEGIN, END)) is None


def test_of_old_periods_some_are_kept(store: Store) -> None:
    for day in range(usage_audits.KEPT + 2):
        assert an_audit(store, now=NOW + day * DAY).look() is None
    with store.read() as connection:
        query = sa.select(sa.func.count()).select_from(schema.usage_audits)
        assert connection.execute(query).scalar_one() == usage_audits.KEPT


def test_of_two_conductors_one_records_a_server(store: Store) -> None:
    """The second has read how far the audit is before the first writes more."""
    fill(store, *servers(3))
    first, second = an_audit(store), an_audit(store)
    known = second._begin((BEGIN, END))
    with store.read() as connection:
        found = usage_audits.page(connection, (BEGIN, END), 0, 100)
    assert first.look() is None
    second._write_page((BEGIN, END), known, found)
    assert len(outboxed(store)) == 3
