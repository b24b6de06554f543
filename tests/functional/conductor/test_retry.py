"""What waits continues early: its cause is seen gone, or an operator asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common import clock
from common.context import RequestContext
from common.errors import Conflict, ServerNotFound
from common.failures import Verdict
from common.messages.facts import Inspection, VmFacts, VmStates
from common.messages.reports import Category, Failure
from db import schema
from tests.functional.conductor.harness import World

ADMIN = RequestContext(user_id="boss", project_id="admin", roles=["admin"], is_admin=True)
LOCKED = Failure(Category.LOCK, "VM is locked (backup)", host="pve1")
SILENT = Failure(Category.NODE_UNHEALTHY, "Connection refused", verdict=Verdict.AWAIT_HOST)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    # Nothing becomes due by itself while a test runs.
    made = World(tmp_path, settle_seconds=0.0)
    made.conductor.runner.start()
    yield made
    made.close()


def waiting_delete(world: World) -> Any:
    """A server whose delete met a lock."""
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    row = world.until(uuid, "active")
    world.act(uuid, "delete")
    world.answer(world.compute.wait_for(2), ok=False, failure=LOCKED)
    world.until_faults(1)
    world.until_paused(5)
    return row


def report(world: World, *vms: VmFacts, **ended: Any) -> None:
    """What an agent saw end."""
    now, nodes = clock.utcnow(), ("pve1", "pve2")
    states = VmStates("w1", "sim1", now, nodes=nodes, vms=vms, **ended)
    world.conductor.followed.take(states)


def retry(world: World, uuid: str) -> None:
    world.conductor.custody.retry_server(ADMIN, uuid)


def test_an_unlocked_vm_is_deleted_at_once(world: World) -> None:
    server = waiting_delete(world)
    report(world, unlocked=(server.vmid + 1,), eased=("elsewhere",))
    assert world.rows(schema.operations)[-1].not_before is not None
    report(world, unlocked=(server.vmid,))
    world.answer(world.compute.wait_for(3), ok=True, gone=True)
    world.until(server.uuid, "deleted")


def test_a_node_that_takes_work_again_gets_what_waited_for_it(world: World) -> None:
    server = waiting_delete(world)
    report(world, eased=(server.node,))
    world.answer(world.compute.wait_for(3), ok=True, gone=True)
    world.until(server.uuid, "deleted")


def test_a_build_that_waits_for_any_host_goes_on_when_one_is_well(tmp_path: Path) -> None:
    world = World(tmp_path, hosts=("pve1",))
    world.conductor.runner.start()
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=False, failure=SILENT, gone=True)
    world.until_paused(5)
    assert world.row(uuid).host is None
    report(world, eased=("pve1",))
    world.answer(world.compute.wait_for(2), ok=True, power_state=1)
    world.until(uuid, "active")
    world.close()


def test_what_is_held_waits_for_its_release(world: World) -> None:
    server = waiting_delete(world)
    world.conductor.custody.hold_server(ADMIN, server.uuid, held=True)
    report(world, unlocked=(server.vmid,), eased=(server.node,))
    with pytest.raises(Conflict, match="held"):
        retry(world, server.uuid)
    world.conductor.runner.look()
    assert len(world.compute.sent) == 2
    world.conductor.custody.hold_server(ADMIN, server.uuid, held=False)
    world.answer(world.compute.wait_for(3), ok=True, gone=True)
    world.until(server.uuid, "deleted")


def test_an_operator_has_it_tried_at_once(world: World) -> None:
    server = waiting_delete(world)
    retry(world, server.uuid)
    again = world.compute.wait_for(3)
    # It is under way now.
    with pytest.raises(Conflict, match="Nothing waits"):
        retry(world, server.uuid)
    world.answer(again, ok=True, gone=True)
    world.until(server.uuid, "deleted")
    actions = [row.action for row in world.rows(schema.operations)]
    assert actions == ["create", "delete", "retry"]
    with pytest.raises(ServerNotFound):
        retry(world, server.uuid)


def test_what_waited_past_its_time_has_time_again(world: World) -> None:
    server = waiting_delete(world)
    world.conductor.store.run(
        lambda c: c.execute(schema.operations.update().values(deadline=clock.after(-1)))
    )
    retry(world, server.uuid)
    world.answer(world.compute.wait_for(3), ok=False, failure=LOCKED)
    world.until_faults(2)
    assert world.row(server.uuid).task_state == "deleting"
    world.make_due()
    world.answer(world.compute.wait_for(4), ok=True, gone=True)
    world.until(server.uuid, "deleted")


def in_error(world: World, **inspected: Any) -> Any:
    """A server in ERROR with nothing under way, and what a close look at its VM finds."""
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    row = world.until(uuid, "active")
    world.conductor.store.run(
        lambda c: c.execute(schema.servers.update().values(vm_state="error"))
    )
    found = {"ours": True, "marked_by": uuid, "power_state": 1} | inspected
    world.compute.vms[row.vmid] = Inspection(row.vmid, True, row.node, **found)
    return row


@pytest.mark.parametrize(("power", "becomes"), [(1, "active"), (4, "stopped")])
@pytest.mark.parametrize("who", ["operator", "conductor"])
def test_a_server_in_error_whose_vm_is_well_comes_back(
    world: World, who: str, power: int, becomes: str
) -> None:
    server = in_error(world, power_state=power)
    if who == "operator":
        retry(world, server.uuid)
    else:
        world.conductor.followed.look_after_errors()
    assert world.until(server.uuid, becomes).power_state == power


@pytest.mark.parametrize(
    ("found", "seen"), [({"lock": "backup"}, "moved"), ({"ours": False}, "foreign")]
)
def test_one_whose_vm_is_locked_or_not_proven_stays(
    world: World, found: dict[str, Any], seen: str
) -> None:
    server = in_error(world, **found)
    followed = world.conductor.followed
    followed.look_after_errors()
    end = "done" if seen == "moved" else "failed"
    world.until_operation("done", end)
    assert world.row(server.uuid).vm_state == "error"
    # And it is not looked at all the time.
    followed.look_after_errors()
    assert len(world.rows(schema.operations)) == 2


def test_one_that_never_ran_is_left_alone(world: World) -> None:
    server = in_error(world)
    world.conductor.store.run(
        lambda c: c.execute(schema.servers.update().values(launched_at=None))
    )
    world.conductor.followed.look_after_errors()
    assert len(world.rows(schema.operations)) == 1
    assert world.row(server.uuid).vm_state == "error"
