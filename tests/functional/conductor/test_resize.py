"""Resize on the own host: what is held, sent and recorded until it is confirmed or reverted."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from common.errors import Conflict, Invalid, QuotaExceeded, ServerStateConflict
from common.messages.commands import Grow, Power, Shape
from common.messages.reports import Category, Failure
from common.resources.local_disks import of_server
from common.resources.states import status
from conductor.rpc.servers.flavors import FlavorSnapshot
from db import schema
from tests.functional.conductor.harness import World

SMALL = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
#: more processors, less memory, a larger disk
MIXED = FlavorSnapshot("2", "m1.mixed", 4, 256, 3)
BOTH = {"VCPU": 4, "MEMORY_MB": 512, "DISK_GB": 3}
NEW = {"VCPU": 4, "MEMORY_MB": 256, "DISK_GB": 3}
BROKEN = Failure(Category.AUTHORIZATION, "Permission check failed")


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


def resized(world: World, vm_state: str = "active", flavor: FlavorSnapshot = MIXED) -> str:
    uuid = a_server(world, vm_state)
    world.resize(uuid, flavor)
    command = world.compute.wait_for(1)
    world.answer(command, ok=True, power_state=1 if vm_state == "active" else 4)
    world.until(uuid, "resized")
    world.compute.sent.clear()
    return uuid


def held(world: World, uuid: str) -> dict[str, Any]:
    (amounts,) = world.placement.allocations_of(uuid).by_provider.values()
    return dict(amounts)


def migration(world: World) -> Any:
    (row,) = world.rows(schema.migrations)
    return row


def columns(world: World, uuid: str) -> tuple[int, int, int]:
    row = world.row(uuid)
    return row.vcpus, row.memory_mib, row.disk_gib


@pytest.mark.parametrize("was", ["active", "stopped"])
def test_resize_and_confirm(world: World, was: str) -> None:
    uuid = a_server(world, was)
    world.resize(uuid, MIXED)
    command = world.compute.wait_for(1)
    assert isinstance(command, Shape)
    assert (command.size.vcpus, command.size.memory_mib) == (4, 256)
    assert (command.former.vcpus, command.former.memory_mib) == (1, 512)
    assert command.running == (was == "active")
    row = world.row(uuid)
    assert status(row.vm_state, row.task_state) == "RESIZE"
    assert (held(world, uuid), columns(world, uuid)) == (BOTH, (4, 512, 3))
    assert row.flavor["id"] == "1"
    power = 1 if was == "active" else 4
    world.answer(command, ok=True, power_state=power)
    row = world.until(uuid, "resized")
    assert (status(row.vm_state, row.task_state), row.flavor["id"]) == ("VERIFY_RESIZE", "2")
    assert migration(world).status == "finished"
    assert (held(world, uuid), columns(world, uuid)) == (BOTH, (4, 512, 3))

    world.end_resize(uuid, "confirmResize")
    grow = world.compute.wait_for(2)
    assert isinstance(grow, Grow)
    assert grow.disk_gib == 3
    with pytest.raises(Invalid, match="Instance has not been resized"):
        world.end_resize(uuid, "revertResize")
    world.answer(grow, ok=True, power_state=power)
    world.until(uuid, was)
    assert (held(world, uuid), columns(world, uuid)) == (NEW, (4, 256, 3))
    assert migration(world).status == "confirmed"
    assert [one.state for one in world.rows(schema.operations)][-2:] == ["done", "done"]


def test_without_a_larger_disk_a_confirmation_needs_no_agent(world: World) -> None:
    uuid = resized(world, flavor=FlavorSnapshot("2", "m1.more", 2, 1024, 1))
    world.end_resize(uuid, "confirmResize")
    world.until(uuid, "active")
    assert not world.compute.sent
    assert held(world, uuid) == {"VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 1}


@pytest.mark.parametrize("was", ["active", "stopped"])
def test_a_reversion_restores_everything(world: World, was: str) -> None:
    uuid = resized(world, was)
    world.end_resize(uuid, "revertResize")
    command = world.compute.wait_for(1)
    assert isinstance(command, Shape)
    assert (command.size.vcpus, command.running) == (1, was == "active")
    row = world.row(uuid)
    assert status(row.vm_state, row.task_state) == "REVERT_RESIZE"
    world.answer(command, ok=True, power_state=1)
    row = world.until(uuid, was)
    assert (held(world, uuid), columns(world, uuid)) == (SMALL, (1, 512, 1))
    assert (row.flavor["id"], migration(world).status) == ("1", "reverted")


def test_no_room_leaves_the_server_as_it_was(world: World) -> None:
    uuid = a_server(world)
    world.scheduler.hosts.clear()
    world.resize(uuid, MIXED)
    world.until(uuid, "active")
    assert not world.compute.sent
    assert (held(world, uuid), columns(world, uuid)) == (SMALL, (1, 512, 1))
    assert migration(world).status == "error"
    (fault,) = world.rows(schema.faults)
    assert fault.category == "no_valid_host"
    assert fault.owner_message == "No valid host was found. No valid host found for resize"
    assert "none left" in fault.message


def test_what_the_agent_could_not_do_is_undone(world: World) -> None:
    uuid = a_server(world)
    world.resize(uuid, MIXED)
    world.answer(world.compute.wait_for(1), ok=False, failure=BROKEN)
    back = world.compute.wait_for(2)
    assert isinstance(back, Shape)
    assert (back.size.vcpus, back.former.vcpus) == (1, 4)
    assert held(world, uuid) == BOTH
    world.answer(back, ok=True, power_state=1)
    world.until(uuid, "active")
    assert (held(world, uuid), columns(world, uuid)) == (SMALL, (1, 512, 1))
    assert migration(world).status == "error"


@pytest.mark.parametrize("action", ["confirmResize", "revertResize"])
def test_a_second_half_that_fails_may_be_tried_again(world: World, action: str) -> None:
    uuid = resized(world)
    world.end_resize(uuid, action)
    world.answer(world.compute.wait_for(1), ok=False, failure=BROKEN)
    world.until(uuid, "resized")
    world.until_faults(1)
    assert (migration(world).status, held(world, uuid)) == ("finished", BOTH)
    world.end_resize(uuid, action)
    world.answer(world.compute.wait_for(2), ok=True, power_state=1)
    world.until(uuid, "active")


def test_a_delete_confirms_first(world: World) -> None:
    uuid = resized(world)
    world.act(uuid, "delete")
    assert migration(world).status == "confirmed"
    world.answer(world.compute.wait_for(1), ok=True, gone=True)
    world.until(uuid, "deleted")
    assert uuid not in world.placement.claims


def test_a_delete_interrupts_a_resize(world: World) -> None:
    uuid = a_server(world)
    world.resize(uuid, MIXED)
    world.compute.wait_for(1)
    world.act(uuid, "delete")
    assert migration(world).status == "error"
    world.answer(world.compute.wait_for(2), ok=True, gone=True)
    world.until(uuid, "deleted")


@pytest.mark.parametrize(
    ("flavor", "text"),
    [
        (FlavorSnapshot("1", "m1.tiny", 1, 512, 1), "instances must change flavor!"),
        (FlavorSnapshot("2", "none", 1, 512, 0), "Resize to zero disk flavor is not allowed."),
        (
            FlavorSnapshot("2", "numa", 1, 512, 1, extra_specs={"hw:numa_nodes": "3"}),
            "The flavor asks for what can't be had",
        ),
    ],
)
def test_flavors_that_it_can_t_have(world: World, flavor: FlavorSnapshot, text: str) -> None:
    uuid = a_server(world)
    with pytest.raises(Invalid, match=text):
        world.resize(uuid, flavor)
    assert not world.rows(schema.migrations)


def with_disks(number: int, ephemeral: int, swap: int) -> FlavorSnapshot:
    """A flavor whose servers have disks beside the root disk, as the API sends it for a create."""
    return FlavorSnapshot(
        *(str(number), f"f{number}", 1, 512, 1, ephemeral, swap),
        local_disks=of_server(ephemeral, swap),
    )


def test_local_disks_are_built_claimed_and_resized(world: World) -> None:
    (uuid,) = world.create(flavor=with_disks(1, 2, 512))
    build = world.compute.wait_for(1)
    assert (build.disk_gib, build.local_disks) == (1, of_server(2, 512))
    world.answer(build, ok=True, power_state=1)
    world.until(uuid, "active")
    assert (held(world, uuid)["DISK_GB"], columns(world, uuid)[2]) == (4, 4)
    with pytest.raises(Invalid, match="ephemeral disks can't shrink"):
        world.resize(uuid, with_disks(2, 1, 512))
    for action, disk in (("revertResize", 4), ("confirmResize", 6)):
        world.compute.sent.clear()
        # The API sends a flavor of a resize without disks.
        world.resize(uuid, dataclasses.replace(with_disks(2, 3, 2048), local_disks=()))
        world.answer(world.compute.wait_for(1), ok=True, power_state=1)
        world.until(uuid, "resized")
        assert held(world, uuid)["DISK_GB"] == 6
        world.compute.sent.clear()
        world.end_resize(uuid, action)
        command = world.compute.wait_for(1)
        if action == "confirmResize":
            assert isinstance(command, Grow)
            assert command.local_disks == of_server(3, 2048)
        world.answer(command, ok=True, power_state=1)
        world.until(uuid, "active")
        assert (held(world, uuid)["DISK_GB"], columns(world, uuid)[2]) == (disk, disk)


def test_the_quota_counts_what_it_grows_by(world: World) -> None:
    uuid = a_server(world)
    with pytest.raises(QuotaExceeded, match="Requested 20, but already used 1 of 20 cores"):
        world.resize(uuid, FlavorSnapshot("2", "huge", 21, 512, 1))
    assert columns(world, uuid) == (1, 512, 1)


def test_states_and_a_silent_agent_refuse_it(world: World) -> None:
    uuid = a_server(world)
    with pytest.raises(ServerStateConflict, match="Cannot 'confirmResize' instance"):
        world.end_resize(uuid, "confirmResize")
    world.silence()
    with pytest.raises(Conflict, match="Service is unavailable at this time"):
        world.resize(uuid, MIXED)


def test_of_racing_actions_one_begins(world: World) -> None:
    """Each of the others gets Nova's 409, and leaves nothing."""
    uuid = a_server(world)
    begun: list[str] = []

    def act(action: str) -> None:
        try:
            if action == "resize":
                world.resize(uuid, MIXED)
            else:
                world.act(uuid, action)
        except ServerStateConflict:
            return
        begun.append(action)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(act, ["resize", "stop", "reboot", "resize"] * 2))
    (action,) = begun
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, {"resize": "resized", "stop": "stopped", "reboot": "active"}[action])
    assert len(world.rows(schema.migrations)) == (action == "resize")


