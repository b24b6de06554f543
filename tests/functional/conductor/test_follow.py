"""What agents see of VMs: power follows, moves are followed, what vanished is reported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common import clock
from common.messages.facts import Inspection, VmFacts, VmStates
from common.messages.reports import Category, Failure
from common.resources.states import PowerState
from conductor.store.servers import vmids
from conductor.sync.drift import Saw
from db import schema
from tests.functional.conductor.harness import World

NODES = ("pve1", "pve2")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, settle_seconds=0.0)
    made.conductor.runner.start()
    yield made
    made.close()


def active(world: World) -> Any:
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    row = world.until(uuid, "active")
    world.until_operation("done")
    return row


def sighting(server: Any, node: str | None, power: int = 1) -> VmFacts:
    """The server's VM as the list shows it; the agent finds it there when it looks closer."""
    return VmFacts(server.vmid, node or "", power)


def report(world: World, *vms: VmFacts, worker: str = "w1", **more: Any) -> None:
    values: dict[str, Any] = {"nodes": NODES, "whole": True} | more
    states = VmStates(worker, "sim1", clock.utcnow(), vms=vms, **values)
    world.conductor.followed.take(states)


def is_on(world: World, server: Any, node: str, power: int = 1, **more: Any) -> None:
    """What a close look at the server's VM will find."""
    values = {"ours": True, "marked_by": server.uuid} | more
    world.compute.vms[server.vmid] = Inspection(
        server.vmid, True, node, power_state=power, **values
    )


def events(world: World, name: str) -> list[Any]:
    return [row for row in world.rows(schema.operation_events) if row.name == name]


# --- power


def test_a_server_that_somebody_stops_and_starts_follows(world: World) -> None:
    server = active(world)
    report(world, sighting(server, "pve1", PowerState.SHUTDOWN))
    row = world.row(server.uuid)
    assert (row.vm_state, row.power_state) == ("stopped", PowerState.SHUTDOWN)
    (event,) = events(world, "conductor_sync_power")
    assert event.detail["seen"] == "SHUTDOWN"
    operation = world.rows(schema.operations)[-1]
    assert (operation.action, operation.state) == ("sync-power", "done")
    assert operation.request_id != world.rows(schema.operations)[0].request_id
    assert operation.project_id == "p"
    report(world, sighting(server, "pve1", PowerState.RUNNING))
    assert world.row(server.uuid).vm_state == "active"
    assert world.compute.inspected == []


def test_a_paused_vm_shows_its_power_state_only(world: World) -> None:
    server = active(world)
    report(world, sighting(server, "pve1", PowerState.PAUSED))
    row = world.row(server.uuid)
    assert (row.vm_state, row.power_state) == ("active", PowerState.PAUSED)
    assert len(world.rows(schema.operations)) == 1


def test_a_server_with_something_under_way_is_left_alone(world: World) -> None:
    server = active(world)
    world.act(server.uuid, "stop")
    report(world, sighting(server, "pve2", PowerState.SHUTDOWN))
    row = world.row(server.uuid)
    assert (row.vm_state, row.task_state, row.node) == ("active", "powering-off", "pve1")


def test_a_stranger_and_a_fresh_look_have_no_say(world: World) -> None:
    server = active(world)
    report(world, sighting(server, "pve1", PowerState.SHUTDOWN), worker="w2")
    assert world.row(server.uuid).vm_state == "active"
    states = VmStates("w1", "sim1", clock.after(-60), NODES, True, (sighting(server, "pve1", 4),))
    world.conductor.followed.take(states)
    assert world.row(server.uuid).vm_state == "active"


# --- moves


def test_a_vm_that_moved_is_followed_with_its_allocation(world: World) -> None:
    server = active(world)
    is_on(world, server, "pve2")
    report(world, sighting(server, "pve2"))
    world.until_operation("done", "done")
    row = world.row(server.uuid)
    assert (row.host, row.node, row.vm_state) == ("pve2", "pve2", "active")
    assert world.placement.claims == {server.uuid: "uuid-pve2"}
    (event,) = events(world, "conductor_follow_vm")
    assert (event.detail["recorded"], event.detail["found"]) == ("pve1", "pve2")
    assert events(world, "conductor_move_allocation")[0].result == "Success"
    # It is reported again: nothing happens any more.
    report(world, sighting(server, "pve2"))
    assert len(world.rows(schema.operations)) == 2


def test_the_allocation_follows_once_placement_is_back(world: World) -> None:
    server = active(world)
    is_on(world, server, "pve2", power=4)
    world.placement.down = True
    report(world, sighting(server, "pve2", 4))
    world.until(server.uuid, "stopped")
    assert world.row(server.uuid).host == "pve2"
    world.until_operation("done", "unwinding")
    # Until then the user is not in its way, nor it in theirs.
    world.act(server.uuid, "start")
    world.answer(world.compute.wait_for(2), ok=True, power_state=1)
    world.until(server.uuid, "active")
    world.placement.down = False
    world.make_due()
    world.until_operation("done", "done", "done")
    assert world.placement.claims == {server.uuid: "uuid-pve2"}


def test_a_full_host_gets_the_allocation_when_it_has_room(world: World) -> None:
    server = active(world)
    is_on(world, server, "pve2")
    world.placement.full = {"uuid-pve2"}
    report(world, sighting(server, "pve2"))
    world.until_operation("done", "unwinding")
    assert world.row(server.uuid).host == "pve2"
    # It is followed all the same.
    is_on(world, server, "pve1")
    report(world, sighting(server, "pve1"))
    world.until_operation("done", "unwinding", "done")
    world.make_due()
    world.until_operation("done", "done", "done")
    assert world.placement.claims == {server.uuid: "uuid-pve1"}


