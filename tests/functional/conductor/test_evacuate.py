"""Evacuation by the HA manager: what is waited for, what is recorded, and how it may fail."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock
from common.messages.facts import HaService, Inspection
from common.resources.states import PowerState
from conductor.servers.move import begin_evacuation
from db import schema
from db.reads.ledger import waiting_moves
from tests.functional.conductor.harness import World
from tests.functional.conductor.takeover.cloud import ADMIN

RECOVERY = "conductor_await_recovery"
SMALL = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, scan_seconds=0.1)
    made.conductor.runner.start()
    yield made
    made.close()


class Lost:
    """A server whose node is lost, and what the manager of high availability does with it."""

    def __init__(self, world: World, wait: str | None = None) -> None:
        self.world = world
        hints = {} if wait is None else {"micronova:wait": wait}
        (self.uuid,) = world.create(scheduler_hints=hints)
        world.answer(world.compute.wait_for(1), ok=True, power_state=1)
        self.vmid = int(world.until(self.uuid, "active").vmid)
        world.until_operation("done")
        world.beat(lost="pve1")
        self.looks("pve1", "fence")

    def looks(self, node: str, state: str, wanted: str = "started", online: bool = False) -> None:
        seen = HaService(self.vmid, node, state, wanted, online)
        self.world.compute.services[self.vmid] = [seen]

    def is_on(self, node: str, power: int = 1, **more: Any) -> None:
        values = {"ours": True, "marked_by": self.uuid} | more
        self.world.compute.vms[self.vmid] = Inspection(
            self.vmid, True, node, power_state=power, **values
        )

    def evacuate(self) -> None:
        conductor = self.world.conductor
        operation = begin_evacuation.accept(conductor.cloud, ADMIN, self.uuid, None)
        conductor.runner.submit(operation)

    def until_seen(self, state: str) -> None:
        """Wait until that was written down of the manager."""
        self.world._wait(self.steps, lambda rows: [r.detail["ha_state"] for r in rows] == [state])

    def steps(self) -> list[Any]:
        return [one for one in self.world.rows(schema.operation_events) if one.name == RECOVERY]

    def allocated(self) -> dict[str, Any]:
        found = self.world.placement.allocations_of(self.uuid).by_provider
        return {provider.removeprefix("uuid-"): dict(held) for provider, held in found.items()}

    def migration(self) -> Any:
        return self.world.rows(schema.migrations)[-1]

    def fault(self) -> str:
        return str(self.world.rows(schema.faults)[-1].message)


@pytest.fixture
def lost(world: World) -> Lost:
    return Lost(world)


@pytest.mark.parametrize(
    ("wanted", "power", "becomes"),
    [("started", PowerState.RUNNING, "active"), ("stopped", PowerState.SHUTDOWN, "stopped")],
)
def test_it_is_followed_to_where_the_manager_has_it(
    lost: Lost, wanted: str, power: int, becomes: str
) -> None:
    lost.looks("pve1", "fence", wanted)
    lost.evacuate()
    lost.until_seen("fence")
    row = lost.world.row(lost.uuid)
    assert (row.host, row.vm_state, row.task_state) == ("pve1", "active", "rebuilding")
    assert (lost.migration().type, lost.migration().status) == ("evacuation", "running")
    lost.looks("pve1", "recovery", wanted)
    lost.until_seen("recovery")
    lost.is_on("pve2", power)
    lost.looks("pve2", wanted, wanted, online=True)
    row = lost.world.until(lost.uuid, becomes)
    assert (row.host, row.node, row.power_state) == ("pve2", "pve2", power)
    assert lost.allocated() == {"pve2": SMALL}
    migration = lost.migration()
    assert (migration.status, migration.source_host, migration.dest_host) == (
        *("completed", "pve1", "pve2"),
    )
    [step] = lost.steps()
    assert (step.result, step.detail["node"]) == ("Success", "pve2")
    assert [one.action for one in lost.world.rows(schema.operations)] == ["create", "evacuate"]


def test_one_that_is_not_started_there_yet_is_waited_for(lost: Lost) -> None:
    lost.evacuate()
    lost.is_on("pve2", PowerState.SHUTDOWN)
    lost.looks("pve2", "starting", online=True)
    lost.until_seen("starting")
    assert lost.world.row(lost.uuid).task_state == "rebuilding"
    lost.is_on("pve2")
    lost.world.until(lost.uuid, "active")
    assert lost.allocated() == {"pve2": SMALL}


@pytest.mark.parametrize(
    ("node", "state", "wanted", "why"),
    [
        ("pve1", "error", "started", "The HA manager reports it in state error."),
        ("pve1", "stopped", "disabled", "The HA manager reports it in state disabled."),
        (
            *("pve2", "error", "started"),
            "The HA manager reports it on pve2, in state error, and did not start it.",
        ),
        ("pve9", "started", "started", "Its VM is on node pve9, which no agent has reported."),
    ],
)
def test_the_manager_gives_up(lost: Lost, node: str, state: str, wanted: str, why: str) -> None:
    lost.evacuate()
    lost.until_seen("fence")
    lost.is_on("pve2", PowerState.SHUTDOWN)
    lost.looks(node, state, wanted)
    row = lost.world.until(lost.uuid, "error")
    assert (row.host, lost.allocated()) == ("pve1", {"pve1": SMALL})
    assert lost.fault() == f"VM {lost.vmid} was not recovered. {why}"
    assert lost.migration().status == "error"


def test_it_is_no_resource_any_more(lost: Lost) -> None:
    lost.evacuate()
    lost.until_seen("fence")
    lost.world.compute.services.clear()
    lost.world.until(lost.uuid, "error")
    assert lost.fault().endswith("It is no longer an HA resource.")


def test_somebody_elses_vm_is_there(lost: Lost) -> None:
    lost.is_on("pve2", ours=False, marked_by=None)
    lost.looks("pve2", "started", online=True)
    lost.evacuate()
    lost.world.until(lost.uuid, "error")
    assert lost.fault().endswith("The VM on pve2 is not the server's. It was not touched.")


def test_its_node_comes_back_in_time(lost: Lost) -> None:
    """The manager leaves it there: the server is what it was, and that is reported."""
    lost.evacuate()
    lost.until_seen("fence")
    lost.looks("pve1", "started", online=True)
    row = lost.world.until(lost.uuid, "active")
    assert (row.host, lost.migration().status) == ("pve1", "error")
    assert lost.world.rows(schema.operations)[-1].state == "failed"
    assert lost.fault().endswith("Its node pve1 is back, and the HA manager left it there.")


def test_agents_that_fall_silent_in_between_are_waited_for(lost: Lost) -> None:
    lost.evacuate()
    lost.until_seen("fence")
    lost.world.compute.deaf = True
    lost.is_on("pve2")
    lost.looks("pve2", "started", online=True)
    lost.world.make_due()
    assert lost.world.row(lost.uuid).task_state == "rebuilding"
    lost.world.compute.deaf = False
    lost.world.make_due()
    assert lost.world.until(lost.uuid, "active").host == "pve2"


def test_it_takes_too_long(lost: Lost) -> None:
    lost.evacuate()
    lost.looks("pve1", "recovery")
    lost.until_seen("recovery")
    past = clock.utcnow() - datetime.timedelta(seconds=1)
    late = sa.update(schema.operations).values(deadline=past)
    lost.world.conductor.store.run(lambda c: c.execute(late))
    lost.world.until(lost.uuid, "error")
    assert lost.fault().endswith("in time. It was last seen on pve1: recovery.")


def test_a_server_that_waits_for_room_is_waited_for_while_there_is_no_node(world: World) -> None:
    lost = Lost(world, wait="600")
    lost.evacuate()
    lost.until_seen("fence")
    [operation] = [one for one in world.rows(schema.operations) if one.action == "evacuate"]
    soon = operation.deadline
    assert "waits" not in str(operation.message)
    lost.looks("pve1", "recovery")
    lost.until_seen("recovery")
    operation = world.rows(schema.operations)[-1]
    assert operation.message.startswith("It waits for room")
    assert operation.deadline - soon > datetime.timedelta(seconds=500)
    with world.conductor.store.read() as connection:
        [waits] = waiting_moves.read(connection)
    assert (waits.server_uuid, waits.action, waits.source) == (lost.uuid, "evacuate", "pve1")
    assert (waits.needs, waits.reason) == (SMALL, operation.message)
    lost.is_on("pve2")
    lost.looks("pve2", "started", online=True)
    assert world.until(lost.uuid, "active").host == "pve2"
    with world.conductor.store.read() as connection:
        assert waiting_moves.read(connection) == []


def test_it_waits_for_room_for_its_time(world: World) -> None:
    lost = Lost(world, wait="1")
    lost.looks("pve1", "recovery")
    lost.evacuate()
    world.until(lost.uuid, "error")
    assert re.search(r"last seen on pve1: recovery\. It waited \d+ s for room\.$", lost.fault())


def test_what_was_under_way_is_given_up(lost: Lost) -> None:
    lost.world.act(lost.uuid, "stop")
    lost.is_on("pve2")
    lost.looks("pve2", "started", online=True)
    lost.evacuate()
    assert lost.world.until(lost.uuid, "active").host == "pve2"
    ended = [(one.action, one.state) for one in lost.world.rows(schema.operations)]
    assert ended[0] == ("create", "done")
    assert ended[2] == ("evacuate", "done")
