"""Shelved servers: what they claim, how they are listed, and how they come back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.errors import Conflict
from common.messages.commands import Destroy, Move, Power, PowerAction
from common.messages.reports import Category, Failure
from common.resources.states import VmState
from conductor.servers.disks import begin_unshelve
from conductor.servers.record.reset_state import reset_state
from db import schema
from tests.functional.conductor.harness import World

WHOLE = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}


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


def amounts(world: World, uuid: str) -> Any:
    (held,) = world.placement.allocations_of(uuid).by_provider.values()
    return dict(held)


def listed(world: World, uuid: str) -> list[tuple[str, str]]:
    return [(one.name, one.status) for one in world.rows(schema.images) if one.server_uuid == uuid]


def answer(world: World, count: int, action: PowerAction, **outcome: Any) -> None:
    command = world.compute.wait_for(count)
    assert isinstance(command, Power)
    assert command.action == action
    world.answer(command, **outcome)


def shelved(world: World, uuid: str) -> None:
    world.act(uuid, "shelve")
    answer(world, 2, PowerAction.STOP, ok=True, power_state=4)
    world.until(uuid, "shelved_offloaded")


def unshelve(world: World, uuid: str, asked: dict[str, Any]) -> None:
    operation = begin_unshelve.accept(world.conductor.accept, world.ctxt, uuid, asked)
    assert operation is not None
    world.conductor.runner.submit(operation)


def test_a_shelved_server_keeps_its_disk_only(world: World, server: str) -> None:
    shelved(world, server)
    assert amounts(world, server) == {"DISK_GB": 1}
    assert listed(world, server) == [("web-shelved", "active")]
    world.beat()
    assert listed(world, server) == [("web-shelved", "active")]
    world.act(server, "unshelve")
    answer(world, 3, PowerAction.START, ok=True, power_state=1)
    world.until(server, "active")
    assert (amounts(world, server), listed(world, server)) == (WHOLE, [])


def test_a_stop_that_fails_leaves_it_as_it_was(world: World, server: str) -> None:
    world.act(server, "shelve")
    failure = Failure(Category.CREATION_FAILED, "it does not stop", host="pve1")
    answer(world, 2, PowerAction.STOP, ok=False, power_state=1, failure=failure)
    world.until(server, "active")
    assert (amounts(world, server), listed(world, server)) == (WHOLE, [])


def test_one_without_room_stays_shelved(world: World, server: str) -> None:
    shelved(world, server)
    world.scheduler.hosts.clear()
    world.act(server, "unshelve")
    world.until_operation("done", "done", "failed")
    world.until(server, "shelved_offloaded")
    assert amounts(world, server) == {"DISK_GB": 1}
    (fault,) = world.rows(schema.faults)
    assert "No valid host was found. Host pve1 can't take it" in str(fault)
    assert len(world.compute.sent) == 2
    assert [one.status for one in world.rows(schema.migrations)] == ["error"]


def moved(world: World, count: int, outcome: dict[str, Any]) -> None:
    command = world.compute.wait_for(count)
    assert isinstance(command, Move)
    assert (command.placed.node, command.target_node) == ("pve1", "pve2")
    world.answer(command, **outcome)


THERE = {"ok": True, "node": "pve2", "power_state": 4}


@pytest.mark.parametrize("why", ["full", "disabled", "asked", "zone"])
def test_it_comes_back_elsewhere(world: World, server: str, why: str) -> None:
    shelved(world, server)
    asked: dict[str, Any] = {}
    if why == "full":
        world.placement.full.add("uuid-pve1")
    elif why == "disabled":
        world.scheduler.hosts.remove("pve1")
    elif why == "zone":
        asked = {"pinned_availability_zone": "far"}
        far = schema.services.update().where(schema.services.c.host == "pve2")
        world.conductor.store.run(lambda c: c.execute(far.values(aggregate_zone="far")))
    else:
        asked = {"host": "pve2"}
    unshelve(world, server, asked)
    moved(world, 3, THERE)
    command = world.compute.wait_for(4)
    assert (command.placed.node, world.placement.claims[server]) == ("pve2", "uuid-pve1")
    answer(world, 4, PowerAction.START, ok=True, power_state=1)
    row = world.until(server, "active")
    assert (row.host, row.node, row.power_state) == ("pve2", "pve2", 1)
    assert (amounts(world, server), listed(world, server)) == (WHOLE, [])
    assert world.placement.claims == {server: "uuid-pve2"}
    (migration,) = world.rows(schema.migrations)
    assert (migration.type, migration.status) == ("migration", "confirmed")
    assert (migration.source_host, migration.dest_host) == ("pve1", "pve2")


def test_disks_go_to_the_target_s_storage_and_back_to_the_source_s(
    world: World, server: str
) -> None:
    shelved(world, server)
    hosts = schema.hosts
    (other,) = [one for one in world.rows(hosts) if one.host == "pve2"]
    fast = [{**one, "name": "fast"} for one in other.facts["storages"]]
    facts = {**other.facts, "vm_storage": "fast", "storages": fast}
    change = hosts.update().where(hosts.c.host == "pve2").values(facts=facts)
    world.conductor.store.run(lambda c: c.execute(change))
    unshelve(world, server, {"host": "pve2"})
    there = world.compute.wait_for(3)
    assert isinstance(there, Move)
    assert there.target_storage == "fast"
    failure = Failure(Category.CONFIGURATION, "it can't be moved", host="pve1")
    world.answer(there, ok=False, failure=failure)
    back = world.compute.wait_for(4)
    assert isinstance(back, Move)
    assert back.target_storage == "local"
    world.answer(back, ok=True, node="pve1", power_state=4)
    world.until(server, "shelved_offloaded")


def test_a_move_that_fails_leaves_it_parked(world: World, server: str) -> None:
    shelved(world, server)
    unshelve(world, server, {"host": "pve2"})
    failure = Failure(Category.CONFIGURATION, "it can't be moved", host="pve1")
    moved(world, 3, {"ok": False, "failure": failure})
    back = world.compute.wait_for(4)
    assert isinstance(back, Move)
    assert (back.placed.node, back.target_node) == ("pve2", "pve1")
    world.answer(back, ok=True, node="pve1", power_state=4)
    row = world.until(server, "shelved_offloaded")
    assert (row.host, amounts(world, server)) == ("pve1", {"DISK_GB": 1})
    assert world.placement.claims == {server: "uuid-pve1"}
    assert listed(world, server) == [("web-shelved", "active")]


def test_one_that_can_not_move_is_refused_elsewhere(world: World, server: str) -> None:
    shelved(world, server)
    pinned = {str(world.row(server).vmid): "its disk is a linked clone"}
    hosts = schema.hosts
    (own,) = [one for one in world.rows(hosts) if one.host == "pve1"]
    change = hosts.update().where(hosts.c.host == "pve1")
    facts = {**own.facts, "pinned": pinned}
    world.conductor.store.run(lambda c: c.execute(change.values(facts=facts)))
    with pytest.raises(Conflict, match="can't be moved, its disk is a linked clone"):
        unshelve(world, server, {"host": "pve2"})
    assert world.row(server).task_state is None
    world.scheduler.hosts.remove("pve1")
    unshelve(world, server, {})
    world.until_operation("done", "done", "failed")
    assert "its disk is a linked clone" in str(world.rows(schema.faults))
    assert world.rows(schema.migrations) == []


def test_saved_memory_does_not_move(world: World, server: str) -> None:
    world.act(server, "suspend")
    answer(world, 2, PowerAction.SUSPEND, ok=True, power_state=7)
    world.until(server, "suspended")
    world.act(server, "shelve")
    world.until(server, "shelved_offloaded")
    with pytest.raises(Conflict, match="its memory is saved on its node"):
        unshelve(world, server, {"host": "pve2"})


def test_a_start_that_fails_is_undone(world: World, server: str) -> None:
    shelved(world, server)
    world.act(server, "unshelve")
    failure = Failure(Category.CREATION_FAILED, "it does not start", host="pve1")
    answer(world, 3, PowerAction.START, ok=False, power_state=4, failure=failure)
    answer(world, 4, PowerAction.STOP, ok=True, power_state=4)
    world.until(server, "shelved_offloaded")
    assert amounts(world, server) == {"DISK_GB": 1}
    assert listed(world, server) == [("web-shelved", "active")]


def test_one_that_is_to_keep_its_claim_is_offloaded_later(tmp_path: Path) -> None:
    world = World(tmp_path, shelved_offload_time=-1)
    world.conductor.runner.start()
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "active")
    world.act(uuid, "shelve")
    answer(world, 2, PowerAction.STOP, ok=True, power_state=4)
    world.until(uuid, "shelved")
    assert (amounts(world, uuid), listed(world, uuid)) == (WHOLE, [("web-shelved", "active")])
    world.act(uuid, "shelveOffload")
    world.until(uuid, "shelved_offloaded")
    assert amounts(world, uuid) == {"DISK_GB": 1}
    world.close()


def test_a_suspended_server_keeps_its_memory(world: World, server: str) -> None:
    world.act(server, "suspend")
    answer(world, 2, PowerAction.SUSPEND, ok=True, power_state=7)
    world.until(server, "suspended")
    world.act(server, "shelve")
    world.until(server, "shelved_offloaded")
    world.act(server, "unshelve")
    answer(world, 3, PowerAction.RESUME, ok=True, power_state=1)
    world.until(server, "active")
    assert amounts(world, server) == WHOLE


def test_a_delete_takes_it_off_the_list(world: World, server: str) -> None:
    shelved(world, server)
    world.act(server, "delete")
    command = world.compute.wait_for(3)
    assert isinstance(command, Destroy)
    assert listed(world, server) == []
    world.answer(command, ok=True, gone=True)
    world.until(server, "deleted")
    assert server not in world.placement.claims


def test_a_reset_takes_it_off_the_list_too(world: World, server: str) -> None:
    shelved(world, server)
    reset_state(world.conductor.cloud, world.ctxt, server, VmState.ERROR)
    assert listed(world, server) == []
    # What it holds is the audit's to put right.
    world.leaves.add("allocation_differs")
