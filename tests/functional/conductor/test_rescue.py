"""Rescue and unrescue: what is recorded, sent and given back."""

from __future__ import annotations

from typing import Any

import pytest

from common.errors import Conflict, ServerStateConflict
from common.messages.commands import EndSwap, Swap
from common.messages.reports import Category, Failure
from common.resources.states import status
from db import schema
from tests.functional.conductor.harness import IMAGE, World

BROKEN = Failure(Category.AUTHORIZATION, "Permission check failed")


def a_server(world: World, vm_state: str = "active") -> str:
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "active")
    change(world, uuid, vm_state=vm_state)
    world.compute.sent.clear()
    return uuid


def change(world: World, uuid: str, **values: Any) -> None:
    mine = schema.servers.c.uuid == uuid
    statement = schema.servers.update().where(mine).values(**values)
    world.conductor.store.run(lambda c: c.execute(statement))


def rescued(world: World) -> str:
    uuid = a_server(world)
    world.rescue(uuid)
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "rescued")
    world.compute.sent.clear()
    return uuid


@pytest.mark.parametrize("was", ["active", "stopped", "error"])
def test_rescue_and_unrescue(world: World, was: str) -> None:
    uuid = a_server(world, was)
    world.rescue(uuid)
    swap = world.compute.wait_for(1)
    assert isinstance(swap, Swap)
    assert (swap.rescue, swap.running) == (True, was != "stopped")
    assert swap.image is not None
    assert (swap.image.id, swap.disk_gib) == (IMAGE, swap.image.min_disk_gib)
    assert swap.config_drive is not None
    assert swap.config_drive.meta_data["admin_pass"] == "secret"
    assert (world.row(uuid).vm_state, world.row(uuid).task_state) == (was, "rescuing")
    world.answer(swap, ok=True, power_state=1)
    row = world.until(uuid, "rescued")
    assert status(row.vm_state, row.task_state) == "RESCUE"
    assert world.rows(schema.operations)[-1].params == {}

    world.act(uuid, "unrescue")
    end = world.compute.wait_for(2)
    assert isinstance(end, EndSwap)
    assert (end.keep, end.running, end.rescued) == (False, True, True)
    assert (world.row(uuid).vm_state, world.row(uuid).task_state) == ("rescued", "unrescuing")
    world.answer(end, ok=True, power_state=1)
    world.until(uuid, "active")


def test_a_rescue_that_fails(world: World) -> None:
    uuid = a_server(world, "stopped")
    world.rescue(uuid)
    world.answer(world.compute.wait_for(1), ok=False, failure=BROKEN)
    back = world.compute.wait_for(2)
    assert isinstance(back, EndSwap)
    assert (back.keep, back.running, back.rescued) == (False, False, False)
    world.answer(back, ok=True, power_state=4)
    world.until(uuid, "error")


def test_an_image_that_went(world: World) -> None:
    uuid = a_server(world)
    world.rescue(uuid, "gone")
    world.until(uuid, "error")
    assert not world.compute.sent
    (fault,) = world.rows(schema.faults)
    assert fault.category == "image_not_found"


def test_an_unrescue_that_fails_may_be_tried_again(world: World) -> None:
    uuid = rescued(world)
    world.act(uuid, "unrescue")
    world.answer(world.compute.wait_for(1), ok=False, failure=BROKEN, power_state=4)
    row = world.until(uuid, "rescued")
    assert row.power_state == 4
    world.act(uuid, "unrescue")
    world.answer(world.compute.wait_for(2), ok=True, power_state=1)
    world.until(uuid, "active")


def test_what_a_rescued_server_refuses(world: World) -> None:
    uuid = rescued(world)
    for action in ("stop", "start", "reboot", "reboot-hard", "pause", "suspend", "release"):
        with pytest.raises(ServerStateConflict, match="while it is in vm_state rescued"):
            world.act(uuid, action)
    with pytest.raises(ServerStateConflict, match="Cannot 'rescue' instance"):
        world.rescue(uuid)
    world.act(uuid, "delete")
    world.answer(world.compute.wait_for(1), ok=True, gone=True)
    world.until(uuid, "deleted")


def test_a_server_with_a_tpm(world: World) -> None:
    uuid = a_server(world)
    change(world, uuid, image_properties={"hw_tpm_version": "2.0", "hw_firmware_type": "uefi"})
    with pytest.raises(Conflict, match="Operation 'rescue' not supported for vTPM-enabled"):
        world.rescue(uuid)
