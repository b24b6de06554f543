"""Deadlines that passed while no conductor ran: agents look, and nothing is removed because of it.

So it is after an older copy of the database was put back: what was under way when it was copied
has ended since, and its servers are in use.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock
from common.failures import Verdict
from common.messages.commands import (
    Build,
    Command,
    Destroy,
    EndSwap,
    RemoveBackup,
    RemoveImage,
    RemoveVnet,
    RemoveVolume,
    RetireTemplate,
    Swap,
)
from common.messages.reports import Category, Failure, Outcome
from common.resources import bulk_migrations
from common.resources.groups import GroupAction
from common.resources.states import OperationState, TaskState
from conductor.engine import stage_runner
from conductor.engine.runner import Runner
from conductor.rpc.servers.servers import RebuildServer
from conductor.servers.reclaim import Reclaim
from conductor.store.ledger import operations as ledger
from conductor.store.ledger import pulse
from db import schema
from tests.functional.conductor.harness import IMAGE, Died, Mortal, World
from tests.functional.conductor.takeover.cloud import Cloud
from tests.functional.conductor.takeover.deaths import clear
from tests.functional.conductor.takeover.stories import STORIES
from tests.functional.conductor.test_leases import go_apart

REMOVALS = (Destroy, RemoveBackup, RemoveImage, RemoveVnet, RemoveVolume, RetireTemplate)
NOT_SO = Failure(Category.UNKNOWN_OUTCOME, "It is not so.", verdict=Verdict.FATAL)


class Sleeper(Cloud):
    """A cloud whose agents change nothing when they may only look."""

    finds_it_done = True
    changed: list[Command]

    def _act(self, command: Command) -> Outcome:
        if command not in self.world.compute.looks:
            self.changed.append(command)
            return super()._act(command)
        if self.finds_it_done and not isinstance(command, Destroy):
            return super()._act(command)
        return command.outcome()(False, NOT_SO)

    def oversleep(self) -> None:
        self.changed = []
        self.world.compute.looks.clear()
        self.world.oversleep()
        self.heir.store.run(lambda c: pulse.sign(c, "c2"))


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sleeper]:
    monkeypatch.setattr(stage_runner, "JUST_BEGUN", datetime.timedelta(hours=1))
    world = World(tmp_path)
    world.conductor.store.run(lambda c: pulse.sign(c, "c1"))
    made = Sleeper(world, Mortal(world.conductor.store), world.add_conductor("c2"))
    made.changed = []
    yield made
    world.close()


def sleepy() -> Iterator[Any]:
    """What ends well; bulk migrations and groups are of other operations."""
    for action, how in STORIES:
        if how == "well" and action not in (*bulk_migrations.ACTIONS, *GroupAction):
            yield pytest.param(action, id=action)


def operation(cloud: Cloud, number: int) -> Any:
    with cloud.heir.store.read() as connection:
        return ledger.get(connection, number)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("done", [True, False], ids=["done", "not done"])
@pytest.mark.parametrize("action", list(sleepy()))
def test_nothing_is_changed_for_a_deadline_that_passed_unseen(
    cloud: Sleeper, action: str, done: bool
) -> None:
    """Whatever was committed last."""
    first = STORIES[action, "well"](cloud)
    begun = cloud.remember()
    cloud.mortal.live()
    cloud.work_off(cloud.world.conductor, first)
    flow = cloud.heir.runner._flows[action]
    for dies_at in range(1, cloud.mortal.commits + 1):
        begun()
        cloud.finds_it_done = True
        cloud.mortal.live(dies_at, before=False)
        with pytest.raises(Died):
            cloud.work_off(cloud.world.conductor, first)
        cloud.mortal.live()
        before = operation(cloud, first.id)
        if before.state not in (OperationState.QUEUED, OperationState.RUNNING):
            continue
        cloud.finds_it_done = done
        task = flow._load(before)
        past_return = flow.table.of(task).is_past_return(task)
        cloud.oversleep()
        cloud.work_off(cloud.heir)
        after = operation(cloud, first.id)
        assert after.state in (OperationState.DONE, OperationState.FAILED), (dies_at, after)
        if past_return:
            continue
        mine = [one for one in cloud.changed if one.operation_id == first.id]
        if done:
            # What was replaced is removed at the end of what is seen done.
            assert {type(one) for one in mine} <= {EndSwap}, (dies_at, mine)
            continue
        assert not mine, (dies_at, mine)
        assert not [one for one in cloud.changed if isinstance(one, REMOVALS)], dies_at
    cloud.finds_it_done = True
    clear(cloud, first)


def test_builds_that_ended_are_adopted(world: World) -> None:
    """Four builds in spawning; the database of then is put back once they have ended."""
    servers = world.create(min_count=4, max_count=4)
    builds = [world.compute.wait_for(number + 1) for number in range(4)]
    world.conductor.runner.stop()
    put_back = world.remember()
    for command in builds:
        world.answer(command, ok=True, power_state=1)
    put_back()
    world.oversleep()
    second = world.conductor = world.add_conductor("c2")
    world.beat()
    second.runner.start()
    looks = [world.compute.wait_for(number + 1) for number in range(4, 8)]
    assert [type(one) for one in looks] == [Build] * 4
    assert world.compute.looks == looks
    for command in looks:
        world.answer(command, ok=True, power_state=1)
    for uuid in servers:
        row = world.until(uuid, "active")
        assert (row.vmid, row.host) != (None, None)
    assert [one.state for one in world.rows(schema.operations)] == ["done"] * 4
    assert not [one for _, one in world.compute.sent if isinstance(one, Destroy)]
    assert set(world.placement.claims) == set(servers)


def test_what_is_not_as_it_should_be_is_left_as_it_is(world: World) -> None:
    """A VM that is stopped by now, or half made: the record retains it, and says so."""
    (uuid,) = world.create()
    world.compute.wait_for(1)
    world.conductor.runner.stop()
    world.oversleep()
    second = world.conductor = world.add_conductor("c2")
    world.beat()
    second.runner.start()
    world.answer(world.compute.wait_for(2), ok=False, failure=NOT_SO)
    world.until_operation("failed")
    row = world.row(uuid)
    assert (row.vm_state, row.task_state, row.vmid is None) == ("error", None, False)
    assert world.placement.claims == {uuid: "pve1"}
    assert world.rows(schema.faults)
    world.act(uuid, "delete")
    removal = world.compute.wait_for(3)
    assert isinstance(removal, Destroy)
    assert removal not in world.compute.looks
    world.answer(removal, ok=True, gone=True)
    world.until(uuid, "deleted")


def test_a_build_that_was_not_sent_keeps_what_it_reserved(world: World) -> None:
    """By the record nothing has the VMID yet: since it was copied, a VM may have got it."""
    flow = world.conductor.runner._flows["create"]
    go_apart(flow, TaskState.NETWORKING)
    stages = tuple(
        dataclasses.replace(stage, do=_die) if stage.name == "network" else stage
        for stage in flow.table.stages
    )
    flow.table = dataclasses.replace(flow.table, stages=stages)
    (uuid,) = world.create()
    world.until(uuid, "building", TaskState.NETWORKING)
    world.conductor.runner.stop()
    world.oversleep()
    second = world.conductor = world.add_conductor("c2")
    world.beat()
    second.runner.start()
    row = world.until(uuid, "error")
    assert (row.vmid is None, world.placement.claims) == (False, {uuid: "pve1"})
    assert world.compute.sent == []
    world.act(uuid, "delete")
    world.answer(world.compute.wait_for(1), ok=True, gone=True)
    world.until(uuid, "deleted")


class Killed(BaseException):
    """The conductor is gone."""


def _die(*_: object) -> None:
    raise Killed


def test_one_that_is_nowhere_fails_and_leaves_nothing(world: World) -> None:
    (uuid,) = world.create()
    world.compute.wait_for(1)
    world.conductor.runner.stop()
    world.oversleep()
    second = world.conductor = world.add_conductor("c2")
    world.beat()
    second.runner.start()
    world.answer(world.compute.wait_for(2), ok=False, failure=NOT_SO, gone=True)
    world.until(uuid, "error")
    world.until_operation("failed")
    assert (world.row(uuid).vmid, world.placement.claims) == (None, {})


@pytest.mark.parametrize("has_old", [True, False])
def test_a_rebuild_that_stood_still_shows_the_disk_that_its_vm_has(
    world: World, has_old: bool
) -> None:
    """Its VM was stopped for it: with its old disk the record is of that again, and with neither
    proven it remains in ERROR; another rebuild ends both."""
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    before = world.until(uuid, "active")
    world.rebuild(uuid, RebuildServer(IMAGE, {"os_type": "linux"}, {"key_name": "new"}))
    assert isinstance(world.compute.wait_for(2), Swap)
    world.conductor.runner.stop()
    world.oversleep()
    second = world.conductor = world.add_conductor("c2")
    world.beat()
    second.runner.start()
    world.answer(world.compute.wait_for(3), ok=False, failure=NOT_SO, power_state=4)
    back = world.compute.wait_for(4)
    assert isinstance(back, EndSwap)
    assert (back.keep, back in world.compute.looks) == (False, True)
    world.answer(back, ok=has_old, failure=None if has_old else NOT_SO, power_state=4)
    row = world.until(uuid, "error")
    assert world.rows(schema.operations)[-1].state == "failed"
    kept = {} if has_old else {"os_type": "linux"}
    key = before.key_name if has_old else "new"
    assert (row.task_state, row.image_properties, row.key_name) == (None, kept, key)
    assert all(fault.remedy or fault.message for fault in world.rows(schema.faults))
    world.rebuild(uuid, RebuildServer(IMAGE, {"os_type": "linux"}))
    again = world.compute.wait_for(5)
    assert isinstance(again, Swap)
    assert (again.running, again in world.compute.looks) == (True, False)


def test_a_silent_agent_is_waited_for(world: World) -> None:
    """After all was down, agents come later than conductors: no build fails for that."""
    (uuid,) = world.create()
    world.compute.wait_for(1)
    world.conductor.runner.stop()
    world.oversleep()
    world.silence()
    second = world.conductor = world.add_conductor("c2")
    second.runner.start()
    world._wait(
        lambda: world.rows(schema.operations)[0],
        lambda row: row.overslept and row.not_before is not None and row.message is not None,
    )
    assert world.row(uuid).vm_state == "building"
    world.beat()
    second.runner.stop()
    third = world.conductor = world.add_conductor("c3")
    world.make_due()
    third.runner.start()
    world.answer(world.compute.wait_for(2), ok=True, power_state=1)
    world.until(uuid, "active")


def test_what_was_late_while_a_conductor_ran_is_removed(world: World) -> None:
    (uuid,) = world.create()
    world.compute.wait_for(1)
    world.conductor.store.run(
        lambda c: c.execute(schema.operations.update().values(deadline=clock.after(-1)))
    )
    world.make_due()
    world.until(uuid, "error")
    world.make_due()
    removal = world.compute.wait_for(2)
    assert isinstance(removal, Destroy)
    assert world.compute.looks == []
    world.answer(removal, ok=True, gone=True)
    world.until_operation("failed")


@pytest.mark.parametrize(
    ("seconds", "in_order", "looks"),
    [(20, False, True), (20, True, False), (5, False, False), (600, False, False)],
    ids=["silent", "stopped in order", "lives", "gone for long"],
)
def test_what_another_conductor_may_not_have_read_is_looked_at(
    world: World, seconds: int, in_order: bool, looks: bool
) -> None:
    """The build has ended, and its agent's report lies in the queue of a frozen conductor."""
    (uuid,) = world.create()
    world.compute.wait_for(1)
    store = world.conductor.store
    store.run(lambda c: pulse.sign(c, "frozen"))
    if in_order:
        store.run(lambda c: pulse.end(c, "frozen"))
    frozen = schema.leases.update().where(schema.leases.c.name == "sign frozen")
    store.run(lambda c: c.execute(frozen.values(expires_at=clock.after(-seconds))))
    late = schema.operations.update().values(deadline=clock.after(-1))
    store.run(lambda c: c.execute(late))
    world.make_due()
    if not looks:
        world.until(uuid, "error")
        world.make_due()
        assert isinstance(world.compute.wait_for(2), Destroy)
        assert world.compute.looks == []
        return
    look = world.compute.wait_for(2)
    assert isinstance(look, Build)
    assert world.compute.looks == [look]
    world.answer(look, ok=True, power_state=1)
    world.until(uuid, "active")


