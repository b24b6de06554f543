"""A node is lost: with HA its machines go on elsewhere and the record follows; and what becomes
of a build that was under way there, in each of its tasks.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common.context import RequestContext
from common.errors import Invalid
from db import schema
from simulator.state import ha_resources
from simulator.state.ha_config import HaRule
from tests.chaos.world import SPEED, World, world

BOSS = RequestContext(user_id="boss", project_id="p", roles=["admin"], is_admin=True)
_MOVE = re.compile(
    r"as root on (\S+): mv /etc/pve/nodes/(\S+)/qemu-server/(\d+)\.conf "
    r"/etc/pve/nodes/(\S+)/qemu-server/ "
)
SHARED = {"proxmox:sim1": {"vm_storage": "shared", "iso_storage": "shared"}}


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[World]:
    """Three nodes, so that two are a quorum; disks on shared storage."""
    with world(tmp_path, SHARED, nodes=3) as running:
        yield running


def machine(cloud: World, vmid: int) -> Any:
    found: list[Any] = cloud.simulator.state()["sim1"]["vms"]
    return next(vm for vm in found if vm["vmid"] == vmid)


def test_ha_restarts_it_elsewhere_and_the_record_follows(cloud: World) -> None:
    row = cloud.built("guarded")
    assert row.vm_state == "active"
    order = cloud.simulator.fault(action="node-down", node=row.node, ha=True)
    cloud.until(lambda: machine(cloud, row.vmid)["status"] == "running")
    moved = machine(cloud, row.vmid)["node"]
    assert moved != row.node
    cloud.until(lambda: cloud.server(row.uuid).node == moved)
    cloud.simulator.take_back(order)
    assert cloud.left() == ""
    assert cloud.server(row.uuid).vm_state == "active"
    # Nothing was made a second time.
    assert (
        len([vm for vm in cloud.simulator.state()["sim1"]["vms"] if vm["vmid"] == row.vmid]) == 1
    )


def test_the_command_that_an_evacuation_names_brings_the_server_back(cloud: World) -> None:
    row = cloud.built("unguarded")
    assert why_not(cloud, row.uuid) == f"Compute service of {row.host} is still in use."
    order = cloud.simulator.fault(action="node-down", node=row.node)
    named = cloud.until(lambda: _MOVE.search(why_not(cloud, row.uuid)))
    target = named[1]
    assert target != row.node
    assert named.groups() == (target, row.node, str(row.vmid), target)
    assert (cloud.server(row.uuid).host, cloud.open_operations()) == (row.host, [])
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        cluster.edit(cluster.vms[row.vmid]).node = target
    cloud.until(lambda: cloud.server(row.uuid).node == target)
    cloud.until(lambda: cloud.server(row.uuid).vm_state == "stopped")
    cloud.act(row.uuid, "start")
    cloud.until(lambda: cloud.server(row.uuid).vm_state == "active")
    assert machine(cloud, row.vmid)["node"] == target
    cloud.simulator.take_back(order)
    assert cloud.left() == ""
    assert cloud.faults(row.uuid) == []


def manage(cloud: World, row: Any, rule: str = "") -> None:
    """Put it under high availability; with a rule it may run on that node only."""
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        ha_resources.manage(cluster, row.vmid, state="started")
        if rule:
            options = {"nodes": rule, "strict": "1"}
            made = HaRule("here", "node-affinity", [f"vm:{row.vmid}"], 1, options)
            cluster.ha.rules["here"] = made


def evacuated(cloud: World, uuid: str) -> None:
    """Evacuate it as soon as its node is seen offline."""

    def begun() -> bool:
        try:
            cloud.client.evacuate_server(BOSS, uuid, None)
        except Invalid:
            return False
        return True

    cloud.until(begun)


def test_an_evacuation_waits_for_the_ha_manager(cloud: World) -> None:
    row = cloud.built("guarded")
    manage(cloud, row)
    order = cloud.simulator.fault(action="node-down", node=row.node)
    evacuated(cloud, row.uuid)
    cloud.until(lambda: not cloud.open_operations())
    now = cloud.server(row.uuid)
    assert (now.vm_state, now.task_state) == ("active", None)
    there = machine(cloud, row.vmid)
    assert (there["node"], there["status"]) == (now.node, "running")
    assert now.node != row.node
    [migration] = cloud.rows(sa.select(schema.migrations))
    assert (migration.status, migration.dest_host) == ("completed", now.host)
    cloud.simulator.take_back(order)
    assert cloud.left() == ""


def test_an_evacuation_that_the_ha_manager_can_t_carry_out_says_so(cloud: World) -> None:
    """No node is left for it: it ends at the deadline, and is followed once one is."""
    row = cloud.built("bound")
    manage(cloud, row, rule=row.node)
    order = cloud.simulator.fault(action="node-down", node=row.node)
    evacuated(cloud, row.uuid)
    cloud.until(lambda: any(one.detail["ha_state"] == "recovery" for one in looks(cloud)))
    past = sa.update(schema.operations).values(deadline=sa.func.datetime("now", "-1 minute"))
    with cloud.engine.begin() as connection:
        connection.execute(past)
    cloud.until(lambda: cloud.server(row.uuid).vm_state == "error")
    assert cloud.faults(row.uuid)[-1].message.endswith(f"last seen on {row.node}: recovery.")
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        cluster.ha.rules.clear()
    cloud.until(lambda: cloud.server(row.uuid).vm_state == "active")
    assert cloud.server(row.uuid).node == machine(cloud, row.vmid)["node"] != row.node
    cloud.simulator.take_back(order)
    assert cloud.left() == ""


def looks(cloud: World) -> list[Any]:
    """What was written down of the manager."""
    events = schema.operation_events
    return cloud.rows(sa.select(events).where(events.c.name == "conductor_await_recovery"))


def why_not(cloud: World, uuid: str) -> str:
    """Why an administrator's evacuation of a server is refused."""
    with pytest.raises(Invalid) as refused:
        cloud.client.evacuate_server(BOSS, uuid, None)
    return refused.value.message


