"""Neighbours that are down, news that comes twice or late, leases that were lost."""

from __future__ import annotations

import dataclasses
import datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock
from common.errors import ServerNotFound, StaleTransition
from common.messages.facts import Heartbeat
from common.messages.reports import Built, Category, Failure, Working
from common.resources.states import OperationState
from conductor.engine.access import scope
from conductor.plans import CreatePlan
from conductor.servers.create.create import Create
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.servers import vmids
from db import schema
from tests.functional.conductor.harness import World

BOOM = Failure(Category.CREATION_FAILED, "boom", host="pve1")


def overdue(world: World) -> None:
    """Every deadline has passed, and every operation is due."""
    past = clock.after(-1)
    world.conductor.store.run(
        lambda c: c.execute(schema.operations.update().values(deadline=past))
    )
    world.make_due()


def operation(world: World, position: int = 0) -> Any:
    return world.rows(schema.operations)[position]


def active(world: World, sent: int = 1) -> str:
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(sent), ok=True, power_state=1)
    world.until(uuid, "active")
    return uuid


# --- placement is down


def test_a_build_ends_while_placement_is_down_and_its_claim_goes_later(world: World) -> None:
    world.placement.down = True
    world.scheduler.hosts = []
    (uuid,) = world.create()
    world.until(uuid, "error")
    world.until_operation("unwinding")
    world.placement.claims[uuid] = "a claim that was never written down"
    world.placement.down = False
    world.make_due()
    world.until_operation("failed")
    assert world.placement.claims == {}
    assert operation(world).message == "No valid host was found: none left."


def test_a_failed_attempt_goes_elsewhere_once_placement_is_back(world: World) -> None:
    (uuid,) = world.create()
    first = world.compute.wait_for(1)
    world.placement.down = True
    world.answer(first, ok=False, failure=BOOM, gone=True)
    world.until(uuid, "building", "scheduling")
    assert [row.category for row in world.rows(schema.faults)] == ["creation_failed"]
    world.placement.down = False
    world.make_due()
    assert world.compute.wait_for(2).placed.host == "pve2"
    assert world.placement.claims == {uuid: "pve2"}


def test_a_delete_shows_as_error_in_time_while_placement_is_down(world: World) -> None:
    uuid = active(world)
    world.act(uuid, "delete")
    destroy = world.compute.wait_for(2)
    world.placement.down = True
    overdue(world)
    world.answer(destroy, ok=True, gone=True)
    world.until(uuid, "error")
    world.placement.down = False
    # However often it is asked.
    world.compute.answering = lambda command: world.answer(command, ok=True, gone=True)
    world.make_due()
    world.until(uuid, "deleted")
    assert world.placement.claims == {}


# --- the agent is silent


def test_a_delete_of_a_broken_server_is_no_longer_under_way_when_it_took_too_long(
    world: World,
) -> None:
    (uuid,) = world.create()
    left = Failure(Category.TASK_TIMEOUT, "slow", clean=False, left=("VM 100000",))
    world.answer(world.compute.wait_for(1), ok=False, failure=left)
    world.until(uuid, "error")
    world.silence()
    world.act(uuid, "delete")
    world.until_faults(2)
    assert world.row(uuid).task_state == "deleting"
    overdue(world)
    world.until(uuid, "error")
    assert operation(world, 1).state == "unwinding"


# --- news that comes twice, or late


def test_a_success_reported_twice_changes_no_history(world: World) -> None:
    uuid = active(world)
    build = world.compute.wait_for(1)
    world.act(uuid, "stop")
    stop = world.compute.wait_for(2)
    world.answer(build, ok=True, power_state=1)
    world.answer(stop, ok=True, power_state=4)
    world.until(uuid, "stopped")
    world.conductor.runner.stop()
    assert [row.state for row in world.rows(schema.operations)] == ["done", "done"]


