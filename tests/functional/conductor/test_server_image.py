"""Images of servers: what is reserved, what becomes of them, and of servers made of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.errors import Invalid
from common.messages.commands import Build, Copy, RetireTemplate, Swap
from common.messages.reports import Category, CopiedDisk, Failure
from common.messages.scheduling import ImageHome
from common.resources.states import VmState
from conductor.images import remove_image
from conductor.rpc.servers.servers import NewServerImage, RebuildServer
from conductor.servers.disks import begin_image
from conductor.servers.record.reset_state import reset_state
from db import schema
from tests.functional.conductor.harness import World

GIB = 1 << 30


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.conductor.runner.start()
    yield made
    made.close()


@pytest.fixture
def server(world: World) -> str:
    """A server that is active."""
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "active")
    return uuid


def begin(world: World, uuid: str, **changes: Any) -> str | None:
    asked = dataclasses.replace(NewServerImage("copy"), **changes)
    image_id, operation = begin_image.accept(world.conductor.cloud, world.ctxt, uuid, asked)
    world.conductor.runner.submit(operation)
    return image_id


def copied(command: Any) -> CopiedDisk:
    assert isinstance(command, Copy)
    return CopiedDisk(f"{command.storage}:base-{command.placed.vmid}-disk-0", "raw", 5, 2 * GIB)


def image(world: World, image_id: str | None) -> Any:
    found = [one for one in world.rows(schema.images) if one.id == image_id]
    return found[0] if found else None


def held(world: World) -> int:
    """Templates of images of servers."""
    made = {one.image_id for one in world.rows(schema.templates)}
    return len(made - {one.id for one in world.rows(schema.images) if one.server_uuid is None})


def retired(world: World, count: int) -> None:
    """Its template is removed."""
    command = world.compute.wait_for(count)
    assert isinstance(command, RetireTemplate)
    world.answer(command, ok=True, gone=True)
    world._wait(lambda: held(world), lambda left: left == 0)


def test_an_image_is_made(world: World, server: str) -> None:
    image_id = begin(world, server)
    command = world.compute.wait_for(2)
    assert isinstance(command, Copy)
    row = world.row(server)
    assert (row.vm_state, row.task_state) == ("active", "image_snapshot")
    assert (command.source_vmid, command.placed.node, command.storage) == (
        row.vmid,
        row.node,
        "local",
    )
    assert command.placed.vmid != row.vmid
    saving = image(world, image_id)
    assert (saving.status, saving.home["node"]) == ("saving", row.node)
    world.answer(command, ok=True, disk=copied(command))
    world.until(server, "active")
    made = image(world, image_id)
    assert (made.status, made.size_bytes, made.virtual_size_bytes) == ("active", 5, 2 * GIB)
    assert (made.min_disk_gib, made.disk_format) == (2, "raw")
    assert made.locations == {"sim1": f"local:base-{command.placed.vmid}-disk-0"}
    # A heartbeat, which reports the import storages alone, leaves it there.
    world.beat()
    assert image(world, image_id).status == "active"
    remove_image.delete(world.conductor.cloud, world.ctxt, str(image_id))
    assert image(world, image_id) is None
    retired(world, 3)


def test_a_server_of_it_is_built_where_it_is(world: World, server: str) -> None:
    image_id = begin(world, server)
    command = world.compute.wait_for(2)
    world.answer(command, ok=True, disk=copied(command))
    world.until(server, "active")
    home = ImageHome(**image(world, image_id).home)
    (uuid,) = world.create(image_id=str(image_id), image_home=home)
    build = world.compute.wait_for(3)
    assert world.scheduler.asked[-1].image_home == home
    assert isinstance(build, Build)
    assert build.image is not None
    assert build.template is not None
    assert (build.image.template_only, build.template.vmid) == (True, command.placed.vmid)
    world.answer(build, ok=True, power_state=1)
    world.until(uuid, "active")
    # Its disk may hang on the template, which remains until the server is deleted.
    remove_image.delete(world.conductor.cloud, world.ctxt, str(image_id))
    assert held(world) == 1
    assert [one.action for one in world.rows(schema.operations)].count("remove-template") == 0


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("action", ["rebuild", "rescue"])
def test_on_another_node_it_is_refused_before_anything(
    world: World, server: str, action: str, shared: bool
) -> None:
    image_id = str(begin(world, server))
    command = world.compute.wait_for(2)
    world.answer(command, ok=True, disk=copied(command))
    world.until(server, "active")
    there = {**image(world, image_id).home, "node": "pve9", "shared": shared}
    change = schema.images.update().where(schema.images.c.id == image_id).values(home=there)
    world.conductor.store.run(lambda connection: connection.execute(change))
    before, operations = world.row(server), len(world.rows(schema.operations))
    with pytest.raises(
        Invalid, match="copied only on node pve9, where its disk is, and the server"
    ):
        ask(world, server, action, image_id)
    assert world.row(server) == before
    assert len(world.rows(schema.operations)) == operations


def ask(world: World, server: str, action: str, image_id: str) -> None:
    if action == "rebuild":
        world.rebuild(server, RebuildServer(image_id))
    else:
        world.rescue(server, image_id)


@pytest.mark.parametrize("action", ["rebuild", "rescue"])
def test_on_its_node_it_can_be_had(world: World, server: str, action: str) -> None:
    image_id = str(begin(world, server))
    command = world.compute.wait_for(2)
    world.answer(command, ok=True, disk=copied(command))
    world.until(server, "active")
    # Whatever the storage for new disks is by now.
    there = {**image(world, image_id).home, "storage": "former"}
    change = schema.images.update().where(schema.images.c.id == image_id).values(home=there)
    world.conductor.store.run(lambda connection: connection.execute(change))
    ask(world, server, action, image_id)
    swap = world.compute.wait_for(3)
    assert isinstance(swap, Swap)
    assert swap.image is not None
    assert swap.image.template_only


def test_one_that_fails_leaves_nothing(world: World, server: str) -> None:
    image_id = begin(world, server)
    command = world.compute.wait_for(2)
    failure = Failure(Category.CREATION_FAILED, "qemu-img failed", host="pve1")
    world.answer(command, ok=False, failure=failure)
    world.until(server, "active")
    assert image(world, image_id) is None
    retired(world, 3)
    (fault,) = world.rows(schema.faults)
    assert "qemu-img failed" in str(fault)


def test_one_that_may_pass_is_tried_again(world: World, server: str) -> None:
    image_id = begin(world, server)
    command = world.compute.wait_for(2)
    world.answer(command, ok=False, failure=Failure(Category.LOCK, "got timeout", host="pve1"))
    world.until_paused()
    assert image(world, image_id).status == "saving"
    world.make_due()
    again = world.compute.wait_for(3)
    assert isinstance(again, Copy)
    assert (again.attempt, again.placed) == (2, command.placed)
    world.answer(again, ok=True, disk=copied(again))
    world.until(server, "active")
    assert image(world, image_id).status == "active"


def test_one_that_is_deleted_while_it_is_made(world: World, server: str) -> None:
    image_id = begin(world, server)
    command = world.compute.wait_for(2)
    remove_image.delete(world.conductor.cloud, world.ctxt, str(image_id))
    assert held(world) == 1, "nothing is removed while an agent works on it"
    world.answer(command, ok=True, disk=copied(command))
    world.until(server, "active")
    retired(world, 3)


def test_a_reset_gives_the_image_up(world: World, server: str) -> None:
    image_id = begin(world, server)
    command = world.compute.wait_for(2)
    reset_state(world.conductor.cloud, world.ctxt, server, VmState.ACTIVE)
    world.answer(command, ok=True, disk=copied(command))
    retired(world, 3)
    assert image(world, image_id) is None
    row = world.row(server)
    assert (row.vm_state, row.task_state) == ("active", None)


def test_backups_beyond_the_rotation_are_deleted(world: World, server: str) -> None:
    made = []
    sent = 2
    for kind in ("daily", "weekly", "daily", "daily"):
        made.append(begin(world, server, backup_type=kind, rotation=2))
        command = world.compute.wait_for(sent)
        world.answer(command, ok=True, disk=copied(command))
        world.until(server, "active")
        sent += 1
    left = {one.id for one in world.rows(schema.images) if one.server_uuid == server}
    assert left == {made[1], made[2], made[3]}
    command = world.compute.wait_for(sent)
    assert isinstance(command, RetireTemplate)
    assert command.image_id == made[0]
    world.answer(command, ok=True, gone=True)
    # None of them is kept: nothing is copied for it.
    assert begin(world, server, backup_type="daily", rotation=0) is None
    world.until(server, "active")
    world._wait(
        lambda: {one.id for one in world.rows(schema.images) if one.server_uuid == server},
        lambda found: found == {made[1]},
    )
