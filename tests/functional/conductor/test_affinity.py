"""Strict server groups on their way to the hypervisor: with the build, and by the audit."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.messages.commands import Build, StrictGroup
from common.messages.inventory import ClusterInventory, SeenVm
from conductor.endpoints.servers.server_groups import ServerGroupEndpoint
from conductor.rpc.servers.server_groups import NewServerGroup
from conductor.store.servers import server_groups
from db import schema
from tests.functional.conductor.harness import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    identity = schema.cloud_identity.insert().values(id=1, cloud_id="me")
    made.conductor.store.run(lambda connection: connection.execute(identity))
    made.conductor.runner.start()
    yield made
    made.close()


def a_group(world: World, policy: str, **rules: int) -> str:
    new = NewServerGroup("p", "u", "g", policy, rules)
    return world.conductor.store.run(lambda c: server_groups.create(c, new))


def built(world: World, group: str, number: int) -> Build:
    """A server of a group; its VM is shown from then on."""
    (uuid,) = world.create(server_group=group)
    command = world.compute.wait_for(number)
    assert isinstance(command, Build)
    world.answer(command, ok=True, power_state=1)
    world.until(uuid, "active")
    marks = {"server_uuid": uuid, "proven": True, "cloud": world.conductor.cloud.id}
    vm = SeenVm(command.placed.vmid, command.placed.node, read=True, **marks)  # type: ignore[arg-type]
    before = world.compute.seen.get("sim1") or ClusterInventory(
        "sim1", writes_affinity=True, affinity_seen=True
    )
    world.compute.seen["sim1"] = dataclasses.replace(before, vms=(*before.vms, vm))
    return command


def opened(world: World) -> dict[str, Any]:
    return {row.kind: row for row in world.rows(schema.findings) if row.healed_at is None}


@pytest.mark.parametrize(
    ("policy", "rules", "apart"),
    [("anti-affinity", {"max_server_per_host": 2}, True), ("affinity", {}, False)],
)
def test_a_build_says_what_its_group_asks(
    world: World, policy: str, rules: dict[str, int], apart: bool
) -> None:
    group = a_group(world, policy, **rules)
    command = built(world, group, 1)
    assert command.group == StrictGroup(group, apart, 2 if rules else 1)


def test_a_wish_is_no_rule(world: World) -> None:
    assert built(world, a_group(world, "soft-affinity"), 1).group is None


def test_the_audit_writes_a_missing_rule_and_removes_one_left_over(world: World) -> None:
    group = a_group(world, "affinity")
    vmids = [built(world, group, number).placed.vmid for number in (1, 2)]
    report = world.conductor.auditor.audit()
    assert (report["healed"], report["open"]) == (1, {})
    assert world.compute.group_rules == [("sim1", StrictGroup(group, apart=False), tuple(vmids))]
    assert world.conductor.auditor.audit()["healed"] == 0

    world.conductor.store.run(lambda c: server_groups.delete(c, group, "p"))
    report = world.conductor.auditor.audit()
    assert (report["healed"], report["open"]) == (1, {})
    assert world.compute.group_rules[1:] == [("sim1", StrictGroup(group, apart=False), ())]
    assert world.compute.seen["sim1"].affinity == ()


def test_who_deletes_a_group_has_its_rule_removed(world: World) -> None:
    group = a_group(world, "affinity")
    for number in (1, 2):
        built(world, group, number)
    world.conductor.auditor.audit()
    doors = ServerGroupEndpoint(world.conductor.cloud)
    doors.delete_server_group(world.ctxt, group)
    assert world.compute.seen["sim1"].affinity == ()
    assert world.conductor.auditor.audit()["healed"] == 0
    soft = a_group(world, "soft-affinity")
    built(world, soft, 3)
    before = len(world.compute.group_rules)
    doors.delete_server_group(world.ctxt, soft)
    assert len(world.compute.group_rules) == before


def test_a_group_is_deleted_though_nobody_can_be_notified(world: World) -> None:
    group = a_group(world, "affinity")
    for number in (1, 2):
        built(world, group, number)
    world.conductor.auditor.audit()
    world.compute.refuses = "not delivered"
    ServerGroupEndpoint(world.conductor.cloud).delete_server_group(world.ctxt, group)
    assert world.rows(schema.server_groups) == []
    world.compute.refuses = ""
    assert world.conductor.auditor.audit()["healed"] == 1
    assert world.compute.seen["sim1"].affinity == ()


def test_what_the_cluster_does_not_take_stays_reported(world: World) -> None:
    group = a_group(world, "affinity")
    for number in (1, 2):
        built(world, group, number)
    world.compute.refuses = "403"
    assert world.conductor.auditor.audit()["open"] == {"affinity_rule_incomplete": 1}
    finding = opened(world)["affinity_rule_incomplete"]
    assert finding.subject == f"sim1/{group}"
    assert "Sys.Console" in finding.remedy
