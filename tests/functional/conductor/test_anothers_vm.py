"""A server whose VMID has another's VM by both its marks: its owner can delete it."""

from __future__ import annotations

from common.messages.commands import Destroy
from common.messages.reports import Category, Failure
from db import schema
from tests.functional.conductor.harness import World

ANOTHERS = Failure(Category.FOREIGN, "VM is not ours: it is server x", clean=False, refused=True)


def states(world: World) -> dict[int, str]:
    return {row.vmid: row.state for row in world.rows(schema.vmids)}


def destroy(world: World, count: int) -> Destroy:
    command = world.compute.wait_for(count)
    assert isinstance(command, Destroy)
    return command


def test_a_delete_deletes_the_record_alone(world: World) -> None:
    [uuid] = world.create()
    world.answer(world.compute.wait_for(1), power_state=1)
    vmid = world.until(uuid, "active").vmid
    world.act(uuid, "delete")
    world.answer(destroy(world, 2), ok=False, failure=ANOTHERS)
    row = world.until(uuid, "deleted")
    assert row.deleted_at is not None
    assert states(world)[vmid] == "quarantined"
    assert not world.rows(schema.ports)
    assert [one.state for one in world.rows(schema.operations)] == ["done", "done"]


def test_a_vmid_that_another_server_has_by_now_stays_its(world: World) -> None:
    [uuid] = world.create()
    world.answer(world.compute.wait_for(1), power_state=1)
    vmid = world.until(uuid, "active").vmid
    theirs = schema.vmids.update().values(server_uuid="another")
    world.conductor.store.run(lambda c: c.execute(theirs))
    world.act(uuid, "delete")
    world.answer(destroy(world, 2), ok=False, failure=ANOTHERS)
    world.until(uuid, "deleted")
    assert states(world)[vmid] == "reserved"
    world.leaves = {"vmid_without_owner"}  # the other one is made up


def test_a_failed_build_that_left_nothing_can_be_deleted(world: World) -> None:
    """It only looked, as after a restore, and so could not say that nothing of it is there."""
    [uuid] = world.create()
    fatal = Failure(Category.CONFIGURATION, "It was not touched.", clean=False)
    world.answer(world.compute.wait_for(1), ok=False, failure=fatal, gone=False)
    world.until(uuid, "error")
    world.make_due()
    world.conductor.runner.wake()
    world.answer(destroy(world, 2), ok=False, failure=ANOTHERS)
    world.until_operation("failed")
    assert world.row(uuid).vmid is None
    world.act(uuid, "delete")
    world.until(uuid, "deleted")
