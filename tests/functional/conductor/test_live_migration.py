"""A live migration whose VM has arrived, though not all is right there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from common import clock
from common.messages.commands import Move
from common.messages.reports import Category, Failure
from conductor.servers.move import begin_live_migration
from db import schema
from tests.functional.conductor.harness import World
from tests.functional.waiting import eventually

#: what a node without quorum says to the drive that is to be inserted
NO_QUORUM = Failure(Category.AUTHORIZATION, "Permission denied.", host="pve1")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, hosts=("pve1", "pve2"))
    made.conductor.runner.start()
    yield made
    made.close()


@pytest.mark.parametrize("source_lives", [True, False])
def test_it_ends_when_its_config_drive_is_in(world: World, source_lives: bool) -> None:
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "active")
    source = world.row(uuid).host
    conductor, ctxt = world.conductor, world.ctxt
    operation = begin_live_migration.accept(conductor.cloud, ctxt, uuid, None, None)
    conductor.runner.submit(operation)
    move = world.compute.wait_for(2)
    if not source_lives:
        long_ago = schema.services.update().where(schema.services.c.host == source)
        change = long_ago.values(last_seen_at=clock.after(-3600))
        world.conductor.store.run(lambda c: c.execute(change))
    there = move.target_node
    world.answer(move, ok=False, power_state=1, node=there, failure=NO_QUORUM)
    for number in range(3, 9):
        again = world.compute.wait_for(number)
        assert isinstance(again, Move)
        assert (again.settle, again.placed.node, again.target_node) == (True, source, there)
        assert again.config_drive is not None
        assert world.row(uuid).task_state == "migrating"
        if number == 8:
            world.answer(again, ok=True, power_state=1, node=there)
            break
        world.answer(again, ok=False, power_state=1, node=there, failure=NO_QUORUM)
        eventually(lambda now=again.attempt: world.rows(schema.operations)[-1].attempt > now)
        world.make_due()
    world.until(uuid, "active")
    assert (world.row(uuid).host, world.row(uuid).task_state) == (there, None)
    (migration,) = world.rows(schema.migrations)
    assert migration.status == "completed"


def test_a_lock_of_the_vm_is_waited_for_and_no_other_host_is_tried(world: World) -> None:
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "active")
    source = world.row(uuid).node
    conductor, ctxt = world.conductor, world.ctxt
    operation = begin_live_migration.accept(conductor.cloud, ctxt, uuid, None, None)
    conductor.runner.submit(operation)
    move = world.compute.wait_for(2)
    lock = Failure(Category.LOCK, "VM is locked (backup).", host="pve1", remedy="qm unlock 1")
    world.answer(move, ok=False, power_state=1, node=source, failure=lock)
    eventually(lambda: world.rows(schema.operations)[-1].attempt > move.attempt)
    world.make_due()
    again = world.compute.wait_for(3)
    assert isinstance(again, Move)
    assert again.target_node == move.target_node
    (*_, fault) = world.rows(schema.faults)
    assert (fault.category, fault.remedy) == ("lock", "qm unlock 1")
    world.answer(again, ok=True, power_state=1, node=move.target_node)
    world.until(uuid, "active")
    assert world.row(uuid).node == move.target_node
