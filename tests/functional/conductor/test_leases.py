"""Conductors and agents die; the next one continues from the record."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from common import clock
from common.errors import Invalid, ServerStateConflict, StaleTransition
from common.messages.commands import Build, Destroy, Power, PowerAction
from common.resources.states import TaskState
from conductor.engine.stage_runner import StageRunner
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from db import schema
from tests.functional.conductor.harness import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


class Killed(BaseException):
    """The conductor is gone at this point: nothing of it runs any more."""


def go_apart(flow: StageRunner, dies_in: TaskState) -> None:
    """Have what follows a host fail, so that each stage commits by itself."""
    create = next(one.do.__self__ for one in flow.table.stages if one.name == "place")
    what = "_connect" if dies_in == TaskState.NETWORKING else "_choose_disk"

    def fail(*_: object) -> None:
        setattr(create, what, first)
        raise Invalid("It can't be done together.")

    first = getattr(create, what)
    setattr(create, what, fail)


@pytest.mark.parametrize("dies_in", list(TaskState)[:4])
def test_another_conductor_goes_on_from_every_task_state(world: World, dies_in: TaskState) -> None:
    flow = world.conductor.runner._flows["create"]
    assert isinstance(flow, StageRunner)
    if dies_in in (TaskState.NETWORKING, TaskState.BLOCK_DEVICE_MAPPING):
        go_apart(flow, dies_in)

    def die(*_: object, **__: object) -> None:
        raise Killed

    stages = tuple(
        dataclasses.replace(stage, do=die) if stage.shown == dies_in else stage
        for stage in flow.table.stages
    )
    flow.table = dataclasses.replace(flow.table, stages=stages)
    (uuid,) = world.create()
    world.until(uuid, "building", dies_in)
    world.conductor.runner.stop()
    if dies_in == TaskState.SCHEDULING:
        world.placement.claims[uuid] = "a claim that was never written down"
    second = world.add_conductor("c2")
    world.conductor = second
    world.make_due()
    second.runner.start()
    command = world.compute.wait_for(1)
    assert isinstance(command, Build)
    world.answer(command, ok=True, power_state=1)
    world.until(uuid, "active")
    assert world.placement.claims == {uuid: "pve1"}
    assert len([row for row in world.rows(schema.vmids) if row.server_uuid]) == 1


def test_a_lost_command_is_sent_again(world: World) -> None:
    world.conductor.runner.start()
    world.create()
    first = world.compute.wait_for(1)
    world.make_due()
    assert world.compute.wait_for(2) == first


def test_a_conductor_that_stops_in_order_gives_its_leases_back(world: World) -> None:
    world.scheduler.gate.clear()
    (uuid,) = world.create()
    world.until(uuid, "building", "scheduling")
    store, name = world.conductor.store, "c1"
    (row,) = world.rows(schema.operations)
    assert row.lease_owner == name
    store.run(lambda connection: leases.give_back(connection, "another"))
    assert world.rows(schema.operations)[0].lease_expires_at == row.lease_expires_at
    store.run(lambda connection: leases.give_back(connection, name))
    (row,) = world.rows(schema.operations)
    assert (row.state, row.lease_owner) == ("queued", None)
    assert row.not_before <= clock.utcnow()
    world.scheduler.gate.set()


def test_a_delete_overtakes_a_build_that_is_being_scheduled(world: World) -> None:
    world.conductor.runner.start()
    world.scheduler.gate.clear()
    (uuid,) = world.create()
    world.until(uuid, "building", "scheduling")
    world.act(uuid, "delete")
    world.until(uuid, "deleted")
    world.scheduler.gate.set()
    world.until_operation("failed", "done")
    assert world.placement.claims == {}
    assert world.compute.sent == []


def test_a_delete_overtakes_a_build_that_an_agent_has(world: World) -> None:
    world.conductor.runner.start()
    (uuid,) = world.create()
    build = world.compute.wait_for(1)
    world.act(uuid, "delete")
    destroy = world.compute.wait_for(2)
    assert isinstance(destroy, Destroy)
    world.answer(build, ok=True, power_state=1)
    assert world.row(uuid).task_state == "deleting"
    world.answer(destroy, ok=True, gone=True)
    world.until(uuid, "deleted")
    assert world.placement.claims == {}
    assert world.rows(schema.ports) == []


def test_a_build_that_came_through_after_the_delete_is_removed(world: World) -> None:
    world.conductor.runner.start()
    (uuid,) = world.create()
    build = world.compute.wait_for(1)
    world.act(uuid, "delete")
    world.answer(world.compute.wait_for(2), ok=True, gone=True)
    world.until(uuid, "deleted")
    world.answer(build, ok=True, power_state=1)
    again = world.compute.wait_for(3)
    assert isinstance(again, Destroy)
    assert again.operation_id == build.operation_id


def test_power(world: World) -> None:
    world.conductor.runner.start()
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "active")
    world.act(uuid, "stop")
    command = world.compute.wait_for(2)
    assert isinstance(command, Power)
    assert command.action == PowerAction.STOP
    assert world.row(uuid).task_state == "powering-off"
    with pytest.raises(ServerStateConflict):
        world.act(uuid, "reboot")
    world.answer(command, ok=True, power_state=4)
    assert world.until(uuid, "stopped").power_state == 4
    with pytest.raises(ServerStateConflict, match="while it is in vm_state stopped"):
        world.act(uuid, "stop")


def test_an_agent_is_believed_only_about_its_own_servers(world: World) -> None:
    world.conductor.runner.start()
    (uuid,) = world.create()
    command = world.compute.wait_for(1)
    import dataclasses

    stranger = dataclasses.replace(
        command, placed=dataclasses.replace(command.placed, host="pve2")
    )
    world.answer(stranger, ok=True, power_state=1)
    assert world.row(uuid).task_state == "spawning"


def test_unavailable_neighbours_only_delay(world: World) -> None:
    world.conductor.runner.start()
    world.scheduler.down = True
    (uuid,) = world.create()
    world.until(uuid, "building", "scheduling")
    world.until_paused()
    world.scheduler.down = False
    world.make_due()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "active")


def test_no_claim_is_made_for_whom_another_may_have_taken_over(tmp_path: Path) -> None:
    world = World(tmp_path, lease_seconds=10)
    world.conductor.runner.start()
    asked_at = clock.utcnow()
    world.create()
    world.create(min_count=2, max_count=2)
    world.compute.wait_for(3)
    until = [request.until for request in world.scheduler.asked]
    assert len(until) == 3
    for moment in until:
        assert asked_at < moment < clock.after(5)
    world.close()


def test_who_hears_of_a_stage_takes_the_agents_lease_with_it_once(world: World) -> None:
    world.conductor.runner.start()
    world.create()
    command = world.compute.wait_for(1)
    store = world.conductor.store
    with store.read() as connection:
        operation = ledger.get(connection, command.operation_id)
    assert operation is not None
    assert leases.worker_with(operation.lease_owner) == "w1"

    def reach() -> None:
        store.run(lambda c: leases.reach_owned(c, operation, operation.plan, "settle", "c2", 60.0))

    reach()
    (now,) = world.rows(schema.operations)
    assert (now.stage, now.lease_owner, now.state) == ("settle", "c2", "running")
    with pytest.raises(StaleTransition):
        reach()
