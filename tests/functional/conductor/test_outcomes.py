"""Operations that agents have carried out end together, and what became of one stops no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from common import clock
from common.errors import StaleTransition
from common.messages.commands import Build, Command, Destroy
from common.messages.reports import Built, Outcome, Removed, Report, Step
from common.resources.states import VmState
from conductor.store.ledger import transitions
from conductor.store.ledger.transitions import Move
from conductor.store.servers import servers
from db import schema
from tests.functional.conductor.harness import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.conductor.runner.start()
    yield made
    made.close()


def report(command: Command, outcome: Outcome) -> Report:
    now = clock.utcnow()
    step = Step("compute_find_vm", 1, now, now, "Success")
    return Report(
        command.operation_id,
        command.attempt,
        command.resource_type,
        command.resource_id,
        command.placed.host,
        (step,),
        outcome,
    )


def builds(world: World, count: int) -> list[Build]:
    for _ in range(count):
        world.create()
    world.compute.wait_for(count)
    return [one for _, one in world.compute.sent if isinstance(one, Build)]


def reported(world: World, operation_id: int) -> list[str]:
    rows = world.rows(schema.operation_events)
    return [row.name for row in rows if row.operation_id == operation_id and row.host]


def test_what_is_reported_together_ends_together(world: World) -> None:
    commands = builds(world, 3)
    done = Built(True, power_state=1)
    world.conductor.reports.take([report(command, done) for command in commands])
    for command in commands:
        # Nothing else had to happen for it.
        assert world.row(command.resource_id).vm_state == "active"
        assert reported(world, command.operation_id) == ["compute_find_vm"]
    assert [row.state for row in world.rows(schema.operations)] == ["done"] * 3

    for command in commands:
        world.act(command.resource_id, "delete")
    world.compute.wait_for(6)
    destroys = [one for _, one in world.compute.sent if isinstance(one, Destroy)]
    gone = Removed(True, gone=True)
    world.conductor.reports.take([report(command, gone) for command in destroys])
    for command in destroys:
        world.until(command.resource_id, "deleted")
        assert reported(world, command.operation_id) == ["compute_find_vm"]
    assert not world.placement.claims
    assert {row.server_uuid for row in world.rows(schema.vmids)} <= {None}


def test_one_that_was_taken_over_keeps_no_other_from_its_end(world: World) -> None:
    first, second = builds(world, 2)
    world.act(first.resource_id, "delete")
    world.compute.wait_for(3)
    done = Built(True, power_state=1)
    world.conductor.reports.take([report(first, done), report(second, done)])
    assert world.row(second.resource_id).vm_state == "active"
    assert world.row(first.resource_id).vm_state == "building"


def test_deletes_end_although_placement_was_away(world: World) -> None:
    (command,) = builds(world, 1)
    world.conductor.reports.take([report(command, Built(True, power_state=1))])
    world.act(command.resource_id, "delete")
    destroy = world.compute.wait_for(2)
    world.placement.down = True
    world.conductor.reports.take([report(destroy, Removed(True, gone=True))])
    world.until_operation("done", "queued")
    assert world.row(command.resource_id).vm_state == "active"
    assert world.placement.claims


def test_a_server_that_moved_in_between_moves_none(world: World) -> None:
    first, second = builds(world, 2)
    store = world.conductor.store
    with store.read() as connection:
        known = servers.get_many(connection, [first.resource_id, second.resource_id])
    moves = [
        Move(
            known[one.resource_id],
            one.operation_id,
            VmState.ACTIVE,
            None,
            {"power_state": 1},
        )
        for one in (first, second)
    ]
    world.answer(first, ok=True, power_state=1)
    with pytest.raises(StaleTransition):
        store.run(lambda c: transitions.move_all(c, moves))
    assert world.row(second.resource_id).task_state == "spawning"
