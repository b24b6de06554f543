"""A reset of a server's state: the ledger remains whole, whatever is under way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from common import clock
from common.errors import ServerStateConflict
from common.resources.states import PowerState, VmState
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.servers.record.reset_state import reset_state
from conductor.store.servers import vm_states
from db import schema
from tests.functional.conductor.harness import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.conductor.runner.start()
    yield made
    made.close()


def reset(world: World, uuid: str, state: VmState) -> None:
    ctxt = world.ctxt.from_message({**world.ctxt.to_message(), "is_admin": True})
    ctxt.is_admin = True
    reset_state(world.conductor.cloud, ctxt, uuid, state)


def active(world: World) -> str:
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=PowerState.RUNNING)
    world.until(uuid, "active")
    return uuid


def test_of_a_server_at_rest_only_the_vm_state_changes(world: World) -> None:
    uuid = active(world)
    before = world.row(uuid)
    reset(world, uuid, VmState.ERROR)
    after = world.row(uuid)
    assert (after.vm_state, after.task_state) == ("error", None)
    kept = ("host", "vmid", "power_state", "launched_at", "addresses")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]
    last = world.rows(schema.operations)[-1]
    assert (last.action, last.state, after.operation_id) == ("resetState", "done", last.id)
    assert world.rows(schema.transitions)[-1].to_vm_state == "error"
    reset(world, uuid, VmState.ACTIVE)
    assert world.row(uuid).vm_state == "active"


def test_nobody_looks_after_an_error_that_an_administrator_set(world: World) -> None:
    uuid = active(world)
    reset(world, uuid, VmState.ERROR)
    later = clock.after(3600)
    with world.conductor.store.read() as connection:
        assert vm_states.in_error(connection, later, later, 10) == []
        [asked] = vm_states.in_error(connection, later, later, 10, uuid)
    assert asked.uuid == uuid


@pytest.mark.parametrize("state", [VmState.ACTIVE, VmState.ERROR])
def test_a_power_action_gives_way(world: World, state: VmState) -> None:
    uuid = active(world)
    world.act(uuid, "stop")
    stop = world.compute.wait_for(2)
    world.until(uuid, "active", "powering-off")
    reset(world, uuid, state)
    assert (world.row(uuid).vm_state, world.row(uuid).task_state) == (state, None)
    world.answer(stop, ok=True, power_state=PowerState.SHUTDOWN)
    world.until_operation("done", "failed", "done")
    assert world.row(uuid).vm_state == state
    world.act(uuid, "reboot-hard")
    world.answer(world.compute.wait_for(3), ok=True, power_state=PowerState.RUNNING)
    world.until(uuid, "active")


def test_a_build_gives_way_and_its_vm_stays_the_server_s(world: World) -> None:
    (uuid,) = world.create()
    build = world.compute.wait_for(1)
    reset(world, uuid, VmState.ERROR)
    world.answer(build, ok=True, power_state=PowerState.RUNNING)
    world.until_operation("failed", "done")
    row = world.row(uuid)
    assert (row.vm_state, row.vmid) == ("error", build.placed.vmid)
    assert uuid in world.placement.claims
    world.act(uuid, "delete")
    world.answer(world.compute.wait_for(2), ok=True, gone=True)
    world.until(uuid, "deleted")
    assert world.placement.claims == {}


def test_a_delete_goes_on(world: World) -> None:
    uuid = active(world)
    world.act(uuid, "delete")
    destroy = world.compute.wait_for(2)
    reset(world, uuid, VmState.ACTIVE)
    row = world.row(uuid)
    assert (row.vm_state, row.task_state) == ("active", "deleting")
    world.answer(destroy, ok=True, gone=True)
    world.until(uuid, "deleted")
    assert world.placement.claims == {}
    assert [row.state for row in world.rows(schema.operations)] == ["done"] * 3


def test_what_neither_gives_way_nor_goes_on_refuses(world: World) -> None:
    uuid = active(world)
    world.act(uuid, "release")
    release = world.compute.wait_for(2)
    with pytest.raises(ServerStateConflict):
        reset(world, uuid, VmState.ERROR)
    world.answer(release, ok=True, gone=True)
    world.until(uuid, "deleted")


@pytest.mark.parametrize("state", [VmState.ACTIVE, VmState.ERROR])
def test_one_in_error_that_was_resized_has_no_open_migration(world: World, state: VmState) -> None:
    uuid = active(world)
    world.resize(uuid, FlavorSnapshot("2", "m1.more", 2, 1024, 1))
    world.answer(world.compute.wait_for(2), ok=True, power_state=PowerState.RUNNING)
    world.until(uuid, "resized")
    # As when its VM can't be found any more.
    lost = schema.servers.update().where(schema.servers.c.uuid == uuid).values(vm_state="error")
    world.conductor.store.run(lambda c: c.execute(lost))
    reset(world, uuid, state)
    assert [one.status for one in world.rows(schema.migrations)] == ["confirmed"]
