"""A conductor beside a newer one, whose operations it can't read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from common import clock
from common.messages.reports import Outcome, Report
from conductor.store.ledger import leases
from db import schema
from tests.functional.conductor.harness import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.conductor.runner.stop()
    made.scheduler.gate.clear()
    made.create(min_count=3, max_count=3)
    yield made
    made.close()


def change(world: World, number: int, **values: object) -> None:
    statement = schema.operations.update().where(schema.operations.c.id == number)
    world.conductor.store.run(lambda c: c.execute(statement.values(**values)))


def all_due(world: World) -> list[int]:
    ids = [row.id for row in world.rows(schema.operations)]
    for number in ids:
        change(world, number, lease_owner=None, lease_expires_at=None, not_before=clock.after(-5))
    return ids


def test_what_it_cannot_read_is_left_to_the_newer_one(world: World) -> None:
    first, second, third = all_due(world)
    change(world, second, plan={"target": {"host": 7}})
    due = world.conductor.store.run(lambda c: leases.due(c, "c1", 60, 9, {"create"}))
    assert [one.id for one in due] == [first, third]
    [left] = [row for row in world.rows(schema.operations) if row.id == second]
    assert (left.lease_owner, left.lease_expires_at, left.state) == (None, None, "queued")
    assert left.not_before > clock.utcnow()
    assert left.plan == {"target": {"host": 7}}


def test_what_it_does_not_know_is_left_to_the_newer_one(world: World) -> None:
    first, second, third = all_due(world)
    change(world, second, action="teleport")
    due = world.conductor.store.run(lambda c: leases.due(c, "c1", 60, 9, {"create"}))
    assert [one.id for one in due] == [first, third]


@pytest.mark.parametrize("values", [{"action": "teleport"}, {"plan": {"target": {"host": 7}}}])
def test_a_report_on_it_stops_no_other(world: World, values: dict[str, object]) -> None:
    first, second, _ = all_due(world)
    host = {"host": "pve1", "cluster": "c", "node": "pve1", "vmid": 1}
    change(world, first, plan={"target": host})
    change(world, second, **({"plan": {"target": host}} | values))
    about = {row.id: (row.resource_type, row.resource_id) for row in world.rows(schema.operations)}
    done: list[int] = []
    world.conductor.runner._flows["create"].finished = lambda one, _: done.append(one.id)  # type: ignore[method-assign]
    runs = world.conductor.runner._run
    world.conductor.runner._run = lambda pool, operation, work: work()  # type: ignore[method-assign]
    reports = [
        Report(one, 1, *about[one], "pve1", outcome=Outcome(True)) for one in (second, first)
    ]
    world.conductor.reports.take(reports)
    world.conductor.runner._run = runs  # type: ignore[method-assign]
    assert done == [first]