BOUND = "its disk is a linked clone on storage local"


def bind(world: World, uuid: str) -> None:
    """As its agent reports of a VM that can't be moved."""
    hosts = schema.hosts
    (own,) = [one for one in world.rows(hosts) if one.host == world.row(uuid).host]
    facts = {**own.facts, "pinned": {str(world.row(uuid).vmid): BOUND}}
    change = hosts.update().where(hosts.c.host == own.host).values(facts=facts)
    world.conductor.store.run(lambda c: c.execute(change))


@pytest.mark.parametrize("same_host", [True, False])
def test_one_that_no_host_can_take_is_refused_at_once(world: World, same_host: bool) -> None:
    uuid = a_server(world)
    bind(world, uuid)
    if same_host:
        world.scheduler.hosts.clear()
    else:
        world.conductor.cloud.conf.set_override(
            "allow_resize_to_same_host", False, group="conductor"
        )
    with pytest.raises(Invalid, match=r"^No valid host was found\. .*linked clone"):
        world.resize(uuid, MIXED)
    assert (world.row(uuid).task_state, world.rows(schema.migrations)) == (None, [])


def test_one_that_can_not_move_is_resized_where_it_is(world: World) -> None:
    uuid = a_server(world)
    bind(world, uuid)
    world.resize(uuid, MIXED)
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "resized")


def test_without_its_own_host_a_resize_goes_to_another(world: World) -> None:
    world.conductor.cloud.conf.set_override("allow_resize_to_same_host", False, group="conductor")
    uuid = a_server(world)
    world.resize(uuid, MIXED)
    stop = world.compute.wait_for(1)
    assert isinstance(stop, Power)
    (row,) = world.rows(schema.migrations)
    assert (row.source_host, row.dest_host) == ("pve1", "pve2")