@pytest.mark.parametrize("in_order", [False, True], ids=["frozen", "stopped in order"])
def test_a_conductor_that_stood_still_alone_looks_at_what_passed_since_then(
    world: World, in_order: bool
) -> None:
    """Others signed, but what agents reported may wait for it to be read."""
    world.create()
    world.compute.wait_for(1)
    world.conductor.runner.stop()
    store = world.conductor.store
    if in_order:
        store.run(lambda c: pulse.end(c, "c1"))
    mine = schema.leases.update().where(schema.leases.c.name == "sign c1")
    store.run(lambda c: pulse.sign(c, "c2"))
    store.run(lambda c: c.execute(mine.values(expires_at=clock.after(-40))))
    late = schema.operations.update().values(deadline=clock.after(-5))
    store.run(lambda c: c.execute(late))
    store.run(lambda c: pulse.sign(c, "c1"))
    (row,) = world.rows(schema.operations)
    assert row.overslept is not in_order
    with store.read() as connection:
        assert pulse.awake_since(connection) is None


def test_a_thread_that_was_frozen_looks_first(world: World) -> None:
    """It holds an operation whose deadline passed while its process was frozen."""
    (uuid,) = world.create()
    world.compute.wait_for(1)
    world.conductor.runner.stop()
    second = world.conductor = world.add_conductor("c2")
    world.oversleep()
    (row,) = world.rows(schema.operations)
    held = operation(_Of(world), row.id)
    flow = second.runner._flows["create"]
    flow.resume(held, fresh=False)
    assert len(world.compute.sent) == 1
    (row,) = world.rows(schema.operations)
    assert (row.state, row.overslept) == (OperationState.QUEUED, True)
    world.beat()
    second.runner.start()
    world.answer(world.compute.wait_for(2), ok=True, power_state=1)
    world.until(uuid, "active")


