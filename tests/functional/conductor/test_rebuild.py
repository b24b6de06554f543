"""Rebuild on the own host: what is recorded, sent and given back."""

from __future__ import annotations

from typing import Any

import pytest

from common.errors import Conflict, Invalid, QuotaExceeded, ServerStateConflict
from common.messages.commands import EndSwap, GuestFile, Swap
from common.messages.reports import Category, Failure
from common.resources.states import status
from conductor.rpc.servers.servers import RebuildServer
from conductor.servers.disks import begin_image
from conductor.store.servers import servers
from db import schema
from tests.functional.conductor.harness import IMAGE, World

BROKEN = Failure(Category.AUTHORIZATION, "Permission check failed")
BUSY = Failure(Category.LOCK, "can't lock file: got timeout")


def a_server(world: World, vm_state: str = "active") -> str:
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "active")
    if vm_state == "stopped":
        world.act(uuid, "stop")
        world.answer(world.compute.wait_for(2), ok=True, power_state=4)
        world.until(uuid, "stopped")
    world.compute.sent.clear()
    return uuid


def change(world: World, uuid: str, **values: Any) -> None:
    mine = schema.servers.c.uuid == uuid
    statement = schema.servers.update().where(mine).values(**values)
    world.conductor.store.run(lambda c: c.execute(statement))


def test_a_rebuild_keeps_the_bus_that_the_create_named(world: World) -> None:
    uuid = a_server(world)
    change(world, uuid, image_properties={"hw_disk_bus": "ide", "root_disk_bus": "virtio"})
    world.rebuild(uuid, RebuildServer(IMAGE, {"hw_disk_bus": "sata", "root_disk_bus": "scsi"}))
    swap = world.compute.wait_for(1)
    assert swap.image_properties == {"hw_disk_bus": "sata", "root_disk_bus": "virtio"}
    world.answer(swap, ok=True, power_state=1)
    world.answer(world.compute.wait_for(2), ok=True, power_state=1)
    world.until(uuid, "active")
    assert world.row(uuid).image_properties["root_disk_bus"] == "virtio"
    with world.conductor.store.read() as connection:
        server = servers.get(connection, uuid)
    assert begin_image.inherited(server) == {"hw_disk_bus": "sata"}


@pytest.mark.parametrize("was", ["active", "stopped", "error"])
def test_a_rebuild(world: World, was: str) -> None:
    uuid = a_server(world, was if was == "stopped" else "active")
    change(world, uuid, vm_state=was)
    changes = {"name": "new", "meta": {"a": "b"}, "user_data": "eA==", "hostname": "new"}
    files = (GuestFile("/a", "eA=="),)
    world.rebuild(
        uuid,
        RebuildServer(IMAGE, {"os_type": "linux"}, changes, admin_password="secret", files=files),
    )
    swap = world.compute.wait_for(1)
    assert isinstance(swap, Swap)
    row = world.row(uuid)
    assert status(row.vm_state, row.task_state) == "REBUILD"
    assert (row.name, row.meta, row.task_state) == ("new", {"a": "b"}, "rebuild_spawning")
    assert (swap.name, swap.hostname, swap.running) == ("new", "new", was != "stopped")
    assert swap.image is not None
    assert (swap.image.id, swap.disk_gib) == (IMAGE, 1)
    assert swap.image_properties == {"os_type": "linux"}
    assert swap.former_properties == {}
    drive = swap.config_drive
    assert drive is not None
    assert (drive.user_data, drive.files) == ("eA==", files)
    assert drive.meta_data["admin_pass"] == "secret"
    # The same image on the same host: nobody has to be asked.
    assert len(world.scheduler.asked) == 1

    world.answer(swap, ok=True, power_state=1 if swap.running else 4)
    end = world.compute.wait_for(2)
    assert isinstance(end, EndSwap)
    assert end.keep
    assert world.row(uuid).task_state == "rebuild_spawning"
    world.answer(end, ok=True, power_state=1 if swap.running else 4)
    world.until(uuid, "stopped" if was == "stopped" else "active")
    last = world.rows(schema.operations)[-1]
    assert (last.action, last.state, last.params) == ("rebuild", "done", {})


def test_another_image_is_asked_about(world: World) -> None:
    uuid = a_server(world)
    change(world, uuid, image_id="another")
    world.rebuild(uuid, RebuildServer(IMAGE, {"hw_architecture": "x86_64"}))
    world.compute.wait_for(1)
    asked = world.scheduler.asked[-1]
    assert (asked.force_host, asked.claimed) == (world.row(uuid).host, True)
    assert (asked.image_id, asked.image_properties) == (IMAGE, {"hw_architecture": "x86_64"})
    names = [one.name for one in world.rows(schema.operation_events)]
    assert "conductor_rebuild_server" in names


