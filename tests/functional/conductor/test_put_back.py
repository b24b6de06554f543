"""What an operator's decision makes of builds that were open in a record that was put back."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from common import clock
from common.messages.commands import Mark
from common.messages.facts import Inspection, OwnerMark
from common.messages.inventory import ClusterInventory, SeenVm
from common.messages.reports import Category, Failure
from common.resources.states import PowerState, ResourceType
from conductor.audit.gather import Gatherer
from conductor.audit.restoring.restorer import Restorer
from conductor.store import restored
from conductor.store.ledger import operations as ledger
from conductor.store.restored import Marked
from db import schema
from tests.functional.conductor.harness import World

CLOUD = "5a3c1b7e-0000-4000-8000-0000000000c1"
VMID = 100_007
#: a server that the record lacks
MADE = "5a3c1b7e-0000-4000-8000-000000000001"


@pytest.fixture
def uuid(world: World) -> str:
    """A server whose build had just begun when the record was written; all is held."""
    row = {"id": 1, "cloud_id": CLOUD}
    world.conductor.store.run(lambda c: c.execute(schema.cloud_identity.insert(), row))
    # Nothing works on it: its conductor had done it, and the record doesn't know that.
    world.conductor.runner.submit = lambda operation: None  # type: ignore[assignment, method-assign]
    [made] = world.create()
    last = world.rows(schema.operations)[-1].id
    held = {"held_at": clock.utcnow(), "held_because": {}, "compare_operation": last}
    world.conductor.store.run(lambda c: c.execute(schema.cloud_identity.update(), held))
    return made


def show(world: World, uuid: str, **changed: Any) -> None:
    """Have the cluster show a VM with all marks of the server, as made since."""
    marks = {"read": True, "server_uuid": uuid, "cloud": CLOUD, "proven": True}
    values = {"project_id": world.ctxt.project_id, "nics": (), "status": "running", **marks}
    vm = SeenVm(VMID, "pve1", **{**values, **changed})  # type: ignore[arg-type]
    world.compute.seen["sim1"] = ClusterInventory("sim1", (vm,), ())


def decide(world: World) -> dict[str, Any]:
    cloud = world.conductor.cloud
    cloud.guard.expire()
    return Restorer(cloud, Gatherer(cloud), world.conductor.runner).run(apply=True)


def open_ones(world: World, uuid: str) -> list[int]:
    with world.conductor.store.read() as connection:
        return ledger.open_of(connection, uuid)


def test_a_build_whose_vm_runs_is_done(world: World, uuid: str) -> None:
    show(world, uuid)
    report = decide(world)
    assert report["released"]
    row = world.row(uuid)
    assert (row.vm_state, row.task_state) == ("active", None)
    assert (row.cluster, row.vmid, row.host) == ("sim1", VMID, "pve1")
    assert isinstance(row.launched_at, datetime.datetime)
    assert not open_ones(world, uuid)
    world.leaves = {"server_without_allocation"}  # which an audit that heals mends


def test_all_is_held_while_an_agent_may_build_it_still(world: World, uuid: str) -> None:
    """Else it would be scheduled again, and there were two VMs of it."""
    show(world, uuid, status="stopped")
    report = decide(world)
    assert not report["released"]
    assert [one["why"] for one in report["items"]] == [
        "An agent may build it still: run it again later."
    ]
    assert len(open_ones(world, uuid)) == 1
    assert world.row(uuid).vm_state == "building"
    show(world, uuid)
    assert decide(world)["released"]
    assert world.row(uuid).vm_state == "active"
    world.leaves = {"server_without_allocation"}


def test_what_began_since_is_left_to_who_works_on_it(world: World, uuid: str) -> None:
    update = schema.cloud_identity.update().values(compare_operation=0)
    world.conductor.store.run(lambda c: c.execute(update))
    show(world, uuid)
    report = decide(world)
    assert report["released"]
    assert [one["verdict"] for one in report["items"]] == ["leave"]
    assert world.row(uuid).vm_state == "building"
    assert len(open_ones(world, uuid)) == 1


def test_a_build_that_is_being_undone_is_not_adopted(world: World, uuid: str) -> None:
    update = schema.operations.update().values(state="unwinding")
    world.conductor.store.run(lambda c: c.execute(update))
    show(world, uuid)
    assert [one["verdict"] for one in decide(world)["items"]] == ["leave"]
    assert len(open_ones(world, uuid)) == 1


def made_since(world: World, **changed: Any) -> None:
    """Have the cluster show the stopped VM of a server that the record lacks."""
    row = {"id": 1, "cloud_id": CLOUD}
    world.conductor.store.run(lambda c: c.execute(schema.cloud_identity.insert(), row))
    show(world, MADE, status="stopped", **changed)
    world.compute.vms[VMID] = Inspection(
        *(VMID, True, "pve1"),
        **{"marked_by": MADE, "cloud": CLOUD, "power_state": PowerState.SHUTDOWN},
        **{"vcpus": 1, "memory_mib": 64, "unstarted": changed.get("unstarted", False)},
    )


@pytest.mark.parametrize(
    ("unstarted", "power", "state"),
    [
        (True, PowerState.RUNNING, "active"),
        (True, PowerState.SHUTDOWN, "stopped"),  # it could not be started
        (False, PowerState.SHUTDOWN, "stopped"),  # its user has stopped it
    ],
)
def test_a_server_that_was_made_since_is_as_its_user_wanted_it(
    world: World, unstarted: bool, power: PowerState, state: str
) -> None:
    made_since(world, unstarted=unstarted)
    [item] = decide(world)["items"]
    assert ("Its build has yet to start it." in item["why"]) is unstarted
    mark = world.compute.wait_for(1)
    assert isinstance(mark, Mark)
    assert mark.start is unstarted
    world.answer(mark, ok=True, power_state=power)
    world.until(MADE, state)


def test_a_server_that_was_made_since_needs_no_room(world: World) -> None:
    """By placement others have it: those that were deleted since, or made before the decision."""
    made_since(world)
    world.placement.full = {"uuid-pve1"}
    decide(world)
    world.answer(world.compute.wait_for(1), ok=True, power_state=PowerState.SHUTDOWN)
    world.until(MADE, "stopped")
    world.leaves = {"server_without_allocation"}  # which an audit that heals mends


def test_a_server_that_was_made_since_remains_one_though_its_mark_can_t_be_written(
    world: World,
) -> None:
    """A backup of its VM may have begun after the look. Without marks it would be nobody's."""
    made_since(world)
    decide(world)
    busy = Failure(Category.LOCK, "VM is locked", host="pve1")
    world.answer(world.compute.wait_for(1), ok=False, failure=busy)
    row = world.until(MADE, "error")
    assert (row.cluster, row.vmid, row.deleted_at) == ("sim1", VMID, None)
    assert world.rows(schema.faults)[-1].message == "VM is locked"
    world.make_due()
    assert len(world.compute.sent) == 1
    # Its VM is looked at, as that of any server in ERROR.
    world.conductor.store.run(
        lambda c: c.execute(schema.servers.update().values(updated_at=clock.after(-3600)))
    )
    world.conductor.followed.look_after_errors()
    assert [one.action for one in world.rows(schema.operations)] == ["adopt", "follow"]


def test_a_mark_that_is_seen_while_it_is_decided_is_decided_on_later(
    world: World, uuid: str
) -> None:
    """As of a cluster that was added since, whose first agent answers just then."""
    show(world, uuid)
    mark = OwnerMark(CLOUD, ResourceType.SERVER, MADE, epoch=1000, vmid=VMID + 1)
    gatherer = Gatherer(world.conductor.cloud)
    cloud = world.conductor.cloud
    ask = world.compute.ask

    def see_mark_then_ask(*asked: Any) -> Any:
        cloud.store.run(lambda c: restored.look(c, [Marked("sim2", VMID + 1, mark)]))
        return ask(*asked)

    world.compute.ask = see_mark_then_ask  # type: ignore[method-assign]
    cloud.guard.expire()
    report = Restorer(cloud, gatherer, world.conductor.runner).run(apply=True)
    assert not report["released"]
    assert decide(world)["released"]
    world.leaves = {"server_without_allocation"}