def test_an_agent_that_was_frozen_undoes_nothing(world: World) -> None:
    """It finds the deadline passed as well, and asks before a conductor has signed."""
    (uuid,) = world.create()
    command = world.compute.wait_for(1)
    world.conductor.runner.stop()
    second = world.conductor = world.add_conductor("c2")
    world.oversleep()
    (row,) = world.rows(schema.operations)
    held = (row.id, command.attempt, row.lease_owner)
    assert not second.runner.may_undo(*held)
    world.beat()
    second.runner.start()
    world.answer(world.compute.wait_for(2), ok=True, power_state=1)
    world.until(uuid, "active")


class _Of:
    """A cloud with one conductor, to read by."""

    def __init__(self, world: World) -> None:
        self.heir = world.conductor


def test_a_clock_that_was_put_back_marks_nothing(world: World) -> None:
    """The last sign is of the future, and so are the deadlines."""
    world.create()
    world.compute.wait_for(1)
    world.conductor.runner.stop()
    store = world.conductor.store
    signs = schema.leases.update().where(schema.leases.c.name.like("sign %"))
    store.run(lambda c: c.execute(signs.values(expires_at=clock.after(7200))))
    store.run(lambda c: pulse.sign(c, "c1"))
    (row,) = world.rows(schema.operations)
    assert not row.overslept
    with store.read() as connection:
        last = connection.scalar(
            sa.select(schema.leases.c.expires_at).where(schema.leases.c.name == "sign c1")
        )
    assert last is not None
    assert last <= clock.utcnow()