def test_a_failure_reported_twice_leaves_the_next_attempt_its_claim(world: World) -> None:
    (uuid,) = world.create()
    first = world.compute.wait_for(1)
    with world.conductor.store.read() as connection:
        then = ledger.get(connection, first.operation_id)
    assert then is not None
    world.answer(first, ok=False, failure=BOOM, gone=True)
    world.compute.wait_for(2)
    flow = world.conductor.runner._flows["create"]
    with pytest.raises(StaleTransition):
        flow.finished(then, Built(False, BOOM, gone=True))
    assert world.placement.claims == {uuid: "pve2"}
    assert world.row(uuid).host == "pve2"


def test_what_has_ended_does_not_end_again(world: World) -> None:
    active(world)
    key = operation(world).id
    world.conductor.store.run(lambda c: ledger.close(c, key, OperationState.FAILED, "Overtaken."))
    assert (operation(world).state, operation(world).message) == ("done", None)


@pytest.mark.parametrize("planned", [True, False])
@pytest.mark.parametrize("late", [True, False])
def test_taking_over_a_build_that_has_already_ended_changes_nothing(
    world: World, planned: bool, late: bool
) -> None:
    (uuid,) = world.create()
    build = world.compute.wait_for(1)
    with world.conductor.store.read() as connection:
        then = ledger.get(connection, build.operation_id)
    assert then is not None
    world.answer(build, ok=True, power_state=1)
    world.until(uuid, "active")
    then = dataclasses.replace(
        then,
        plan=then.plan if planned else CreatePlan(),
        deadline=clock.after(-1) if late else then.deadline,
    )
    flow = world.conductor.runner._flows["create"]
    flow.resume(then, fresh=False)
    with pytest.raises(StaleTransition):
        Create(world.conductor.cloud).begin_many([then])
    assert (world.row(uuid).vm_state, world.row(uuid).task_state) == ("active", None)
    assert world.placement.claims == {uuid: "pve1"}
    assert len(world.scheduler.asked) == 1
    assert len(world.compute.sent) == 1


@pytest.mark.parametrize("action", ["stop", "reboot", "release"])
def test_taking_over_an_action_that_has_already_ended_sends_nothing(
    world: World, action: str
) -> None:
    uuid = active(world)
    world.act(uuid, action)
    sent = world.compute.wait_for(2)
    with world.conductor.store.read() as connection:
        then = ledger.get(connection, sent.operation_id)
    assert then is not None
    world.answer(sent, ok=True, power_state=4 if action == "stop" else 1, gone=True)
    world.until_operation("done", "done")
    world.conductor.runner._flows[action].resume(then, fresh=False)
    assert len(world.compute.sent) == 2


# --- leases


def test_who_lost_the_lease_places_nothing(world: World) -> None:
    world.scheduler.gate.clear()
    (uuid,) = world.create()
    world.until(uuid, "building", "scheduling")
    world.conductor.store.run(
        lambda c: c.execute(schema.operations.update().values(lease_owner="another"))
    )
    world.scheduler.gate.set()
    world.conductor.runner.stop()
    assert world.row(uuid).task_state == "scheduling"
    assert [row for row in world.rows(schema.vmids) if row.server_uuid] == []
    assert operation(world).lease_owner == "another"


def test_a_pause_takes_the_lease_of_nobody_else(world: World) -> None:
    world.scheduler.gate.clear()
    world.create()
    key = operation(world).id
    run = world.conductor.store.run
    run(lambda c: c.execute(schema.operations.update().values(lease_owner="another")))
    run(lambda c: leases.pause(c, key, "c1", 5))
    assert operation(world).lease_owner == "another"
    run(lambda c: c.execute(schema.operations.update().values(lease_owner="compute:w1")))
    run(lambda c: leases.pause(c, key, "c1", 5))
    assert operation(world).lease_owner is None


def test_a_conductor_does_not_take_over_what_it_has_in_hand(world: World) -> None:
    world.scheduler.gate.clear()
    (uuid,) = world.create()
    world.until(uuid, "building", "scheduling")
    world.make_due()
    world.conductor.runner.look()
    world.scheduler.gate.set()
    world.compute.wait_for(1)
    assert len(world.scheduler.asked) == 1


