"""Shelved servers: what they claim, how they are listed, and how they come back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.messages.commands import Destroy, Power, PowerAction
from common.messages.reports import Category, Failure
from common.states import VmState
from conductor.flows.record.reset_state import reset_state
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
    provider = f"uuid-{world.row(server).host}"
    world.placement.full.add(provider)
    world.act(server, "unshelve")
    world.until(server, "shelved_offloaded", "unshelving")
    world._wait(lambda: world.rows(schema.faults), lambda rows: len(rows) == 1)
    world.placement.full.clear()
    world.make_due()
    world.until(server, "shelved_offloaded")
    assert amounts(world, server) == {"DISK_GB": 1}
    assert "No valid host was found." in str(world.rows(schema.faults))
    assert len(world.compute.sent) == 2


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