def test_two_conductors_that_wake_mark_once(world: World) -> None:
    world.create()
    world.compute.wait_for(1)
    world.conductor.runner.stop()
    world.oversleep()
    store = world.conductor.store
    for name in ("c1", "c2"):
        store.run(lambda c, name=name: pulse.sign(c, name))
    (row,) = world.rows(schema.operations)
    assert row.overslept
    assert row.deadline > clock.utcnow()


def test_a_clock_that_is_ahead_sees_no_gap_at_every_turn(world: World) -> None:
    """Each conductor follows its own signs: one whose clock is two minutes ahead has seen all."""
    world.create()
    world.compute.wait_for(1)
    world.conductor.runner.stop()
    store = world.conductor.store
    ahead = schema.leases.update().where(schema.leases.c.name == "sign c2")
    for _ in range(3):
        store.run(lambda c: pulse.sign(c, "c1"))
        store.run(lambda c: pulse.sign(c, "c2"))
        store.run(lambda c: c.execute(ahead.values(expires_at=clock.after(120))))
    soon = schema.operations.update().values(deadline=clock.after(1))
    store.run(lambda c: c.execute(soon))
    store.run(lambda c: pulse.sign(c, "c1"))
    (row,) = world.rows(schema.operations)
    assert not row.overslept
    with store.read() as connection:
        assert pulse.awake_since(connection) is None


