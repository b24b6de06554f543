"""Fewer hosts than ``min_count`` asks for: none of the servers is built."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from common.context import RequestContext
from common.messages.scheduling import Alternate, Decision, Requested
from conductor.create import Create
from conductor.messages import CreateServers, FlavorSnapshot
from db import schema
from tests.functional.conductor.harness import IMAGE, Placement, Scheduler, World


class Room(Scheduler):
    """Has room for so many servers."""

    def __init__(self, placement: Placement, hosts: list[str], room: int) -> None:
        super().__init__(placement, hosts)
        self.room = room

    def select(
        self, ctxt: RequestContext, request: Requested, alternates: tuple[Alternate, ...] = ()
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
    created, operations = world.conductor.accept.create(world.ctxt, request)
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
