"""A build continues at the next host when the agent of its own falls silent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common import clock
from common.messages.commands import Build, Command, Destroy
from common.messages.reports import Category, Failure
from conductor.store.hosts import registry
from db import schema
from tests.functional.conductor.harness import World

BOOM = Failure(Category.CREATION_FAILED, "The task failed.", host="pve1")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.conductor.runner.start()
    yield made
    made.close()


def first_build(world: World, **changes: Any) -> tuple[str, Build]:
    (uuid,) = world.create(**changes)
    build = world.compute.wait_for(1)
    assert isinstance(build, Build) and build.placed.host == "pve1"
    return uuid, build


def left(world: World, build: Build) -> Build:
    """The next host's command, after the first one's agent fell silent."""
    seen = len(world.compute.sent)
    world.silence("pve1")
    world.make_due()
    command = world.compute.wait_for(seen + 1)
    assert isinstance(command, Build)
    return command


def test_no_other_host_of_a_silent_worker_is_tried(tmp_path: Path) -> None:
    world = World(tmp_path, hosts=("pve1", "pve2", "pve3"))
    world.conductor.runner.start()
    uuid, _ = first_build(world)
    world.silence("pve1", "pve2")
    world.make_due()
    second = world.compute.wait_for(2)
    assert (second.placed.host, second.attempt) == ("pve3", 2)
    world.answer(second, ok=True, power_state=1)
    world.until(uuid, "active")
    world.answer(removal(world), ok=True, gone=True)
    world.until_operation("done", "done")
    world.close()


def removal(world: World) -> Destroy:
    """The command that removes what was left, once the agent answers."""
    seen = len(world.compute.sent)
    world.beat()
    world.make_due()
    return next(
        one
        for number in range(seen + 1, seen + 4)
        if isinstance(one := world.compute.wait_for(number), Destroy) and one.build
    )


def vmids(world: World) -> dict[int, str]:
    """Those of servers; templates have some, too."""
    return {row.vmid: row.state for row in world.rows(schema.vmids) if row.server_uuid}


def test_a_build_goes_on_at_the_next_host_with_a_claim_and_a_vmid_of_its_own(
    world: World,
) -> None:
    uuid, first = first_build(world)
    second = left(world, first)
    assert (second.placed.host, second.attempt) == ("pve2", 2)
    assert second.placed.vmid != first.placed.vmid
    row = world.row(uuid)
    assert (row.vm_state, row.host, row.vmid) == ("building", "pve2", second.placed.vmid)
    # The first host's share is held until what may be there was seen gone.
    assert world.placement.claims[uuid] == "pve2"
    assert sorted(world.placement.claims.values()) == ["pve1", "pve2"]
    assert vmids(world) == {first.placed.vmid: "reserved", second.placed.vmid: "reserved"}
    world.answer(second, ok=True, power_state=1)
    world.until(uuid, "active")
    destroy = removal(world)
    assert (destroy.placed, destroy.resource_id) == (first.placed, uuid)
    assert (destroy.build, destroy.build_attempt) == (first.operation_id, 1)
    world.answer(destroy, ok=True, gone=True)
    world.until_operation("done", "done")
    assert world.placement.claims == {uuid: "pve2"}
    assert vmids(world) == {second.placed.vmid: "reserved"}
    assert [row.category for row in world.rows(schema.faults)] == ["node_unhealthy"]


@pytest.mark.parametrize("outcome", [{"ok": True, "power_state": 1}, {"ok": False}])
def test_what_the_first_agent_reports_late_changes_nothing(
    world: World, outcome: dict[str, Any]
) -> None:
    uuid, first = first_build(world)
    second = left(world, first)
    world.beat()
    late = outcome if outcome["ok"] else {**outcome, "failure": BOOM, "gone": True}
    world.answer(first, **late)
    row = world.row(uuid)
    assert (row.vm_state, row.task_state, row.host) == ("building", "spawning", "pve2")
    assert not world.may_start(first)
    world.answer(second, ok=True, power_state=1)
    world.until(uuid, "active")
    world.answer(first, **late)
    assert world.row(uuid).vmid == second.placed.vmid
    destroy = removal(world)
    assert destroy.placed == first.placed
    world.answer(destroy, ok=True, gone=True)
    world.until_operation("done", "done")
    assert world.placement.claims == {uuid: "pve2"}


def test_the_removal_is_repeated_until_everything_was_seen_gone(world: World) -> None:
    uuid, first = first_build(world)
    second = left(world, first)
    world.answer(second, ok=True, power_state=1)
    world.until(uuid, "active")
    destroy = removal(world)
    for turn in range(3):
        sent = len(world.compute.sent)
        failure = Failure(Category.PROTECTED, "It is protected.", clean=False)
        world.answer(destroy, ok=False, failure=failure)
        world.until_faults(2 + turn)
        assert first.placed.vmid in vmids(world)
        world.make_due()
        destroy = world.compute.wait_for(sent + 1)  # type: ignore[assignment]
        assert isinstance(destroy, Destroy)
    world.answer(destroy, ok=True, gone=True)
    world.until_operation("done", "done")
    assert world.placement.claims == {uuid: "pve2"}


def test_a_vm_that_may_run_is_waited_for(world: World) -> None:
    """A second one would be a second server with the same addresses."""
    uuid, first = first_build(world)
    assert world.may_start(first)
    world.silence("pve1")
    world.make_due()
    world._wait(lambda: world.rows(schema.operations)[0].message, lambda text: text is not None)
    assert "may run there already" in world.rows(schema.operations)[0].message
    assert [command for _, command in world.compute.sent] == [first]
    world.beat()
    world.make_due()
    again = world.compute.wait_for(2)
    assert again.placed == first.placed
    world.answer(again, ok=True, power_state=1)
    world.until(uuid, "active")
    assert world.placement.claims == {uuid: "pve1"}


def test_a_vm_that_may_run_on_a_host_that_stays_silent_ends_in_error_with_the_reason(
    world: World,
) -> None:
    uuid, first = first_build(world)
    assert world.may_start(first)
    world.silence("pve1")
    world.make_due()
    world._wait(lambda: world.rows(schema.operations)[0].message, lambda text: text is not None)
    world.conductor.store.run(
        lambda c: c.execute(schema.operations.update().values(deadline=clock.after(-1)))
    )
    world.make_due()
    world.until(uuid, "error")
    fault = world.rows(schema.faults)[-1]
    assert fault.category == "task_timeout" and "may run there already" in fault.message
    assert world.placement.claims == {uuid: "pve1"}
    world.beat()
    world.make_due()
    destroy = world.compute.wait_for(2)
    assert isinstance(destroy, Destroy)
    world.answer(destroy, ok=True, gone=True)
    world.until_operation("failed")
    assert world.placement.claims == {}


def test_only_the_attempt_at_hand_may_start_its_vm(world: World) -> None:
    _, first = first_build(world)
    assert not world.may_start(first, "w2")
    second = left(world, first)
    assert not world.may_start(first)
    assert world.may_start(second)
    world.answer(second, ok=True, power_state=1)
    world.answer(removal(world), ok=True, gone=True)
    world.until_operation("done", "done")


def test_without_another_host_the_build_waits_and_goes_on_when_the_agent_is_back(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, hosts=("pve1",))
    world.conductor.runner.start()
    uuid, first = first_build(world)
    world.silence()
    world.make_due()
    # The claim is passed on, and the build waits.
    world._wait(
        lambda: dict(world.placement.claims),
        lambda claims: uuid not in claims and len(claims) == 1,
    )
    world._wait(
        lambda: world.rows(schema.operations)[0],
        lambda row: row.not_before is not None and row.not_before > clock.utcnow(),
    )
    # However long it waits, the removal may begin.
    assert not world.rows(schema.operations)[0].plan.get("left")
    row = world.row(uuid)
    assert (row.vm_state, row.task_state) == ("building", "scheduling")
    world.beat()
    world.make_due()
    sent = [world.compute.wait_for(number) for number in (2, 3)]
    destroy = next(one for one in sent if isinstance(one, Destroy))
    build = next(one for one in sent if isinstance(one, Build))
    assert destroy.placed == first.placed and build.placed.vmid != first.placed.vmid
    world.answer(build, ok=True, power_state=1)
    world.answer(destroy, ok=True, gone=True)
    world.until(uuid, "active")
    world.until_operation("done", "done")
    assert world.placement.claims == {uuid: "pve1"}
    world.close()


def test_a_build_that_no_host_takes_ends_with_the_reasons(tmp_path: Path) -> None:
    world = World(tmp_path, hosts=("pve1",), max_waits=0)
    world.conductor.runner.start()
    uuid, first = first_build(world)
    world.silence()
    world.make_due()
    world.until(uuid, "error")
    faults = [(row.category, row.message) for row in world.rows(schema.faults)]
    assert [category for category, _ in faults] == ["node_unhealthy", "no_valid_host"]
    assert "The agent of host pve1 does not answer." in faults[0][1]
    assert "Earlier attempts failed on 1." in faults[1][1]
    world.beat()
    world.make_due()
    destroy = world.compute.wait_for(2)
    assert isinstance(destroy, Destroy) and destroy.placed == first.placed
    world.answer(destroy, ok=True, gone=True)
    world.until_operation("failed", "done")
    assert world.placement.claims == {} and vmids(world) == {}
    world.close()


def test_a_server_that_is_deleted_leaves_the_removal_to_go_on(world: World) -> None:
    uuid, first = first_build(world)
    second = left(world, first)
    world.act(uuid, "delete")
    delete = world.compute.wait_for(3)
    assert isinstance(delete, Destroy) and delete.placed == second.placed
    world.answer(delete, ok=True, gone=True)
    world.until(uuid, "deleted")
    destroy = removal(world)
    assert destroy.placed == first.placed
    world.answer(destroy, ok=True, gone=True)
    # The build's agent never reported: what it may have made is looked for once more.
    again = next(
        one
        for number in (4, 5)
        if (one := world.compute.wait_for(number)).operation_id == first.operation_id
    )
    assert again.placed == second.placed
    world.answer(again, ok=True, gone=True)
    world.until_operation("failed", "done", "done")
    assert world.placement.claims == {} and vmids(world) == {}


@pytest.mark.parametrize("before", [True, False])
def test_a_conductor_that_dies_leaves_no_claim_and_no_vmid(world: World, before: bool) -> None:
    """Placement doesn't answer, or the conductor ends, right after the host was left."""
    uuid, _ = first_build(world)
    world.silence("pve1")
    world.placement.down = True
    world.make_due()
    world._wait(lambda: world.row(uuid).host, lambda host: host is None)
    if before:
        world.conductor.runner.stop()
        world.conductor = world.add_conductor("c2")
    world.placement.down = False
    if before:
        world.conductor.runner.start()
    world.make_due()
    second = world.compute.wait_for(2)
    assert second.placed.host == "pve2"
    world.answer(second, ok=True, power_state=1)
    world.until(uuid, "active")
    world.answer(removal(world), ok=True, gone=True)
    world.until_operation("done", "done")
    assert world.placement.claims == {uuid: "pve2"}