def test_rows_of_conductors_that_ended_long_ago_are_deleted(world: World) -> None:
    world.conductor.runner.stop()
    store = world.conductor.store
    store.run(lambda c: pulse.sign(c, "of-last-year"))
    old = schema.leases.update().where(schema.leases.c.name == "sign of-last-year")
    store.run(lambda c: c.execute(old.values(expires_at=clock.after(-2 * pulse.KEPT_SECONDS))))
    store.run(lambda c: pulse.sign(c, "new"))
    names = {one.name for one in world.rows(schema.leases)}
    assert "sign new" in names
    assert "sign of-last-year" not in names


def test_a_conductor_signs_now_and_then(world: World) -> None:
    """A look soon after the last sign writes nothing."""
    runner: Runner = world.conductor.runner
    runner.stop()
    signed = runner._signed_at
    assert signed is not None
    runner.look()
    assert runner._signed_at == signed
    runner._signed_at = clock.after(3600)
    runner.look()
    assert runner._signed_at <= clock.utcnow()


def test_a_soft_deleted_server_gets_all_its_time_again(tmp_path: Path) -> None:
    """It may have been restored since the database was copied that was put back."""
    world = World(tmp_path)
    world.conductor.cloud.conf.set_override("reclaim_instance_interval", 600, group="conductor")
    world.conductor.runner.start()
    try:
        (uuid,) = world.create()
        world.answer(world.compute.wait_for(1), ok=True, power_state=1)
        world.until(uuid, "active")
        world.act(uuid, "soft-delete")
        world.answer(world.compute.wait_for(2), ok=True, power_state=4)
        world.until(uuid, "soft-delete")
        world.conductor.runner.stop()
        ended = schema.operations.update().values(finished_at=clock.after(-1000))
        world.conductor.store.run(lambda c: c.execute(ended))
        world.oversleep()
        world.conductor.store.run(lambda c: pulse.sign(c, "c1"))
        reclaim = Reclaim(world.conductor.cloud, world.conductor.runner)
        reclaim.look()
        assert world.row(uuid).task_state is None
        slept = schema.leases.update().where(schema.leases.c.name == pulse.AWAKE)
        world.conductor.store.run(lambda c: c.execute(slept.values(expires_at=clock.after(-601))))
        reclaim.look()
        assert world.row(uuid).task_state == "deleting"
    finally:
        world.close()
