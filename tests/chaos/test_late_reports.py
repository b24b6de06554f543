"""An agent dies after its write acted; what it would have said comes when nobody waits for it.

Real processes: the agent is killed by SIGKILL with the machine made, begins again, and the
attempt ends otherwise; the next one is under way when the first one's words come.
"""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from common import clock, rpc
from common.context import internal
from common.messages.reports import Built, Report, Step
from common.messages.topics import CONDUCTOR_EVENTS_TOPIC
from common.resources.states import PowerState, ResourceType
from db import schema
from tests.chaos import director
from tests.chaos.director import AFTER, PROXMOX, Order
from tests.chaos.stage import Stage

pytestmark = [pytest.mark.timeout(2400), pytest.mark.sampled(3)]

CONFIGURE = director.Step(PROXMOX, "POST /nodes/*/qemu/*/config")
FULL = ("unable to create image: No space left on device", 1)
BUSY = ("can't lock file '/var/lock/qemu-server/lock-1.conf' - got timeout", 4)


def operation(cloud: Stage, uuid: str) -> Any:
    mine = schema.operations.c.resource_id == uuid
    return cloud.rows(sa.select(schema.operations).where(mine))[0]


def late(row: Any, *, ok: bool) -> Report:
    """What the agent would have said of its first attempt."""
    now = clock.utcnow()
    step = Step("compute_start_vm", 5, now, now, "Success", detail={"power_state": "RUNNING"})
    outcome = Built(True, power_state=PowerState.RUNNING)
    if not ok:
        outcome = Built(False, gone=True)
    return Report(
        row.id,
        1,
        ResourceType.SERVER,
        row.resource_id,
        row.plan["target"]["host"],
        (step,),
        outcome,
    )


@pytest.mark.parametrize(
    ("failure", "ok"),
    [(FULL, True), (FULL, False), (BUSY, True)],
    ids=["ok-of-another-host", "gone-of-another-host", "ok-of-the-same"],
)
def test_a_report_of_an_older_attempt_decides_nothing(
    cloud: Stage, failure: tuple[str, int], ok: bool
) -> None:
    """``failure`` is what the process that continues the attempt meets, and how often."""
    text, times = failure
    name = f"late-{ok}-{times}".lower()
    held: list[int] = []

    def dies(_: str) -> None:
        fault = cloud.simulator.fault
        fault(action="fail", method="POST", path="/status/start$", text=text, times=times)
        held.append(fault(action="hold", method="POST", path="/(qemu|clone)$"))
        cloud.kill("compute-1")

    order = Order(CONFIGURE, AFTER, dies)
    cloud.director.arm(order)
    cloud.create(name)
    assert order.met.wait(60)
    uuid = cloud.named(name).uuid
    first = operation(cloud, uuid)
    assert first.attempt == 1
    cloud.until(lambda: held)
    cloud.until(lambda: operation(cloud, uuid).attempt == 2)
    cloud.until(lambda: cloud.simulator.await_strike(held[0], 0.1))
    second = operation(cloud, uuid)
    assert (second.attempt, second.plan["target"]["host"] == first.plan["target"]["host"]) == (
        2,
        failure is BUSY,
    )

    bus = rpc.Client(cloud.transport, CONDUCTOR_EVENTS_TOPIC)
    bus.cast(internal(), "report", reports=[late(first, ok=ok)])
    logged = {
        FULL: f"Host {first.plan['target']['host']} reports on server {uuid}, which is not on it",
        BUSY: f"A report on attempt 1 of operation {first.id} is late",
    }[failure]
    cloud.until(lambda: any(logged in cloud.log(name) for name in cloud.of_role("conductor")))
    assert operation(cloud, uuid).attempt == 2
    row = cloud.server(uuid)
    assert (row.vm_state, row.task_state, row.vmid) == (
        "building",
        "spawning",
        second.plan["target"]["vmid"],
    )
    events = cloud.rows(
        sa.select(schema.operation_events).where(
            schema.operation_events.c.operation_id == first.id,
            schema.operation_events.c.attempt == 1,
            schema.operation_events.c.name == "compute_start_vm",
        )
    )
    assert not [event for event in events if event.result == "Success"]

    cloud.simulator.take_back(held[0])
    cloud.until(lambda: cloud.server(uuid).vm_state != "building")
    row = cloud.server(uuid)
    assert (row.vm_state, row.vmid, row.host) == (
        "active",
        second.plan["target"]["vmid"],
        second.plan["target"]["host"],
    )
    cloud.settle()
    assert cloud.left() == "", "of the first attempt nothing is left"