def test_an_agent_that_is_away_is_asked_again(world: World) -> None:
    server = active(world)
    is_on(world, server, "pve2")
    world.compute.deaf = True
    report(world, sighting(server, "pve2"))
    world.until_operation("done", "queued")
    world.compute.deaf = False
    world.make_due()
    world.until_operation("done", "done")
    assert world.row(server.uuid).host == "pve2"


def test_an_action_of_the_user_in_between_comes_first(world: World) -> None:
    server = active(world)
    world.compute.vms[server.vmid] = Inspection(
        server.vmid, failure=Failure(Category.NODE_UNHEALTHY, "silence")
    )
    report(world, sighting(server, "pve2"))
    world.until_paused()
    world.act(server.uuid, "stop")
    world.answer(world.compute.wait_for(2), ok=True, power_state=4)
    world.until(server.uuid, "stopped")
    is_on(world, server, "pve1", power=4)
    world.make_due()
    world.until_operation("done", "done", "done")
    assert world.row(server.uuid).node == "pve1"


# --- vanished


def test_a_vm_that_vanished_is_reported_and_shown_again_when_it_is_back(world: World) -> None:
    server = active(world)
    report(world, low=0, high=10**6)
    world.until(server.uuid, "error")
    world.until_operation("done", "failed")
    (fault,) = world.rows(schema.faults)
    assert fault.category == "vanished"
    assert "It is not created again" in fault.message
    # Nothing was given back, nothing is made again, nothing is said twice.
    assert world.placement.claims == {server.uuid: "pve1"}
    report(world, low=0, high=10**6)
    assert len(world.rows(schema.operations)) == 2
    is_on(world, server, "pve2", power=4)
    report(world, sighting(server, "pve2", 4))
    world.until(server.uuid, "stopped")
    world.until_operation("done", "failed", "done")
    assert world.row(server.uuid).host == "pve2"
    assert world.placement.claims == {server.uuid: "uuid-pve2"}


def test_a_list_without_a_vm_that_is_there_changes_nothing(world: World) -> None:
    server = active(world)
    is_on(world, server, "pve1")
    report(world, gone=(server.vmid,))
    world.until_operation("done", "done")
    row = world.row(server.uuid)
    assert (row.vm_state, row.node) == ("active", "pve1")
    assert world.rows(schema.faults) == []


def test_a_cluster_that_only_partly_answers_says_nothing_of_absence(world: World) -> None:
    server = active(world)
    report(world, gone=(server.vmid,), whole=False, nodes=("pve2",))
    report(world, low=0, high=10**6, whole=False, nodes=("pve2",))
    assert world.row(server.uuid).vm_state == "active"
    assert world.compute.inspected == []


def test_a_strangers_vm_at_our_vmid_is_reported_and_not_touched(world: World) -> None:
    server = active(world)
    is_on(world, server, "pve2", ours=False, marked_by=None)
    report(world, sighting(server, "pve2"))
    world.until(server.uuid, "error")
    world.until_operation("done", "failed")
    assert "not ours" in world.rows(schema.faults)[0].message
    assert world.rows(schema.operations)[1].plan["saw"] == Saw.FOREIGN
    assert world.row(server.uuid).node == "pve1"
    assert len(world.compute.sent) == 1


def test_a_vm_that_became_a_template_is_reported(world: World) -> None:
    server = active(world)
    is_on(world, server, "pve1", power=4, kind="template")
    report(world, gone=(server.vmid,))
    world.until(server.uuid, "error")
    world.until_operation("done", "failed")
    assert "is a template now" in world.rows(schema.faults)[0].message
    report(world, gone=(server.vmid,))
    assert len(world.rows(schema.operations)) == 2


def test_a_node_without_agent_is_reported(world: World) -> None:
    server = active(world)
    is_on(world, server, "pve9")
    report(world, sighting(server, "pve9"), nodes=(*NODES, "pve9"))
    world.until_operation("done", "failed")
    row = world.row(server.uuid)
    assert (row.vm_state, row.node) == ("active", "pve1")
    assert "no agent has reported" in world.rows(schema.faults)[0].message
    report(world, sighting(server, "pve9"), nodes=(*NODES, "pve9"))
    assert len(world.rows(schema.operations)) == 2


def test_vmids_that_others_have_are_given_to_no_build(world: World) -> None:
    with world.conductor.store.read() as connection:
        low, _ = vmids.bands(connection)["sim1"]
    strangers = (
        VmFacts(low, "pve1", 1),
        VmFacts(low + 1, "pve2", 0, kind="template"),
        VmFacts(low + 2, "pve1", 0, kind="container"),
    )
    report(world, *strangers, low=0, high=2**31 - 1)
    world.create()
    assert world.compute.wait_for(1).placed.vmid == low + 3
    rows = {row.vmid: row for row in world.rows(schema.vmids)}
    assert rows[low + 2].reason == "A container that this cloud did not make was seen on pve1."
    report(world, gone=(low, low + 1))
    assert {row.vmid for row in world.rows(schema.vmids) if row.state == "taken"} == {low + 2}


def test_a_container_at_our_vmid_is_reported_as_a_vm_that_is_gone(world: World) -> None:
    server = active(world)
    world.compute.vms[server.vmid] = Inspection(
        server.vmid, exists=True, node="pve1", kind="container"
    )
    there = VmFacts(server.vmid, "pve1", 0, kind="container")
    report(world, there)
    world.until(server.uuid, "error")
    assert "belongs to somebody else" in world.rows(schema.faults)[0].message