def test_a_host_that_can_t_run_it(world: World) -> None:
    uuid = a_server(world)
    change(world, uuid, image_id="another", key_name="mine")
    world.scheduler.hosts.remove(world.row(uuid).host)
    world.rebuild(uuid, RebuildServer(IMAGE, changes={"key_name": None, "name": "new"}))
    row = world.until(uuid, "error")
    assert not world.compute.sent
    assert (row.image_id, row.key_name, row.name) == ("another", "mine", "new")
    (fault,) = world.rows(schema.faults)
    assert fault.category == "no_valid_host"
    assert fault.owner_message.startswith("No valid host was found.")
    assert "none left" in fault.message
    world.act(uuid, "delete")
    world.answer(world.compute.wait_for(1), ok=True, gone=True)


def test_an_image_that_went(world: World) -> None:
    uuid = a_server(world)
    world.rebuild(uuid, RebuildServer("gone"))
    row = world.until(uuid, "error")
    assert (row.image_id, world.compute.sent) == (IMAGE, [])
    (fault,) = world.rows(schema.faults)
    assert fault.category == "image_not_found"


def test_what_the_agent_could_not_do_is_given_back(world: World) -> None:
    uuid = a_server(world)
    change(world, uuid, image_id="another")
    world.rebuild(uuid, RebuildServer(IMAGE))
    world.answer(world.compute.wait_for(1), ok=False, failure=BROKEN)
    back = world.compute.wait_for(2)
    assert isinstance(back, EndSwap)
    assert (back.keep, back.running) == (False, True)
    world.answer(back, ok=False, failure=BUSY)
    world.until_faults(2)
    world.make_due()
    again = world.compute.wait_for(3)
    assert isinstance(again, EndSwap)
    world.answer(again, ok=True, power_state=1)
    row = world.until(uuid, "error")
    assert row.image_id == "another"


def test_an_old_disk_that_stays_is_no_failure_of_the_server(world: World) -> None:
    uuid = a_server(world)
    world.rebuild(uuid, RebuildServer(IMAGE))
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.answer(world.compute.wait_for(2), ok=False, failure=BROKEN)
    world.until(uuid, "active")
    last = world.rows(schema.operations)[-1]
    assert last.state == "done"
    assert last.message.startswith("The old disk was not removed: Permission")


def test_a_delete_interrupts_it(world: World) -> None:
    uuid = a_server(world)
    world.rebuild(uuid, RebuildServer(IMAGE))
    swap = world.compute.wait_for(1)
    world.act(uuid, "delete")
    world.answer(swap, ok=False, failure=BROKEN)
    world.answer(world.compute.wait_for(2), ok=True, gone=True)
    world.until(uuid, "deleted")


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"hw_firmware_type": "uefi"}, "would change the firmware"),
        ({"hw_machine_type": "abacus"}, "asks for what can't be had"),
        ({"hw_numa_nodes": "1"}, "NUMA topology cannot be changed as part of a rebuild"),
    ],
)
def test_images_that_it_can_t_have(world: World, properties: dict[str, str], text: str) -> None:
    uuid = a_server(world)
    with pytest.raises(Invalid, match=text):
        world.rebuild(uuid, RebuildServer(IMAGE, properties))
    assert world.row(uuid).task_state is None


def test_a_server_with_a_tpm(world: World) -> None:
    uuid = a_server(world)
    change(world, uuid, image_properties={"hw_tpm_version": "2.0", "hw_firmware_type": "uefi"})
    with pytest.raises(Conflict, match="Operation 'rebuild' not supported for vTPM-enabled"):
        world.rebuild(uuid, RebuildServer(IMAGE))


def test_quotas_and_states(world: World) -> None:
    uuid = a_server(world)
    meta = {f"k{number}": "v" for number in range(129)}
    with pytest.raises(QuotaExceeded, match="Maximum number of metadata items exceeds 128"):
        world.rebuild(uuid, RebuildServer(IMAGE, changes={"meta": meta}))
    with pytest.raises(QuotaExceeded, match="Personality file limit exceeded"):
        world.rebuild(uuid, RebuildServer(IMAGE, files=(GuestFile("/a", "eA=="),) * 6))
    change(world, uuid, vm_state="paused")
    with pytest.raises(ServerStateConflict, match="Cannot 'rebuild' instance"):
        world.rebuild(uuid, RebuildServer(IMAGE))
    change(world, uuid, vm_state="active")
