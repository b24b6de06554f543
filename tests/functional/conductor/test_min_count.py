"""Fewer hosts than ``min_count`` asks for: none of the servers is built."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from common import clock
from common.context import RequestContext
from common.messages.scheduling import Alternate, Decision, RequestSpec
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.servers import CreateServers
from conductor.servers.create.create import Create
from conductor.store.ledger import batches
from conductor.store.ledger import operations as ledger
from db import schema
from tests.functional.conductor.harness import IMAGE, Placement, Scheduler, World


class Room(Scheduler):
    """Has room for so many servers."""

    def __init__(self, placement: Placement, hosts: list[str], room: int) -> None:
        super().__init__(placement, hosts)
        self.room = room

    def select(
        self, ctxt: RequestContext, request: RequestSpec, alternates: tuple[Alternate, ...] = ()
    ) -> Decision:
        if len(self.placement.claims) < self.room:
            return super().select(ctxt, request, alternates)
        return Decision(request.server_uuid, None, considered=2, reason="None has room.")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.scheduler = Room(made.placement, list(made.hosts), 3)
    made.conductor = made.add_conductor("c2")
    made.conductor.runner.start()
    yield made
    made.close()


def create(world: World, least: int, most: int) -> tuple[str, ...]:
    flavor = FlavorSnapshot("1", "m1.tiny", 1, 512, 1)
    request = CreateServers("web", flavor, IMAGE, min_count=least, max_count=most)
    created, operations = world.conductor.creates.create(world.ctxt, request)
    begin = Create(world.conductor.cloud).begin_many
    world.conductor.runner.submit_many(operations, begin)
    return created.uuids


def test_none_is_left_running_without_enough_hosts(world: World) -> None:
    uuids = create(world, 5, 5)
    for uuid in uuids:
        row = world.until(uuid, "error")
        assert (row.host, row.vmid, row.addresses) == (None, None, [])
    world.until_operation(*["failed"] * 5)
    assert world.compute.sent == []
    assert world.placement.claims == {}
    faults = world.rows(schema.faults)
    assert len(faults) == 5
    assert {(fault.code, fault.category) for fault in faults} == {(500, "no_valid_host")}
    assert {fault.message for fault in faults} == {
        "Hosts were found for 3 servers, and min_count asks for 5: none is built. "
        "For the next one: None has room."
    }
    assert {fault.owner_message for fault in faults} == {
        "No valid host was found: there are not enough hosts available for the 5 servers that "
        "min_count asks for, so none is built."
    }
    (given_back, *_) = [row.body["claims"] for row in world.rows(schema.decisions)]
    assert given_back[-1]["result"] == "given back, as min_count isn't met"


def test_with_enough_hosts_those_that_found_one_are_built(world: World) -> None:
    uuids = create(world, 3, 5)
    world.compute.wait_for(3)
    world.until_faults(2)
    lost = {fault.server_uuid for fault in world.rows(schema.faults)}
    assert len(set(uuids) - lost) == 3
    assert {row.message for row in world.rows(schema.faults)} == {"None has room."}


def none_is_built(world: World, uuids: tuple[str, ...]) -> None:
    """All ended in ERROR, and nothing is left of any."""
    for uuid in uuids:
        row = world.until(uuid, "error")
        assert (row.host, row.vmid, row.addresses) == (None, None, [])
    world.until_operation(*["failed"] * len(uuids))
    assert world.compute.sent == []
    assert world.placement.claims == {}
    assert {fault.category for fault in world.rows(schema.faults)} == {"no_valid_host"}
    assert {fault.owner_message for fault in world.rows(schema.faults)} == {
        "No valid host was found: there are not enough hosts available for the "
        f"{len(uuids)} servers that min_count asks for, so none is built."
    }


def accepted(world: World, count: int) -> tuple[str, ...]:
    """Servers whose conductor ends right after they were written."""
    flavor = FlavorSnapshot("1", "m1.tiny", 1, 512, 1)
    request = CreateServers("web", flavor, IMAGE, min_count=count, max_count=count)
    created, _ = world.conductor.creates.create(world.ctxt, request)
    return created.uuids


def hurried(world: World, done: Callable[[], bool]) -> None:
    """Return when it is done. The conductor that worked on it is gone; pauses end early."""
    deadline, tick = clock.after(30), threading.Event()
    columns = schema.operations.c
    pausing = schema.operations.update().where(columns.lease_owner.is_(None))
    world.make_due()
    while not done():
        assert clock.utcnow() < deadline, world.rows(schema.operations)
        world.conductor.store.run(lambda c: c.execute(pausing.values(not_before=None)))
        tick.wait(0.1)


def ended(world: World) -> bool:
    """Whether no operation is open."""
    return all(row.state in ("done", "failed") for row in world.rows(schema.operations))


def test_a_decision_that_could_not_be_made_is_made_for_all_later(world: World) -> None:
    world.scheduler.down = True
    uuids = create(world, 5, 5)
    world.until_paused()
    world.scheduler.down = False
    hurried(world, lambda: ended(world))
    none_is_built(world, uuids)


def test_who_takes_a_create_over_decides_for_all_of_it(world: World) -> None:
    uuids = accepted(world, 5)
    hurried(world, lambda: ended(world))
    none_is_built(world, uuids)


def test_two_conductors_that_take_it_over_decide_once(world: World) -> None:
    uuids = accepted(world, 5)
    world.add_conductor("c3").runner.start()
    hurried(world, lambda: ended(world))
    none_is_built(world, uuids)


def test_claims_of_a_decision_that_was_not_written_down_are_given_back(world: World) -> None:
    uuids = accepted(world, 5)
    for uuid in uuids[:3]:
        world.placement.claims[uuid] = "pve1"
    hurried(world, lambda: ended(world))
    none_is_built(world, uuids)


def test_what_was_decided_holds_when_there_is_room_later(world: World) -> None:
    """The conductor ended after two of five were in ERROR; the others would have room by then."""
    uuids = accepted(world, 5)
    create_flow = world.conductor.runner._flows["create"]
    with world.conductor.store.read() as connection:
        batch = [
            found
            for row in connection.execute(schema.operations.select()).all()
            if (found := ledger.get(connection, row.id)) is not None
        ]
    text = "Hosts were found for 3 servers, and min_count asks for 5: none is built."
    world.conductor.store.run(lambda c: batches.decide(c, batch, "c2", text))
    for operation in batch[:2]:
        with world.conductor.store.read() as connection:
            found = ledger.get(connection, operation.id)
        assert found is not None
        create_flow.resume(found, fresh=False)
    world.scheduler.room = 100
    hurried(world, lambda: ended(world))
    none_is_built(world, uuids)
    assert world.scheduler.asked == []


def test_with_room_for_all_those_taken_over_are_built(world: World) -> None:
    world.scheduler.room = 5
    uuids = accepted(world, 5)
    hurried(world, lambda: len({command.resource_id for _, command in world.compute.sent}) == 5)
    assert {*world.placement.claims} == {*uuids}
    assert {world.row(uuid).task_state for uuid in uuids} == {"spawning"}


def test_a_server_that_was_deleted_in_between_is_none_too_few(world: World) -> None:
    world.scheduler.room = 4
    uuids = accepted(world, 5)
    world.act(uuids[1], "delete")
    rest = {*uuids} - {uuids[1]}
    hurried(world, lambda: {one.resource_id for _, one in world.compute.sent} >= rest)
    assert {*world.placement.claims} == rest