def test_who_has_no_thread_left_takes_nothing_over(tmp_path: Path) -> None:
    world = World(tmp_path, workers=1)
    world.scheduler.gate.clear()
    # With a min_count the first one taken would take all of its create along.
    world.create(max_count=4)
    second = world.add_conductor("c2")
    world.make_due()
    world.conductor.runner.look()
    second.runner.look()
    owners = [row.lease_owner for row in world.rows(schema.operations)]
    world.close()
    assert owners == ["c2", "c2", "c1", "c1"]


def test_outcomes_do_not_wait_behind_builds_that_wait_for_a_scheduler(tmp_path: Path) -> None:
    world = World(tmp_path, workers=1)
    (uuid,) = world.create()
    build = world.compute.wait_for(1)
    world.scheduler.gate.clear()
    world.create(min_count=3, max_count=3)
    world.answer(build, ok=True, power_state=1)
    world.until(uuid, "active")
    world.act(uuid, "stop")
    world.answer(world.compute.wait_for(2), ok=True, power_state=4)
    world.until(uuid, "stopped")
    world.close()


def test_what_waited_longest_is_taken_first(world: World) -> None:
    world.conductor.runner.stop()
    world.scheduler.gate.clear()
    world.create(min_count=3, max_count=3)
    first, second, third = [row.id for row in world.rows(schema.operations)]

    def work(connection: sa.Connection) -> list[int]:
        for key, ago in ((first, 1), (second, 3), (third, 2)):
            connection.execute(
                schema.operations.update()
                .where(schema.operations.c.id == key)
                .values(lease_owner=None, lease_expires_at=None, not_before=clock.after(-ago))
            )
        taken = leases.due(connection, "c1", 60, 2, {"create"})
        return [item.id for item in taken]

    assert sorted(world.conductor.store.run(work)) == [second, third]


@pytest.mark.parametrize(("ago", "renewed"), [(-60, True), (100, True), (400, False)])
def test_an_agent_that_hangs_keeps_no_lease(world: World, ago: float, renewed: bool) -> None:
    world.create()
    build = world.compute.wait_for(1)
    soon, late = clock.after(1), clock.after(-ago)
    world.conductor.store.run(
        lambda c: c.execute(
            schema.operations.update().values(deadline=late, lease_expires_at=soon)
        )
    )
    working = (Working(build.operation_id, 1, build.placed.host),)
    world.conductor.reports.heartbeat(
        Heartbeat("w1", clock.utcnow(), ("pve1", "pve2"), working=working)
    )
    assert (operation(world).lease_expires_at > clock.after(30)) == renewed


# --- what must not stay


def test_the_password_goes_when_the_build_has_failed(world: World) -> None:
    (uuid,) = world.create(admin_password="correct horse")
    left = Failure(Category.TASK_TIMEOUT, "slow", clean=False, left=("VM 100000",))
    world.answer(world.compute.wait_for(1), ok=False, failure=left)
    world.until(uuid, "error")
    assert operation(world).state == "unwinding"
    assert "correct horse" not in str(operation(world).params)


def test_quarantines_end(world: World) -> None:
    def work(connection: sa.Connection) -> None:
        for _ in range(2):
            vmid = vmids.reserve(connection, "sim1", "some", None)
            vmids.quarantine(connection, "sim1", vmid, "in the way")
        connection.execute(
            schema.vmids.update()
            .where(schema.vmids.c.vmid == 100_000)
            .values(since=clock.utcnow() - datetime.timedelta(days=2))
        )

    world.conductor.store.run(work)
    world.add_conductor("c2").runner.tidy()
    assert [row.vmid for row in world.rows(schema.vmids)] == [100_001]


# --- whose servers


def test_who_has_no_project_has_no_servers(world: World) -> None:
    (uuid,) = world.create()
    world.ctxt.project_id = None
    with pytest.raises(ServerNotFound):
        world.act(uuid, "delete")
    world.ctxt.is_admin = True
    assert scope(world.ctxt) is None


def test_a_role_alone_makes_no_administrator(world: World) -> None:
    """The policy says who is one; the API passes it in the context."""
    world.ctxt.roles = ["admin"]
    assert scope(world.ctxt) == "p"