def test_each_server_of_a_batch_goes_on_by_itself(world: World) -> None:
    uuids = world.create(min_count=2, max_count=2)
    builds = [world.compute.wait_for(number) for number in (1, 2)]
    assert {one.placed.host for one in builds} == {"pve1"}
    world.silence("pve1")
    world.make_due()
    again = [world.compute.wait_for(number) for number in (3, 4)]
    assert {one.placed.host for one in again} == {"pve2"}
    for one in again:
        world.answer(one, ok=True, power_state=1)
    for uuid in uuids:
        world.until(uuid, "active")
    world.beat()
    world.make_due()
    gone: list[Command] = [world.compute.wait_for(number) for number in (5, 6)]
    for one in gone:
        world.answer(one, ok=True, gone=True)
    world.until_operation("done", "done", "done", "done")
    assert world.placement.claims == dict.fromkeys(uuids, "pve2")


def test_the_removal_ends_when_an_administrator_deletes_the_host(world: World) -> None:
    uuid, first = first_build(world)
    second = left(world, first)
    world.answer(second, ok=True, power_state=1)
    world.until(uuid, "active")
    services = {row.host: row.uuid for row in world.rows(schema.services)}
    world.conductor.store.run(lambda c: registry.delete_service(c, services["pve1"]))
    world.make_due()
    world.until_operation("done", "failed")
    assert "pve1 was deleted" in world.rows(schema.operations)[1].message
    assert world.placement.claims == {uuid: "pve2"}
    assert [row.state for row in world.rows(schema.vmids) if row.vmid == first.placed.vmid] == [
        "quarantined"
    ]
