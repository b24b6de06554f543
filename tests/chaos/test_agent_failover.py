"""Two workers carry one cluster's agents in turn: one is active, the other takes over.

Real processes on PostgreSQL, RabbitMQ and the simulator. Whatever becomes of the active one while
servers are built, each server is ACTIVE in the end and has one VM.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock
from common.messages.tenures import worker_of
from db import schema
from tests.chaos.stage import Plan, Stage, stage

pytestmark = [pytest.mark.timeout(2400), pytest.mark.sampled(2)]

COUNT = 6
#: longer than the lease, which is six seconds
FROZEN_SECONDS = 20
#: until the other worker has taken over: the lease, a sixth of it, and some time to do it
TAKEOVER_SECONDS = 30
CALLS = {"clone": "/(clone|qemu)$", "configure": r"/qemu/\d+/config$", "start": "/status/start$"}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("failover"), Plan(workers=2)) as running:
        yield running


def active(cloud: Stage) -> str:
    """The one worker with a lease that lasts; empty: none has."""
    leases = schema.agent_leases
    rows = cloud.rows(sa.select(leases.c.worker).where(leases.c.expires_at > clock.utcnow()))
    assert len(rows) <= 1
    return worker_of(rows[0].worker) if rows else ""


def other(cloud: Stage, name: str) -> str:
    return next(one for one in cloud.of_role("compute") if one != name)


def under_way(cloud: Stage, name: str, call: str) -> int:
    """Have servers built, and return once the first one is at that call, which is held."""
    order: int = cloud.simulator.fault(action="hold", method="POST", path=call)
    cloud.create(name, count=COUNT)
    cloud.simulator.await_strike(order, 60)
    return order


def all_active(cloud: Stage, name: str) -> list[Any]:
    """The servers of a request, once none is being built; each has its one VM."""

    def built() -> list[Any] | None:
        mine = [row for row in cloud.alive() if row.name.startswith(name)]
        ended = all(row.vm_state != "building" for row in mine)
        return mine if len(mine) == COUNT and ended else None

    mine: list[Any] = cloud.until(built)
    faults = [(one.category, one.message) for row in mine for one in cloud.faults(row.uuid)]
    assert {row.vm_state for row in mine} == {"active"}, faults
    return mine


def require_one_vm_each(cloud: Stage) -> None:
    """Nobody made a second VM, and none of a server is lost."""
    servers = {row.uuid: row.vmid for row in cloud.alive()}
    vms = cloud.simulator.cluster().vms.values()
    there = {
        vm.vmid: str(vm.config.get("smbios1", "")).removeprefix("uuid=")
        for vm in vms
        if not vm.config.get("template") and "smbios1" in vm.config
    }
    made = {vmid: uuid for vmid, uuid in there.items() if uuid in servers}
    assert made == {vmid: uuid for uuid, vmid in servers.items()}
    assert {vm.status for vm in vms if vm.vmid in made} == {"running"}


@pytest.mark.parametrize("at", CALLS)
def test_the_death_of_the_active_worker_costs_no_server(cloud: Stage, at: str) -> None:
    name = f"killed-{at}"
    first = cloud.until(lambda: active(cloud))
    order = under_way(cloud, name, CALLS[at])
    cloud.stop(first, signal.SIGKILL)
    began = time.monotonic()
    cloud.simulator.take_back(order)
    second = other(cloud, first)
    cloud.until(lambda: active(cloud) == second, TAKEOVER_SECONDS)
    taken = time.monotonic() - began
    all_active(cloud, name)
    print(
        f"killed at {at}: taken over after {taken:.1f} s, "
        f"{COUNT} servers active after {time.monotonic() - began:.1f} s"
    )
    cloud.start(first)
    cloud.until(lambda: not cloud.open_operations())
    require_one_vm_each(cloud)
    assert active(cloud) == second


@pytest.mark.parametrize("at", CALLS)
def test_a_worker_that_stood_still_changes_nothing_when_it_goes_on(cloud: Stage, at: str) -> None:
    name = f"frozen-{at}"
    first = cloud.until(lambda: active(cloud))
    order = under_way(cloud, name, CALLS[at])
    cloud.pause(first)
    try:
        cloud.simulator.take_back(order)
        cloud.until(lambda: active(cloud) == other(cloud, first), TAKEOVER_SECONDS)
        all_active(cloud, name)
        require_one_vm_each(cloud)
        threading.Event().wait(FROZEN_SECONDS)
    finally:
        cloud.pause(first, paused=False)
    # It learns that it carries nothing, and stands by.
    cloud.until(lambda: "carries" in cloud.log(first) and "no longer" in cloud.log(first))
    cloud.until(lambda: not cloud.open_operations())
    require_one_vm_each(cloud)
    assert active(cloud) == other(cloud, first)


def test_of_two_that_start_at_once_one_is_active(cloud: Stage) -> None:
    workers = cloud.of_role("compute")
    for name in workers:
        cloud.stop(name)
    starts = [threading.Thread(target=cloud.start, args=(name,)) for name in workers]
    for one in starts:
        one.start()
    for one in starts:
        one.join()
    first = cloud.until(lambda: active(cloud))
    cloud.until(lambda: "Standing by" in cloud.log(other(cloud, first)))
    cloud.create("both", count=COUNT)
    all_active(cloud, "both")
    require_one_vm_each(cloud)


def test_a_worker_that_stops_in_order_is_followed_at_once(cloud: Stage) -> None:
    first = cloud.until(lambda: active(cloud))
    cloud.create("stopped", count=COUNT)
    cloud.stop(first)
    cloud.until(lambda: active(cloud) == other(cloud, first), 10)
    all_active(cloud, "stopped")
    cloud.start(first)
    require_one_vm_each(cloud)


@pytest.mark.parametrize("what", ["conductors", "broker"])
def test_what_comes_back_finds_the_worker_active(cloud: Stage, what: str) -> None:
    first = cloud.until(lambda: active(cloud))
    order = under_way(cloud, what, CALLS["start"])
    if what == "broker":
        cloud.restart_broker(3.0)
    else:
        cloud.kill(*cloud.of_role("conductor"))
    cloud.simulator.take_back(order)
    all_active(cloud, what)
    require_one_vm_each(cloud)
    assert cloud.until(lambda: active(cloud)) in (first, other(cloud, first))
