"""Which worker carries a host's agent, by the conductors' record."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common import clock
from common.messages import tenures
from common.messages.commands import Build
from common.messages.facts import Heartbeat
from common.messages.reports import Category, Failure, Report, Working
from common.messages.tenures import Claim, Granted, address
from conductor.store.hosts import agent_leases
from db import schema
from db.reads.hosts import services
from tests.functional.conductor.harness import World, said

SIM = tenures.unit("sim1")
GONE = Failure(Category.CREATION_FAILED, "The task failed.", host="pve1")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.conductor.runner.start()
    yield made
    made.close()


def a_claim(worker: str = "w1", **changes: Any) -> Claim:
    claim = Claim(worker, f"process of {worker}", f"machine of {worker}", 0, (SIM,))
    return dataclasses.replace(claim, **changes)


def claimed(world: World, worker: str = "w1", **changes: Any) -> Granted:
    return world.conductor.reports.claim(a_claim(worker, **changes))


def test_a_worker_is_a_service_with_its_release(world: World) -> None:
    for version in ("1.0.0", "1.1.0"):
        claimed(world, version=version)
        [row] = [one for one in world.rows(schema.services) if one.binary == "micronova-agent"]
        assert (row.host, row.version) == ("w1", version)


def let_run_out(world: World) -> None:
    def work(connection: Any) -> None:
        for table in (schema.agents, schema.agent_leases):
            connection.execute(table.update().values(expires_at=clock.after(-1)))

    world.conductor.store.run(work)


def carried_by(world: World) -> set[str]:
    return {row.worker for row in world.rows(schema.hosts)}


def test_one_worker_has_a_cluster_until_its_lease_runs_out(world: World) -> None:
    first = claimed(world)
    assert (first.tenure, first.held, first.holders) == (1, ("sim1",), {})
    other = claimed(world, "w2")
    assert (other.held, other.holders) == ((), {"sim1": "w1"})
    again = claimed(world, tenure=1)
    assert (again.tenure, again.held) == (1, ("sim1",))
    let_run_out(world)
    # Nobody else asked: it continues in the same tenure.
    assert claimed(world, tenure=1).tenure == 1
    let_run_out(world)
    assert claimed(world, "w2", tenure=other.tenure).held == ("sim1",)
    assert claimed(world, tenure=1).holders == {"sim1": "w2"}


def test_a_takeover_goes_on_with_what_the_former_worker_had(world: World) -> None:
    first = address("w1", claimed(world).tenure)
    world.beat(first)
    [uuid] = world.create()
    build = world.compute.wait_for(1)
    assert world.compute.sent[0][0] == first
    let_run_out(world)
    second = address("w2", claimed(world, "w2").tenure)
    assert carried_by(world) == {second}
    assert world.compute.wait_for(2) == build
    assert world.compute.sent[1][0] == second
    world.answer(build, ok=True, power_state=1)
    world.until(uuid, "active")


def test_what_a_former_worker_says_late_changes_nothing(world: World) -> None:
    first = address("w1", claimed(world).tenure)
    world.beat(first)
    [uuid] = world.create()
    build = world.compute.wait_for(1)
    assert isinstance(build, Build)
    let_run_out(world)
    second = address("w2", claimed(world, "w2").tenure)
    again = world.compute.wait_for(2)
    working = Working(build.operation_id, build.attempt, "pve1")
    reports = world.conductor.reports
    assert reports.may_start(first, [working]) == []
    assert not reports.may_undo(first, working)
    for outcome in (said(build, ok=False, failure=GONE, gone=True), said(build, ok=True)):
        late = Report(
            *(build.operation_id, build.attempt, build.resource_type, build.resource_id),
            *("pve1", (), outcome, first),
        )
        reports.take([late])
    row = world.row(uuid)
    assert (row.vm_state, row.task_state, row.host) == ("building", "spawning", "pve1")
    reports.heartbeat(Heartbeat(first, clock.utcnow(), ("pve1", "pve2")))
    assert carried_by(world) == {second}
    assert reports.may_start(second, [working]) == [working]
    reports.take(
        [
            Report(
                *(again.operation_id, again.attempt, again.resource_type, again.resource_id),
                *("pve1", (), said(again, ok=True, power_state=1), second),
            )
        ]
    )
    world.until(uuid, "active")


def test_a_process_restarted_on_its_machine_continues_at_once(world: World) -> None:
    """There a name is held by one process at a time: the former one has ended."""
    first = address("w1", claimed(world).tenure)
    world.beat(first)
    world.create()
    build = world.compute.wait_for(1)
    granted = claimed(world, process="the next")
    assert (granted.tenure, granted.held) == (2, ("sim1",))
    assert world.compute.wait_for(2) == build
    assert world.compute.sent[1][0] == address("w1", 2)


@pytest.mark.parametrize("machine", ["another", ""])
def test_a_process_of_the_same_name_elsewhere_waits(world: World, machine: str) -> None:
    claimed(world, machine="" if not machine else "machine of w1")
    twin = claimed(world, process="a twin", machine=machine)
    assert (twin.tenure, twin.held) == (0, ())
    assert claimed(world, tenure=1, machine="" if not machine else "machine of w1").held
    let_run_out(world)
    assert claimed(world, process="a twin", machine=machine).tenure == 2


def test_a_worker_that_stops_in_order_is_followed_at_once(world: World) -> None:
    granted = claimed(world)
    claimed(world, "w2")
    world.conductor.store.run(lambda c: agent_leases.release(c, address("w1", granted.tenure)))
    assert claimed(world, "w2", tenure=1).held == ("sim1",)


def test_after_a_restore_no_tenure_is_used_twice(world: World) -> None:
    claimed(world)
    back = world.remember()
    let_run_out(world)
    claimed(world, "w2")
    let_run_out(world)
    assert claimed(world, tenure=0).tenure == 2
    back()
    # The record says 1, the worker 2.
    granted = claimed(world, tenure=2)
    assert (granted.tenure, granted.held) == (3, ("sim1",))


def test_clusters_and_parts_of_them_are_carried_apart(world: World) -> None:
    some, others = tenures.unit("sim1", ["pve1"]), tenures.unit("sim1", ["pve2"])
    east = tenures.unit("east")
    assert claimed(world, units=(some, east)).held == ("east", some.name)
    granted = claimed(world, "w2", units=(others, east))
    assert (granted.held, granted.holders) == ((others.name,), {"east": "w1"})


def test_of_workers_with_the_same_hosts_one_observes_them(world: World) -> None:
    first, second = (tenures.unit("sim1", names) for names in (["pve1", "pve2"], ["pve2", "pve1"]))
    assert claimed(world, units=(first,)).held == (first.name,)
    assert claimed(world, "w2", units=(second,)).holders == {first.name: "w1"}
    let_run_out(world)
    assert claimed(world, "w2", units=(second,)).held == (first.name,)
    assert claimed(world, units=(first,)).holders == {first.name: "w2"}


def test_a_cluster_is_not_carried_as_a_whole_and_in_parts_at_a_time(world: World) -> None:
    """As of a worker whose ``hosts`` were set, beside one without that stood by."""
    part = tenures.unit("sim1", ["pve1"])
    assert claimed(world).held == ("sim1",)
    assert claimed(world, "w2", units=(part,)).holders == {part.name: "w1"}
    # Its own former lease hinders nobody: its process has begun again.
    assert claimed(world, tenure=1, units=(part,)).held == (part.name,)
    assert claimed(world, "w2").holders == {"sim1": "w1"}
    let_run_out(world)
    assert claimed(world, "w2").held == ("sim1",)


def test_parts_of_a_cluster_with_a_node_in_common_are_not_carried_at_a_time(world: World) -> None:
    low, high = (tenures.unit("sim1", names) for names in (["pve1", "pve2"], ["pve2", "pve3"]))
    assert claimed(world, units=(low,)).held == (low.name,)
    assert claimed(world, "w2", units=(high,)).holders == {high.name: "w1"}
    # Another node of it, and the same nodes of another cluster, are free.
    apart, east = tenures.unit("sim1", ["pve3"]), tenures.unit("east", ["pve1", "pve2"])
    assert claimed(world, "w3", units=(apart, east)).held == (east.name, apart.name)
    let_run_out(world)
    assert claimed(world, "w2", units=(high,)).held == (high.name,)
    assert claimed(world, units=(low,)).holders == {low.name: "w2"}


def test_a_lease_of_a_worker_that_names_no_nodes_is_completed_by_one_that_does(
    world: World,
) -> None:
    part = tenures.unit("sim1", ["pve1", "pve2"])
    assert claimed(world, units=(dataclasses.replace(part, nodes=()),)).held == (part.name,)
    assert claimed(world, tenure=1, units=(part,)).held == (part.name,)
    other = tenures.unit("sim1", ["pve2", "pve3"])
    assert claimed(world, "w2", units=(other,)).holders == {other.name: "w1"}


@pytest.mark.parametrize("first", ["w1", "w2"])
def test_of_claims_to_whole_and_part_at_the_same_moment_one_remains(
    world: World, first: str
) -> None:
    units = {"w1": (SIM,), "w2": (tenures.unit("sim1", ["pve1"]),)}

    def at_once(connection: Any) -> None:
        """Neither transaction saw the other one's lease."""
        for worker, (unit,) in units.items():
            lease = {"unit": unit.name, "cluster": unit.cluster, "expires_at": clock.after(30)}
            connection.execute(schema.agent_leases.insert().values(worker=f"{worker}@1", **lease))

    world.conductor.store.run(at_once)
    order = [first, *({"w1", "w2"} - {first})]
    held = {one: claimed(world, one, units=units[one]).held for one in order}
    assert held == {"w1": ("sim1",), "w2": ()}


def test_the_list_of_services_says_who_is_active(world: World) -> None:
    claimed(world)
    claimed(world, "w2")
    with world.conductor.store.read() as connection:
        found = services.list_services(connection, binary=services.AGENT)
    assert {one.host: one.trouble for one in found} == {
        "w1": "Active: it carries sim1.",
        "w2": "Standby.",
    }
    let_run_out(world)
    with world.conductor.store.read() as connection:
        found = services.list_services(connection, binary=services.AGENT)
    assert {one.trouble for one in found} == {"Standby."}
