"""The database fails over: what the replica lacks is noticed, and nothing is destroyed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from common import clock
from common.messages.commands import Build, Destroy
from common.messages.facts import OtherVm
from conductor.restore_guard import HELD_SECONDS, comparing
from conductor.store import restored
from conductor.store.restored import Marked
from db import schema
from tests.functional import postgres_pair
from tests.functional.conductor.harness import World
from tests.functional.conductor.test_restored import (
    CLOUD,
    mark,
    operation,
    record,
    release,
    seen,
    sent,
)
from tests.functional.postgres_pair import Pair
from tests.functional.waiting import eventually

pytestmark = pytest.mark.distributed


@pytest.fixture
def pair() -> Iterator[Pair]:
    with postgres_pair.pair() as running:
        running.execute("CREATE DATABASE cloud")
        yield running


@pytest.fixture
def world(pair: Pair, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, url=pair.url("cloud"))
    identity = f"INSERT INTO cloud_identity (id, cloud_id) VALUES (1, '{CLOUD}')"
    pair.execute(identity, database="cloud")
    # The migrations do so before there is any conductor.
    made.conductor = made.add_conductor("c2")
    made.conductor.runner.start()
    yield made
    made.close()


def active(world: World) -> str:
    """Return one more server that runs."""
    before = len(sent(world, Build))
    [uuid] = world.create()
    eventually(lambda: len(sent(world, Build)) > before)
    world.answer(sent(world, Build)[-1])
    world.until(uuid, "active")
    return uuid


def known_of(world: World, command: Build) -> Marked:
    """The VM that a build made, with its mark, as it would be seen."""
    vmid = world.row(command.resource_id).vmid
    epoch = world.conductor.cloud.guard.epoch(command.operation_id)
    return Marked("sim1", vmid, mark(world, epoch, vmid, resource_id=command.resource_id))


def test_what_was_committed_last_and_is_lost_holds_what_destroys(pair: Pair, world: World) -> None:
    """Of a replica that is not synchronous: a server was made, and the record doesn't know it."""
    old = active(world)
    seen(world)
    eventually(pair.caught_up)
    pair.cut_replication()
    lost = active(world)
    command = sent(world, Build)[-1]
    marked = known_of(world, command)
    assert command.resource_id == lost
    pair.fail_over()
    world.beat()
    assert [row.uuid for row in world.rows(schema.servers)] == [old]
    # Until the clusters are compared a delete waits, and then until an operator has decided.
    world.act(old, "delete")
    assert world.conductor.cloud.guard.held == comparing(["sim1"])
    assert not sent(world, Destroy)
    seen(world, OtherVm(marked.mark.vmid, "pve1", mark=marked.mark))
    held = record(world)
    assert held.held_at is not None
    assert str(held.held_because["resource"]).endswith(lost)  # type: ignore[index]
    world.make_due()
    world.conductor.runner.wake()
    eventually(lambda: waits(world) > HELD_SECONDS / 2)
    assert not sent(world, Destroy)
    # Agents and marks know the ID of the lost operation.
    assert operation(world, "delete").id > command.operation_id + 1000
    release(world)
    eventually(lambda: sent(world, Destroy))
    world.answer(sent(world, Destroy)[0], gone=True)
    world.until(old, "deleted")
    world.leaves = {"allocation_unknown"}


def test_nothing_is_held_where_nothing_was_lost(pair: Pair, world: World) -> None:
    old = active(world)
    seen(world)
    pair.make_synchronous()
    also = active(world)
    timeline = timeline_of(world)
    assert timeline.endswith("/1")
    pair.fail_over()
    pair.execute("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
    world.beat()
    assert {row.uuid for row in world.rows(schema.servers)} == {old, also}
    assert timeline_of(world) == timeline.replace("/1", "/2")
    assert record(world).compare_since is not None
    world.act(old, "delete")
    seen(world)
    assert record(world).held_at is None
    world.make_due()
    world.conductor.runner.wake()
    eventually(lambda: sent(world, Destroy))
    world.answer(sent(world, Destroy)[0], gone=True)
    world.until(old, "deleted")


def test_every_conductor_knows_at_once_and_compares_once(pair: Pair, world: World) -> None:
    """What began after the fail-over is not taken for something that was open before it."""
    active(world)
    other = world.add_conductor("c3")
    seen(world)
    assert other.cloud.guard.since is None  # and is not read again for some seconds
    eventually(pair.caught_up)
    pair.fail_over()
    world.beat()
    since = record(world).compare_since
    assert since is not None
    other.store.run(restored.last_operation)
    assert other.cloud.guard.since == since
    # As a conductor does that sees no sign of any: the replica had none for some time.
    other.store.run(lambda connection: connection.execute(schema.leases.delete()))
    other.store.run(lambda connection: restored.begin_to_compare(connection, "c3"))
    assert record(world).compare_since == since


def waits(world: World) -> float:
    """For how many seconds the delete is put off."""
    until = operation(world, "delete").not_before
    return 0.0 if until is None else float((until - clock.utcnow()).total_seconds())


def timeline_of(world: World) -> str:
    with world.conductor.store.read() as connection:
        return str(connection.scalar(sa.select(schema.cloud_identity.c.timeline)))
