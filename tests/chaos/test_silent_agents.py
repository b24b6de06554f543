"""An agent stands still at each step of a build: the build continues at another cluster's host.

Until the agent was allowed to start the VM; then that may run, and the build waits for the agent.
The agent continues in the end, and what it had made for a build that left it is removed.

An audit names an agent that stands still, and waits for an agent that is only slow.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from common.messages.tenures import worker_of
from common.resources.states import InternalAction
from common.rpc import SILENT_SECONDS
from db import schema
from tests.chaos.director import AFTER, BEFORE, MESSAGE, PROXMOX, Order, Step
from tests.chaos.stage import Plan, Stage, stage

pytestmark = [pytest.mark.timeout(2400), pytest.mark.sampled(2)]

CREATE, CONFIGURE = "POST /nodes/*/qemu/*/clone", "POST /nodes/*/qemu/*/config"
START = "POST /nodes/*/qemu/*/status/start"

#: step of a build, and when the agent stands still; whether the build leaves it
STEPS = {
    "not-begun": (Step(MESSAGE, "build"), BEFORE, True),
    "clone": (Step(PROXMOX, CREATE), BEFORE, True),
    "cloned": (Step(PROXMOX, CREATE), AFTER, True),
    "configure": (Step(PROXMOX, CONFIGURE), BEFORE, True),
    "configured": (Step(PROXMOX, CONFIGURE), AFTER, True),
    "asks-to-start": (Step(MESSAGE, "may_start"), BEFORE, True),
    "may-start": (Step(MESSAGE, "may_start"), AFTER, False),
    "start": (Step(PROXMOX, START), BEFORE, False),
    "started": (Step(PROXMOX, START), AFTER, False),
}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    plan = Plan(clusters=2, options={"conductor": {"build_timeout_seconds": "300"}})
    with stage(tmp_path_factory.mktemp("silent"), plan) as running:
        # Templates are there, so that each build has the same steps.
        hosts = [row.host for row in running.rows(sa.select(schema.hosts.c.host))]
        for number, host in enumerate(hosts):
            assert running.built(f"first-{number}", host=host).vm_state == "active"
        yield running


def worker(cloud: Stage, host: str) -> str:
    """The worker that carries a host's agent."""
    query = sa.select(schema.hosts.c.worker).where(schema.hosts.c.host == host)
    return worker_of(cloud.rows(query)[0].worker)


def vms_of(cloud: Stage, uuid: str) -> list[Any]:
    """The VMs that any cluster has of a server."""
    return [
        vm
        for cluster in cloud.simulator.clusters
        for vm in cluster.vms.values()
        if str(vm.config.get("smbios1", "")).startswith(f"uuid={uuid}")
        or f"server {uuid}" in str(vm.config.get("description", ""))
    ]


def removals(cloud: Stage, uuid: str) -> list[Any]:
    columns = schema.operations.c
    mine = (columns.resource_id == uuid) & (columns.action == InternalAction.REMOVE_LEFT)
    return cloud.rows(sa.select(schema.operations).where(mine))


@pytest.mark.parametrize("at", STEPS)
def test_a_build_leaves_an_agent_that_stands_still_unless_its_vm_may_run(
    cloud: Stage, at: str
) -> None:
    step, phase, leaves = STEPS[at]
    frozen: list[str] = []

    def stand_still(_: str) -> None:
        row = cloud.named(at)
        frozen.append(worker(cloud, row.host))
        cloud.pause(frozen[0])

    order = Order(step, phase, stand_still)
    cloud.director.arm(order)
    try:
        cloud.create(at)
        assert order.met.wait(60)
        cloud.until(lambda: frozen)
        first = cloud.named(at)
        if leaves:
            cloud.until(lambda: cloud.named(at).vm_state != "building")
            row = cloud.named(at)
            assert (row.vm_state, worker(cloud, row.host) != frozen[0]) == ("active", True)
            assert row.vmid != first.vmid or row.cluster != first.cluster
            assert [vm.status for vm in vms_of(cloud, row.uuid)].count("running") == 1
            assert [one.state in ("done", "failed") for one in removals(cloud, row.uuid)] == [
                False
            ]
        else:
            cloud.until(lambda: any("may run there" in str(o.message) for o in waiting(cloud)))
            row = cloud.named(at)
            assert (row.vm_state, row.host, row.vmid) == ("building", first.host, first.vmid)
    finally:
        cloud.director.disarm()
        for name in frozen:
            cloud.pause(name, paused=False)
    cloud.until(lambda: cloud.named(at).vm_state != "building")
    cloud.until(lambda: not cloud.open_operations())
    row = cloud.named(at)
    assert row.vm_state == "active", cloud.progress()
    [vm] = vms_of(cloud, row.uuid)
    assert (vm.vmid, vm.status) == (row.vmid, "running")
    assert {one.state for one in removals(cloud, row.uuid)} == ({"done"} if leaves else set())


def test_an_audit_names_an_agent_that_stands_still(cloud: Stage) -> None:
    silent = sorted(cloud.of_role("compute"))[0]
    query = sa.select(schema.hosts.c.cluster).where(schema.hosts.c.worker.like(f"{silent}@%"))
    [cluster] = {row.cluster for row in cloud.rows(query)}
    cloud.pause(silent)
    try:
        report = cloud.audited()
    finally:
        cloud.pause(silent, paused=False)
    [unseen] = report["unseen"]
    assert unseen.startswith(f"Cluster {cluster} can't be looked at: "), report
    assert (report["complete"], report["looked_at"]["clusters"]) == (False, 1)
    assert cloud.until(lambda: cloud.audited()["complete"])


def test_an_audit_waits_for_an_agent_that_is_only_slow(cloud: Stage) -> None:
    seconds = 0.7 * SILENT_SECONDS * cloud.plan.speed
    for path in ("/cluster/status$", "/cluster/replication$"):  # one after the other
        cloud.simulator.fault(action="slow", path=path, seconds=seconds, times=0)
    asked = time.monotonic()
    try:
        report = cloud.audited()
    finally:
        cloud.calm()
    assert time.monotonic() - asked > SILENT_SECONDS
    assert (report["complete"], report["looked_at"]["clusters"]) == (True, 2)


def waiting(cloud: Stage) -> list[Any]:
    return cloud.rows(sa.select(schema.operations).where(schema.operations.c.message.is_not(None)))
