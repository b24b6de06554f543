"""Power actions that fail: the server is what is seen of its VM, and what passes is waited for."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from common import clock
from common.errors import Conflict, ServerStateConflict
from common.failures import BACKOFF_SECONDS, JITTER, Verdict
from common.messages.facts import Inspection
from common.messages.reports import Category, Failure
from common.resources.states import PowerState
from conductor.servers.power import suspendable
from db import schema
from tests.functional.conductor.harness import World

FORBIDDEN = Failure(Category.AUTHORIZATION, "Permission check failed (/vms/1, VM.PowerMgmt)")
LOCKED = Failure(Category.LOCK, "VM is locked (backup)", verdict=Verdict.WAIT)
SILENT = Failure(Category.NODE_UNHEALTHY, "Connection refused", verdict=Verdict.AWAIT_HOST)
ACTIONS = {
    **{"stop": "active", "start": "stopped", "reboot": "active", "reboot-hard": "active"},
    **{"pause": "active", "unpause": "paused", "suspend": "active", "resume": "suspended"},
}


def a_server(world: World, vm_state: str) -> str:
    """A server that was built, and is in that state."""
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "active")
    if vm_state != "active":
        world.conductor.store.run(
            lambda c: c.execute(schema.servers.update().values(vm_state=vm_state))
        )
    return uuid


def operation(world: World) -> Any:
    return world.rows(schema.operations)[-1]


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(
    ("seen", "becomes"),
    [
        (PowerState.RUNNING, "active"),
        (PowerState.SHUTDOWN, "stopped"),
        (PowerState.PAUSED, "paused"),
        (PowerState.SUSPENDED, "suspended"),
    ],
)
def test_a_server_whose_action_failed_is_what_is_seen(
    world: World, action: str, seen: PowerState, becomes: str
) -> None:
    uuid = a_server(world, ACTIONS[action])
    world.act(uuid, action)
    world.answer(world.compute.wait_for(2), ok=False, failure=FORBIDDEN, power_state=seen)
    row = world.until(uuid, becomes)
    assert row.power_state == seen
    assert operation(world).state == "failed"
    (fault,) = world.rows(schema.faults)
    assert (fault.operation_id, fault.category) == (operation(world).id, "authorization")
    how = {"reboot": "reboot --hard", "reboot-hard": "reboot --hard"}.get(action, action)
    assert fault.remedy == f"micronova doctor --fix-lines; openstack server {how} {uuid}"


@pytest.mark.parametrize("action", ACTIONS)
def test_unseen_it_is_what_it_was(world: World, action: str) -> None:
    uuid = a_server(world, ACTIONS[action])
    world.act(uuid, action)
    world.answer(world.compute.wait_for(2), ok=False, failure=FORBIDDEN)
    world.until(uuid, ACTIONS[action])
    assert operation(world).state == "failed"


def test_an_action_that_fails_leads_out_of_error_where_the_vm_is_well(world: World) -> None:
    uuid = a_server(world, "error")
    world.act(uuid, "reboot-hard")
    world.answer(world.compute.wait_for(2), ok=False, failure=FORBIDDEN, power_state=1)
    world.until(uuid, "active")
    # And so does an action that succeeds.
    world.conductor.store.run(
        lambda c: c.execute(schema.servers.update().values(vm_state="error"))
    )
    world.act(uuid, "stop")
    world.answer(world.compute.wait_for(3), ok=True, power_state=4)
    world.until(uuid, "stopped")


@pytest.mark.parametrize("failure", [LOCKED, SILENT], ids=["lock", "silence"])
@pytest.mark.parametrize("action", ["stop", "reboot-hard"])
def test_what_passes_is_waited_for(world: World, action: str, failure: Failure) -> None:
    uuid = a_server(world, "active")
    world.act(uuid, action)
    before = clock.utcnow()
    world.answer(world.compute.wait_for(2), ok=False, failure=failure, power_state=1)
    world.until_faults(1)
    waiting = operation(world)
    # The pause is written down: a restart doesn't begin it again.
    pause = (waiting.not_before - before).total_seconds()
    first = BACKOFF_SECONDS[0]
    assert first * (1 - JITTER) <= pause <= first * (1 + JITTER) + 5
    assert (waiting.state, waiting.attempt, waiting.message) == ("queued", 2, failure.message)
    assert world.row(uuid).vm_state == "active"
    world.make_due()
    world.answer(world.compute.wait_for(3), ok=True, power_state=4 if action == "stop" else 1)
    world.until(uuid, "stopped" if action == "stop" else "active")


def test_waiting_ends_at_the_deadline_and_says_what_for(world: World) -> None:
    uuid = a_server(world, "active")
    world.act(uuid, "reboot-hard")
    soon = clock.utcnow() + datetime.timedelta(seconds=3)
    world.conductor.store.run(
        lambda c: c.execute(
            schema.operations.update()
            .where(schema.operations.c.action == "reboot-hard")
            .values(deadline=soon)
        )
    )
    world.answer(world.compute.wait_for(2), ok=False, failure=LOCKED, power_state=1)
    world.until_faults(1)
    assert operation(world).not_before <= soon + datetime.timedelta(seconds=1)
    world.until(uuid, "active")
    assert "It waited: VM is locked (backup)" in operation(world).message


def test_a_lock_is_waited_for_so_often_and_not_more_often(world: World) -> None:
    uuid = a_server(world, "active")
    world.act(uuid, "reboot-hard")
    for count in range(6):
        world.answer(world.compute.wait_for(2 + count), ok=False, failure=LOCKED, power_state=1)
        world.until_faults(count + 1)
        world.make_due()
    world.until(uuid, "active")
    assert operation(world).state == "failed"


def test_what_can_not_be_suspended_is_refused_before_anything_begins(world: World) -> None:
    uuid = a_server(world, "active")
    vmid = world.row(uuid).vmid
    why = "It has a PCI device, whose state can't be saved."
    world.compute.vms[vmid] = Inspection(vmid, True, ours=True, unsuspendable=why)
    with pytest.raises(Conflict, match=f"Instance {uuid} cannot be suspended: {why}"):
        suspendable.require(world.conductor.cloud, world.ctxt, uuid)
    # Somebody else's VM says nothing, nor does an agent that doesn't answer.
    world.compute.vms[vmid] = Inspection(vmid, True, ours=False, unsuspendable=why)
    suspendable.require(world.conductor.cloud, world.ctxt, uuid)
    world.compute.deaf = True
    suspendable.require(world.conductor.cloud, world.ctxt, uuid)
    world.conductor.store.run(
        lambda c: c.execute(schema.servers.update().values(vm_state="paused"))
    )
    with pytest.raises(ServerStateConflict):
        suspendable.require(world.conductor.cloud, world.ctxt, uuid)
