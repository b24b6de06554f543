"""Drains and applied rebalances: begun, bounded, steered, and what is left when they end."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock
from common.context import RequestContext
from common.errors import Conflict, HostNotFound, NotFound
from common.messages.commands import Move
from common.messages.reports import Category, Failure
from common.resources.bulk_migrations import Move as BulkMove
from common.resources.bulk_migrations import MoveState, Steering
from conductor.plans import BulkPlan
from conductor.servers.bulk import begin_bulk
from conductor.servers.bulk.decide import MAX_TRIES
from conductor.servers.bulk.looking import look
from conductor.servers.bulk.room import MoveRoom
from conductor.store.ledger import bulk_migrations as store
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation
from db import schema
from tests.fixtures.listings import counted
from tests.functional.conductor.harness import Conductor, Mortal, World

ADMIN = RequestContext(user_id="boss", project_id="admin", roles=["admin"], is_admin=True)
BROKEN = Failure(Category.AUTHORIZATION, "Permission check failed")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    # What follows is begun by what ends: nothing is found by looking now and then.
    made = World(tmp_path, hosts=("pve1", "pve2"), scan_seconds=3600)
    made.conductor.runner.start()
    yield made
    made.close()


def some_servers(world: World, count: int) -> list[str]:
    """Active ones, on pve1."""
    uuids = []
    for number in range(1, count + 1):
        uuids += world.create()
        world.answer(world.compute.wait_for(number), ok=True, power_state=1)
        world.until(uuids[-1], "active")
    world.compute.sent.clear()
    return uuids


def drain(world: World, at_once: int = 2, *, live_only: bool = False) -> int:
    cloud = world.conductor.cloud
    operation = begin_bulk.drain(cloud, ADMIN, "pve1", at_once, live_only=live_only)
    world.conductor.runner.submit(operation)
    return operation.id


def operation(world: World, number: int) -> Operation:
    with world.conductor.store.read() as connection:
        found = ledger.get(connection, number)
    assert found is not None
    return found


def moves(world: World, number: int) -> dict[str, tuple[str, str | None]]:
    plan = operation(world, number).planned(BulkPlan)
    return {one.server_uuid: (str(one.state), one.reason) for one in plan.moves}


def until(world: World, number: int, uuid: str, state: str) -> None:
    world._wait(lambda: moves(world, number), lambda found: found[uuid][0] == state)


def until_over(world: World, number: int) -> tuple[str, str | None]:
    world._wait(lambda: operation(world, number), lambda found: found.state in ("done", "failed"))
    found = operation(world, number)
    return found.state, found.message


def arrive(world: World, count: int) -> list[Any]:
    """The agent carries so many migrations out, as they come."""
    for number in range(1, count + 1):
        command = world.compute.wait_for(number)
        assert isinstance(command, Move)
        world.answer(command, ok=True, power_state=1, node="pve2")
    return [command for _, command in world.compute.sent]


def change(world: World, uuid: str, **values: Any) -> None:
    query = schema.servers.update().where(schema.servers.c.uuid == uuid).values(**values)
    world.conductor.store.run(lambda c: c.execute(query))


def service(world: World) -> Any:
    (row,) = [one for one in world.rows(schema.services) if one.host == "pve1"]
    return row


def test_every_server_leaves_and_the_host_stays_disabled(world: World) -> None:
    uuids = some_servers(world, 3)
    number = drain(world)
    assert (service(world).disabled, service(world).disabled_reason) == (True, "being drained")
    sent = arrive(world, 3)
    assert until_over(world, number) == ("done", "3 moved, none remain.")
    assert {one.resource_id for one in sent} == set(uuids)
    assert all(one.live for one in sent)
    assert {world.row(uuid).host for uuid in uuids} == {"pve2"}
    begun = [one for one in world.rows(schema.operations) if one.action == "live-migration"]
    assert len(begun) == 3
    # One request explains them all; each is its own project's.
    assert len({one.request_id for one in begun}) == 1
    assert {one.project_id for one in begun} == {"p"}
    assert service(world).disabled


def test_no_more_at_once_than_asked_or_allowed(world: World) -> None:
    uuids = some_servers(world, 3)
    number = drain(world, at_once=1)
    first = world.compute.wait_for(1)
    until(world, number, first.resource_id, "moving")
    assert sorted(state for state, _ in moves(world, number).values()) == [
        "moving",
        "waiting",
        "waiting",
    ]
    arrive(world, 3)
    assert until_over(world, number)[0] == "done"
    assert {world.row(uuid).host for uuid in uuids} == {"pve2"}


def test_all_of_them_together_are_bounded_too(tmp_path: Path) -> None:
    world = World(tmp_path, bulk_moves_in_all=1, scan_seconds=3600)
    world.conductor.runner.start()
    uuids = some_servers(world, 2)
    planned = [BulkMove(uuids[0], "web", "pve1", target="pve2")]
    cloud = world.conductor.cloud
    other = begin_bulk.rebalance(cloud, ADMIN, planned, 5)
    world.conductor.runner.submit(other)
    moving = world.compute.wait_for(1)
    number = drain(world, at_once=5)
    world.until_paused()
    assert [state for state, _ in moves(world, number).values()].count("moving") == 0
    assert moving.resource_id == uuids[0]
    arrive(world, 2)
    assert until_over(world, number)[0] == "done"
    assert until_over(world, other.id)[0] == "done"
    world.close()


def test_what_can_not_be_moved_stays_with_its_reason(world: World) -> None:
    uuids = some_servers(world, 3)
    change(world, uuids[0], vm_state="suspended")
    change(world, uuids[1], held=True)
    number = drain(world)
    arrive(world, 1)
    state, message = until_over(world, number)
    assert state == "failed"
    assert message is not None
    assert message.startswith("1 moved, 2 remain (")
    assert moves(world, number) == {
        uuids[0]: ("blocked", "it is suspended: resume it"),
        uuids[1]: ("blocked", "it is held: release the hold"),
        uuids[2]: ("moved", None),
    }
    # Again, once that is put right: only what is left.
    change(world, uuids[0], vm_state="active")
    change(world, uuids[1], held=False)
    again = drain(world)
    arrive(world, 3)
    assert until_over(world, again) == ("done", "2 moved, none remain.")
    nothing = drain(world)
    assert until_over(world, nothing) == ("done", "0 moved, none remain.")
    assert len(world.compute.sent) == 3


def test_what_ends_while_the_plan_is_looked_at_is_seen_at_once(world: World) -> None:
    (uuid,) = some_servers(world, 1)
    drained = begin_bulk.drain(world.conductor.cloud, ADMIN, "pve1", 1, live_only=False)

    def ends() -> None:
        world.conductor.runner.look()
        arrive(world, 1)
        world._wait(lambda: world.row(uuid), lambda row: row.task_state is None)

    # The look and the beginning are committed before.
    Mortal(world.conductor.store).slow(3, ends)
    world.conductor.runner.submit(drained)
    assert until_over(world, drained.id) == ("done", "1 moved, none remain.")


def test_busy_ones_are_waited_for_and_deleted_ones_forgotten(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.conductor.runner.start()
    busy, going = some_servers(world, 2)
    world.act(busy, "stop")
    stop = world.compute.wait_for(1)
    world.act(going, "delete")
    delete = world.compute.wait_for(2)
    number = drain(world)
    until(world, number, busy, "waiting")
    assert moves(world, number)[busy] == ("waiting", "it is busy (powering-off)")
    world.answer(delete, ok=True, gone=True)
    until(world, number, going, "gone")
    world.answer(stop, ok=True, power_state=4)
    move = world.compute.wait_for(3)
    assert isinstance(move, Move)
    assert not move.live
    world.answer(move, ok=True, power_state=4, node="pve2")
    assert until_over(world, number) == ("done", "1 moved, none remain.")
    row = world.row(busy)
    assert (row.host, row.vm_state) == ("pve2", "stopped")
    assert moves(world, number)[going] == ("gone", "it was deleted")
    world.close()


def test_one_that_begins_something_else_first_is_tried_later(world: World) -> None:
    (uuid,) = some_servers(world, 1)
    member = RequestContext(user_id="ops", project_id="p", roles=["operator"])
    locked = {"locked_by": "admin"}
    change(world, uuid, **locked)
    cloud = world.conductor.cloud
    # A lock stops a user who is no administrator, though policy lets them drain.
    begun = begin_bulk.drain(cloud, member, "pve1", 1, live_only=False)
    world.conductor.runner.submit(begun)
    world._wait(lambda: moves(world, begun.id), lambda found: found[uuid][1] is not None)
    assert moves(world, begun.id)[uuid] == ("waiting", f"Instance {uuid} is locked")
    change(world, uuid, locked_by=None)
    plan = operation(world, begun.id).planned(BulkPlan)
    assert plan.moves[0].not_before is not None
    assert plan.moves[0].tries == 1
    begin_bulk.set_state(cloud, begun.id, Steering.CANCEL)
    state, message = until_over(world, begun.id)
    assert (state, message) == (
        "failed",
        f"Cancelled: 0 moved, 1 remain (1: Instance {uuid} is locked).",
    )


def test_a_drain_that_waits_for_room_tries_again_until_a_host_has_some(world: World) -> None:
    [uuid] = some_servers(world, 1)
    hosts = world.scheduler.hosts
    world.scheduler.hosts = [host for host in hosts if host == "pve1"]
    begun = begin_bulk.drain(
        world.conductor.cloud, ADMIN, "pve1", 1, live_only=False, wait_seconds=600
    )
    world.conductor.runner.submit(begun)
    for _ in range(MAX_TRIES + 1):
        world._wait(lambda: moves(world, begun.id)[uuid], lambda one: "No valid host" in str(one))
        move = operation(world, begun.id).planned(BulkPlan).moves[0]
        assert (move.state, move.tries) == ("waiting", 0) and move.not_before is not None
        soon = dataclasses.replace(move, not_before=None, reason=None)
        plan = dataclasses.replace(operation(world, begun.id).planned(BulkPlan), moves=(soon,))
        world.conductor.store.run(lambda c, plan=plan: ledger.save(c, begun.id, plan=plan))
        world.make_due()
    world.scheduler.hosts = hosts
    arrive(world, 1)
    state, message = until_over(world, begun.id)
    assert (state, message) == ("done", "1 moved, none remain.")


class WaitingMove:
    """The move of a server off pve1, which no host takes; pve2 has what ``free`` says."""

    def __init__(self, world: World) -> None:
        self.world = world
        [self.uuid] = some_servers(world, 1)
        self.hosts = world.scheduler.hosts
        world.scheduler.hosts = [host for host in self.hosts if host == "pve1"]
        self.free = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
        world.placement.free = {"uuid-pve2": self.free}
        self.room = MoveRoom(world.conductor.cloud)
        begun = begin_bulk.drain(
            world.conductor.cloud, ADMIN, "pve1", 1, live_only=False, wait_seconds=600
        )
        self.number = begun.id
        world.conductor.runner.submit(begun)
        world._wait(self.shown, lambda one: "No valid host" in str(one))

    def shown(self) -> Any:
        return moves(self.world, self.number)[self.uuid]

    def is_to_be_tried(self) -> bool:
        """Look; return whether it is tried now."""
        self.room.look()
        [move] = operation(self.world, self.number).planned(BulkPlan).moves
        return move.not_before is None

    def becomes(self, state: MoveState) -> None:
        plan = operation(self.world, self.number).planned(BulkPlan)
        moved = tuple(dataclasses.replace(one, state=state) for one in plan.moves)
        changed = dataclasses.replace(plan, moves=moved)
        self.world.conductor.store.run(lambda c: ledger.save(c, self.number, plan=changed))


def test_a_move_that_waits_is_tried_once_a_host_has_more_room(world: World) -> None:
    """No sooner: what was free when it was refused is not enough, or is no good to it."""
    waits = WaitingMove(world)
    for amount in (1, 1, 0):
        waits.free["VCPU"] = amount
        assert not waits.is_to_be_tried()
    assert world.conductor.cloud.news.moves
    world.scheduler.hosts = waits.hosts
    waits.free["VCPU"] = 2
    waits.room.look()
    arrive(world, 1)
    assert until_over(world, waits.number) == ("done", "1 moved, none remain.")
    waits.room.look()
    assert not world.conductor.cloud.news.moves


def test_room_that_comes_while_a_move_is_tried_is_seen_once_it_was_refused(world: World) -> None:
    waits = WaitingMove(world)
    assert not waits.is_to_be_tried()
    waits.becomes(MoveState.MOVING)
    waits.free["VCPU"] = 2
    assert not waits.is_to_be_tried()
    waits.becomes(MoveState.WAITING)
    assert waits.is_to_be_tried()


def test_paused_resumed_and_cancelled(world: World) -> None:
    some_servers(world, 3)
    cloud = world.conductor.cloud
    number = drain(world, at_once=1)
    world.compute.wait_for(1)
    begin_bulk.set_state(cloud, number, Steering.PAUSE)
    arrive(world, 1)
    world._wait(
        lambda: sorted(state for state, _ in moves(world, number).values()),
        lambda states: states == ["moved", "waiting", "waiting"],
    )
    world._wait(
        lambda: operation(world, number),
        lambda found: found.state == "queued",
    )
    assert len(world.compute.sent) == 1
    begin_bulk.set_state(cloud, number, Steering.GO)
    world.compute.wait_for(2)
    begin_bulk.set_state(cloud, number, Steering.CANCEL)
    with pytest.raises(Conflict, match="was cancelled"):
        begin_bulk.set_state(cloud, number, Steering.GO)
    arrive(world, 2)
    state, message = until_over(world, number)
    assert (state, message) == (
        "failed",
        "Cancelled: 2 moved, 1 remain (1: it was cancelled before).",
    )
    with pytest.raises(Conflict, match="has ended"):
        begin_bulk.set_state(cloud, number, Steering.PAUSE)
    with pytest.raises(NotFound):
        begin_bulk.set_state(cloud, 999, Steering.PAUSE)


def test_a_failed_migration_is_written_down_and_tried_later(world: World) -> None:
    (uuid,) = some_servers(world, 1)
    number = drain(world)
    move = world.compute.wait_for(1)
    world.answer(move, ok=False, failure=BROKEN, node="pve1", power_state=1)
    world._wait(lambda: moves(world, number), lambda found: found[uuid][1] is not None)
    state, reason = moves(world, number)[uuid]
    assert state == "waiting"
    assert "Permission check failed" in str(reason)
    (move,) = operation(world, number).planned(BulkPlan).moves
    assert move.not_before is not None
    assert move.not_before > clock.utcnow()


def test_refused_and_nothing_changed(world: World) -> None:
    some_servers(world, 1)
    cloud = world.conductor.cloud
    with pytest.raises(HostNotFound):
        begin_bulk.drain(cloud, ADMIN, "pve9", 1, live_only=False)
    number = drain(world)
    world.compute.wait_for(1)
    with pytest.raises(Conflict, match=f"Bulk migration {number} is under way"):
        drain(world)
    arrive(world, 1)
    until_over(world, number)
    enabled = schema.services.update().values(disabled=False, disabled_reason=None)
    world.conductor.store.run(lambda c: c.execute(enabled))
    world.silence()
    with pytest.raises(Conflict, match="does not answer"):
        drain(world)
    assert not service(world).disabled
    # As if only one beat had been missed: the agent is found again afterwards.
    world.beat()


def test_the_reason_of_one_that_is_disabled_stays(world: World) -> None:
    query = schema.services.update().values(disabled=True, disabled_reason="new memory")
    world.conductor.store.run(lambda c: c.execute(query))
    assert until_over(world, drain(world))[0] == "done"
    assert service(world).disabled_reason == "new memory"


def test_a_rebalance_goes_where_it_was_planned(world: World) -> None:
    one, other = some_servers(world, 2)
    change(world, other, vm_state="rescued")
    planned = [
        BulkMove(uuid, "web", "pve1", target="pve2", purpose="it takes 3.0 % off the score")
        for uuid in (one, other)
    ]
    cloud = world.conductor.cloud
    begun = begin_bulk.rebalance(cloud, ADMIN, planned, 2)
    with pytest.raises(Conflict, match="is under way"):
        begin_bulk.rebalance(cloud, ADMIN, planned, 2)
    world.conductor.runner.submit(begun)
    arrive(world, 1)
    assert until_over(world, begun.id) == (
        "failed",
        "1 moved, 1 remain (1: it is rescued: unrescue it).",
    )
    assert world.scheduler.asked[-1].force_host == "pve2"
    (first, _) = operation(world, begun.id).planned(BulkPlan).moves
    assert first.purpose == "it takes 3.0 % off the score"
    assert not service(world).disabled


def test_a_look_costs_the_same_however_many_servers(tmp_path: Path) -> None:
    """Without a runner: one look after the other."""
    world = World(tmp_path, bulk_moves_in_all=1, scan_seconds=3600)
    world.conductor.runner.start()
    uuids = some_servers(world, 5)
    world.conductor.runner.stop()
    for uuid in uuids[1:]:
        change(world, uuid, vm_state="suspended")
    few = _looks(world, [uuids[1]])
    assert few == _looks(world, uuids[1:])
    assert few <= 12
    world.close()


def _looks(world: World, uuids: list[str]) -> int:
    """Statements of a drain that finds nothing to move but these, which it can't."""
    conductor: Conductor = world.conductor
    others = [row.uuid for row in world.rows(schema.servers) if row.uuid not in uuids]
    for uuid in others:
        change(world, uuid, host="pve2")
    for uuid in uuids:
        change(world, uuid, host="pve1")
    begun = begin_bulk.drain(conductor.cloud, ADMIN, "pve1", 2, live_only=False)
    assert len(begun.planned(BulkPlan).moves) == len(uuids)
    with counted(conductor.store._writer) as statements:
        conductor.runner._flows["drain"].resume(begun, fresh=True)
        found = statements()
    for uuid in others + uuids:
        change(world, uuid, host="pve1")
    assert operation(world, begun.id).state == "failed"
    return found


def test_migrations_are_looked_at_before_their_servers(world: World) -> None:
    """A move that ends between the two reads would be found ended, and its server not moved."""
    (uuid,) = some_servers(world, 1)
    move = BulkMove(uuid, "s", "pve1", state=MoveState.MOVING, operation_id=1)
    read: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        read.extend(name for name in ("operations", "servers") if f"FROM {name}" in statement)

    with world.conductor.store.read() as connection:
        sa.event.listen(connection, "before_cursor_execute", note)
        facts = look(connection, BulkPlan(moves=(move,)))
    assert read == ["operations", "servers"]
    assert set(facts.operations) == {1}
    assert set(facts.servers) == {uuid}


def test_one_look_of_the_ledger_locks_all_open_ones(world: World) -> None:
    some_servers(world, 1)
    number = drain(world)
    world.compute.wait_for(1)

    def work(connection: sa.Connection) -> list[int]:
        return [one.id for one in store.locked(connection)]

    assert world.conductor.store.run(work) == [number]
    arrive(world, 1)
    until_over(world, number)
    assert world.conductor.store.run(work) == []