#: tasks of a build: the template's creation, its clone; and whether there is HA
TASKS = (
    ("qmcreate", True),
    ("qmcreate", False),
    ("qmclone", True),
    ("qmclone", False),
)


@pytest.mark.long
@pytest.mark.parametrize(("kind", "high"), TASKS, ids=str)
def test_a_build_on_it_ends_and_nothing_is_left_once_it_is_back(
    cloud: World, kind: str, high: bool
) -> None:
    """The task dies with its node, half done: the server is ERROR, or built elsewhere."""
    if kind != "qmcreate":
        warm = cloud.built("warm")
        assert warm.vm_state == "active"
        cloud.delete(warm.uuid)
    cloud.simulator.engine.set_speed(1)
    cloud.create("caught")
    node = cloud.until(lambda: working(cloud, kind))
    order = cloud.simulator.fault(action="node-down", node=node, ha=high)
    cloud.simulator.engine.set_speed(SPEED)
    row = cloud.until(lambda: ended(cloud, "caught"))
    # What is under way there can't end before the node is back, or moved; the rest continues.
    assert cloud.built("meanwhile").vm_state == "active"
    cloud.simulator.take_back(order)
    cloud.helped(lambda: not cloud.open_operations())
    row = cloud.server(row.uuid)
    assert row.vm_state in ("active", "error")
    if row.vm_state == "active":
        assert machine(cloud, row.vmid)["status"] == "running"
    else:
        assert cloud.faults(row.uuid)[-1].message
    if kind == "qmcreate":
        rebuild(cloud, node)
    vms = cloud.simulator.state()["sim1"]["vms"]
    assert len([vm for vm in vms if row.uuid in vm["config"].get("description", "")]) <= 1


def working(cloud: World, kind: str) -> str | None:
    """The node where a task of that kind runs."""
    tasks = cloud.simulator.state()["sim1"]["tasks"]
    upids = [str(task["upid"]).split(":") for task in tasks]
    return next((parts[1] for parts in upids if parts[5] == kind), None)


def ended(cloud: World, name: str) -> Any:
    """The server's row once it is not being built any more."""
    row = cloud.named(name)
    return row if row is not None and row.vm_state != "building" else None


def rebuild(cloud: World, node: str) -> None:
    """Build there: the image is imported, and root removes the template that was never finished,
    as the step says."""
    (host,) = [row.host for row in cloud.rows(sa.select(schema.hosts)) if row.node == node]
    numbers = itertools.count(1)
    # Agent and scheduler must first see that the node is back.
    cloud.helped(lambda: cloud.built(f"again-{next(numbers)}", host=host).vm_state == "active")
    details = [row.detail or {} for row in cloud.rows(sa.select(schema.operation_events))]
    passed_over = [one["template_taken"] for one in details if "template_taken" in one]
    assert [text for text in passed_over if cloud.operator(text)]
    # The next one makes it again.
    assert cloud.built("last", host=host).vm_state == "active"
