"""The broker itself ends and starts again in the middle of builds and destroys.

A cut connection leaves every queue as it was. A broker that was stopped has no connection,
no queue that was meant to go with one, and nothing that was not written down.
"""

from __future__ import annotations

import os

import pytest

from tests.chaos.stage import Stage

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(2400), pytest.mark.long]

SERVERS = 6


def warm(cloud: Stage) -> str:
    """Have something built before anything breaks; a name for what comes then."""
    name = f"run-{os.urandom(3).hex()}"
    assert cloud.built(name).vm_state == "active"
    return f"{name}-more"


def rested(cloud: Stage) -> bool:
    """Nothing is under way."""
    busy = [row for row in cloud.alive() if row.task_state or row.vm_state == "building"]
    return not busy and not cloud.open_operations()


@pytest.mark.parametrize("path", ["/clone$", "/status/start$"])
def test_builds_go_on_after_the_broker_was_restarted(cloud: Stage, path: str) -> None:
    name = warm(cloud)
    order = cloud.simulator.fault(action="hold", method="POST", path=path)
    cloud.create(name, count=SERVERS)
    assert cloud.simulator.await_strike(order, 60)
    cloud.restart_broker()
    cloud.simulator.take_back(order)
    cloud.until(lambda: rested(cloud))
    cloud.settle()
    failed = [row for row in cloud.alive() if row.vm_state != "active"]
    assert [cloud.faults(row.uuid) for row in failed] == []
    assert len(cloud.alive()) == SERVERS + 1
    assert cloud.clear_away() == ""


def test_what_is_asked_while_the_broker_is_away_is_received_or_refused(cloud: Stage) -> None:
    name = warm(cloud)
    cloud.restart_broker(seconds=3)
    for number in range(SERVERS):
        cloud.create(f"{name}-{number}")
    cloud.settle()
    cloud.until(lambda: rested(cloud))
    assert {row.vm_state for row in cloud.alive()} <= {"active"}
    assert cloud.clear_away() == ""


def test_destroys_go_on_after_the_broker_was_restarted(cloud: Stage) -> None:
    cloud.create(warm(cloud), count=SERVERS)
    cloud.until(lambda: len(cloud.alive()) == SERVERS + 1 and rested(cloud))
    order = cloud.simulator.fault(action="hold", method="DELETE", path=r"/qemu/\d+$")
    for row in cloud.alive():
        cloud.act(row.uuid, "delete")
    assert cloud.simulator.await_strike(order, 60)
    cloud.restart_broker()
    cloud.simulator.take_back(order)
    cloud.until(lambda: rested(cloud))
    cloud.settle()
    assert cloud.clear_away() == ""
