"""What the ledger forgets of old operations, and what it must not."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import sqlalchemy as sa

from common import clock, config
from common.context import RequestContext
from common.messages.reports import Category, Failure, Step
from common.messages.scheduling import Decision
from common.resources.states import OperationState
from conductor import config as conductor_config
from conductor.engine.history import History
from conductor.rpc.refusals import Refused
from conductor.store import call_answers
from conductor.store.ledger import history, refusals
from conductor.store.ledger import operations as ledger
from conductor.store.ledger.operations import NewOperation
from conductor.store.transactions import Store
from db import engine, schema
from tests.fixtures import listings
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401

pytestmark = pytest.mark.sampled(2)

NOW = clock.utcnow()
OLD = NOW - datetime.timedelta(days=100)
LIMIT = NOW - datetime.timedelta(days=90)
DETAILS = ("decisions", "operation_events", "transitions", "faults")


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = f"sqlite:///{tmp_path}/cloud.sqlite"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_url")
    engines = engine.writer(url), engine.reader(url)
    schema.metadata.create_all(engines[0])
    yield Store(*engines)
    for one in engines:
        one.dispose()


def operation(
    store: Store,
    server: str,
    at: datetime.datetime,
    *,
    state: OperationState = OperationState.FAILED,
) -> int:
    """One with a row of each kind; returns its id."""

    def work(connection: sa.Connection) -> int:
        new = NewOperation(server, "project", "create", "conductor", 60.0, 900.0)
        [made] = ledger.insert(connection, RequestContext(request_id="req-1"), [new])
        ended = None if state == OperationState.RUNNING else at
        ledger.save(connection, made.id, started_at=at, finished_at=ended, state=state)
        ledger.record_decision(connection, made, Decision(server, None))
        step = Step("conductor_schedule", 0, at, at, "Success")
        ledger.upsert_events(connection, [ledger.conductor_event(made, step)])
        ledger.record_failure(connection, made, Failure(Category.LOCK, "no"))
        move = {
            "server_uuid": server,
            "operation_id": made.id,
            "from_vm_state": "building",
            "to_vm_state": "error",
            "at": at,
        }
        connection.execute(schema.transitions.insert(), move)
        return made.id

    return store.run(work)


def kept(store: Store) -> dict[str, set[int]]:
    """The operations that each table still records."""
    with store.read() as connection:
        return {
            name: set(
                connection.execute(
                    sa.select(schema.metadata.tables[name].c.operation_id)
                ).scalars()
            )
            for name in DETAILS
        }


def only(ids: set[int]) -> dict[str, set[int]]:
    return dict.fromkeys(DETAILS, ids)


def forget(
    store: Store,
    before: datetime.datetime | None = LIMIT,
    newest: int | None = None,
    batch: int = 100,
) -> int:
    return store.run(lambda c: history.delete_old(c, before, newest, batch))


def test_the_old_is_forgotten_but_not_that_it_was(store: Store) -> None:
    operation(store, "gone", OLD)
    new = operation(store, "gone", NOW)
    assert forget(store) == 1
    assert kept(store) == only({new})
    assert forgotten(store) == [True, False]
    with store.read() as connection:
        at = connection.execute(sa.select(schema.operations.c.forgotten_at)).scalars().first()
    assert forget(store) == 0
    with store.read() as connection:
        assert connection.execute(sa.select(schema.operations.c.forgotten_at)).scalar() == at


def forgotten(store: Store) -> list[bool]:
    """Of each operation, whether it is written that its details are not there any more."""
    query = sa.select(schema.operations.c.forgotten_at).order_by(schema.operations.c.id)
    with store.read() as connection:
        return [at is not None for at in connection.execute(query).scalars()]


def test_what_is_open_keeps_everything_however_old(store: Store) -> None:
    held = operation(store, "held", OLD, state=OperationState.RUNNING)
    operation(store, "gone", OLD)
    forget(store, newest=1)
    forget(store, before=None, newest=1)
    assert all(held in ids for ids in kept(store).values())


def test_what_ended_late_is_kept_though_it_began_early(store: Store) -> None:
    late = operation(store, "late", OLD)
    store.run(lambda c: ledger.save(c, late, finished_at=NOW))
    operation(store, "gone", OLD)
    forget(store)
    assert kept(store) == only({late})


def test_a_server_that_is_there_keeps_its_last_fault(store: Store) -> None:
    table, values = listings.a_server(1, uuid="there")
    store.run(lambda c: c.execute(table.insert().values(**values)))
    operation(store, "there", OLD)
    last = operation(store, "there", OLD)
    operation(store, "gone", OLD)
    forget(store)
    assert kept(store) == {**only(set()), "faults": {last}}
    assert forgotten(store) == [True, True, True]
    assert forget(store) == 0


def test_of_more_than_are_kept_the_oldest_are_forgotten(store: Store) -> None:
    ids = [operation(store, "gone", NOW) for _ in range(5)]
    assert forget(store, before=None, newest=2) == 3
    assert kept(store) == only(set(ids[3:]))


def test_little_is_forgotten_at_a_time_the_oldest_first(store: Store) -> None:
    ids = [operation(store, "gone", OLD) for _ in range(5)]
    assert [forget(store, batch=2) for _ in range(4)] == [2, 2, 1, 0]
    assert ids and not any(kept(store).values())


def test_without_bounds_nothing_is_forgotten(store: Store) -> None:
    operation(store, "gone", OLD)
    assert forget(store, before=None) == 0
    assert all(kept(store).values())


def test_a_turn_forgets_what_the_options_do_not_keep(store: Store) -> None:
    conf = config.load([conductor_config.register])
    conf.set_override("history_days", 90, "conductor")
    conf.set_override("history_operations", 0, "conductor")
    ids = [operation(store, "gone", at) for at in (OLD, NOW, NOW)]
    chore = History(cast(Any, SimpleNamespace(store=store, conf=conf)))
    chore.tidy()
    assert kept(store) == only(set(ids[1:]))
    conf.set_override("history_operations", 1, "conductor")
    chore.tidy()
    assert kept(store) == only({ids[2]})


def refuse(store: Store, project: str, answered_at: datetime.datetime = NOW) -> None:
    ctxt = RequestContext(user_id="u", project_id=project, overwrite=False)
    refused = Refused("POST", "/servers", 403, "no", NOW, answered_at, {"limit": [1]})
    store.run(lambda c: refusals.keep(c, ctxt, refused, 3))


def refused(store: Store) -> list[tuple[int, str]]:
    columns = schema.refusals.c
    with store.read() as connection:
        found = connection.execute(sa.select(columns.id, columns.project_id).order_by("id"))
        return [(row.id, row.project_id) for row in found]


def test_of_refused_requests_each_project_has_the_newest(store: Store) -> None:
    for _ in range(5):
        refuse(store, "noisy")
    refuse(store, "quiet")
    refuse(store, "noisy")
    assert refused(store) == [(4, "noisy"), (5, "noisy"), (6, "quiet"), (7, "noisy")]


def test_old_refusals_are_forgotten(store: Store) -> None:
    for at in (OLD, OLD, OLD):
        refuse(store, "old", at)
    refuse(store, "new")
    assert [store.run(lambda c: refusals.delete_old(c, LIMIT, 2)) for _ in range(3)] == [2, 1, 0]
    assert refused(store) == [(4, "new")]
    conf = config.load([conductor_config.register])
    refuse(store, "old", OLD)
    History(cast(Any, SimpleNamespace(store=store, conf=conf))).tidy()
    assert refused(store) == [(4, "new")]


def test_answers_of_calls_are_deleted_once_nobody_repeats_them(store: Store) -> None:
    def answered(connection: sa.Connection) -> None:
        for number, at in enumerate((NOW, NOW - datetime.timedelta(hours=2))):
            row = {"id": str(number), "answer": None, "answered_at": at}
            connection.execute(schema.call_answers.insert(), row)

    store.run(answered)
    store.run(call_answers.delete_old)
    with store.read() as connection:
        assert connection.scalars(sa.select(schema.call_answers.c.id)).all() == ["0"]
