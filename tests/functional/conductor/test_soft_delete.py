"""Deletes that can be taken back: what is kept, what counts, and when it is over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock
from common.errors import QuotaExceeded, ServerStateConflict
from common.messages.commands import Destroy, Power, PowerAction
from common.messages.reports import Category, Failure
from common.resources.states import PowerState
from conductor.endpoints.servers.servers import ServerEndpoint
from conductor.servers.reclaim import Reclaim
from conductor.store.quotas import quotas
from db import schema
from db.reads import quotas as seen_quotas
from db.reads.servers import servers as seen_servers
from tests.functional.conductor.harness import World

FORBIDDEN = Failure(Category.AUTHORIZATION, "Permission check failed (/vms/1, VM.PowerMgmt)")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, reclaim_instance_interval=600)
    made.conductor.runner.start()
    yield made
    made.close()


def endpoint(world: World) -> ServerEndpoint:
    conductor = world.conductor
    return ServerEndpoint(conductor.cloud, conductor.runner, lambda _: ())


def delete(world: World, uuid: str) -> int:
    return endpoint(world).act(world.ctxt, uuid, "delete", {"deferred": True})


def active(world: World) -> str:
    count = len(world.compute.sent)
    (uuid,) = world.create()
    world.answer(world.compute.wait_for(count + 1), ok=True, power_state=PowerState.RUNNING)
    world.until(uuid, "active")
    return uuid


def soft_deleted(world: World) -> str:
    uuid = active(world)
    count = len(world.compute.sent)
    delete(world, uuid)
    command = world.compute.wait_for(count + 1)
    assert isinstance(command, Power)
    assert command.action is PowerAction.STOP
    assert world.row(uuid).task_state == "soft-deleting"
    world.answer(command, ok=True, power_state=PowerState.SHUTDOWN)
    world.until(uuid, "soft-delete")
    return uuid


def used(world: World) -> tuple[int, int]:
    """Instances, as the conductor and as the API counts them."""
    with world.conductor.store.read() as connection:
        counted = quotas.usage(connection, "p")["instances"]
        return counted, seen_quotas.of_project(connection, "p").used["instances"]


def listed(world: World, *, deleted: bool | None) -> list[str]:
    with world.conductor.store.read() as connection:
        filters = seen_servers.Filters(deleted=deleted)
        return [one.uuid for one in seen_servers.list_servers(connection, filters)]


def age(world: World, seconds: float) -> None:
    """As if all operations had ended so long ago."""
    change = schema.operations.update().values(finished_at=clock.after(-seconds))
    world.conductor.store.run(lambda c: c.execute(change))


def reclaim(world: World) -> None:
    Reclaim(world.conductor.cloud, world.conductor.runner).look()


def test_it_keeps_all_but_the_quota_and_can_be_restored(world: World) -> None:
    uuid = soft_deleted(world)
    row = world.row(uuid)
    assert (row.deleted_at, row.host) == (None, "pve1")
    assert uuid in world.placement.claims
    assert used(world) == (0, 0)
    last = world.rows(schema.operations)[-1]
    assert (last.action, last.state) == ("soft-delete", "done")
    assert delete(world, uuid) == 0
    count = len(world.compute.sent)
    world.act(uuid, "restore")
    assert world.row(uuid).task_state == "restoring"
    assert used(world) == (1, 1)
    command: Any = world.compute.wait_for(count + 1)
    assert command.action is PowerAction.START
    world.answer(command, ok=True, power_state=PowerState.RUNNING)
    world.until(uuid, "active")
    assert used(world) == (1, 1)


def test_a_restore_that_fails_leaves_it_as_it_was(world: World) -> None:
    uuid = soft_deleted(world)
    count = len(world.compute.sent)
    world.act(uuid, "restore")
    command = world.compute.wait_for(count + 1)
    world.answer(command, ok=False, failure=FORBIDDEN, power_state=PowerState.SHUTDOWN)
    world.until(uuid, "soft-delete")
    assert used(world) == (0, 0)


def test_a_restore_needs_quota_and_a_soft_deleted_server(world: World) -> None:
    uuid = soft_deleted(world)
    world.conductor.store.run(lambda c: quotas.set_limits(c, "p", {"instances": 0}))
    with pytest.raises(QuotaExceeded, match="Quota exceeded for instances: Requested 1"):
        world.act(uuid, "restore")
    assert world.row(uuid).task_state is None
    world.conductor.store.run(lambda c: quotas.delete_limits(c, "p", ["instances"]))
    other = active(world)
    with pytest.raises(ServerStateConflict, match="Cannot 'restore' instance"):
        world.act(other, "restore")
    with pytest.raises(ServerStateConflict, match="while it is in vm_state soft-delete"):
        world.act(uuid, "start")


def test_a_server_that_never_ran_and_a_forced_delete_go_at_once(world: World) -> None:
    (building,) = world.create()
    world.compute.wait_for(1)
    delete(world, building)
    assert world.row(building).task_state == "deleting"
    assert isinstance(world.compute.wait_for(2), Destroy)
    uuid = soft_deleted(world)
    count = len(world.compute.sent)
    endpoint(world).act(world.ctxt, uuid, "delete", {})
    assert isinstance(world.compute.wait_for(count + 1), Destroy)


def test_it_is_reclaimed_once_it_is_old_enough(world: World) -> None:
    uuid, kept = soft_deleted(world), active(world)
    age(world, 300)
    reclaim(world)
    assert world.row(uuid).task_state is None
    age(world, 700)
    count = len(world.compute.sent)
    reclaim(world)
    command = world.compute.wait_for(count + 1)
    assert isinstance(command, Destroy)
    assert command.resource_id == uuid
    reclaim(world)
    assert len(world.compute.sent) == count + 1
    world.answer(command, ok=True, gone=True)
    world.until(uuid, "deleted")
    assert world.row(kept).vm_state == "active"
    with world.conductor.store.read() as connection:
        last = connection.execute(
            sa.select(schema.operations.c.action, schema.operations.c.user_id).order_by(
                schema.operations.c.id.desc()
            )
        ).first()
    assert last is not None
    assert tuple(last) == ("delete", "")


def test_it_is_listed_with_what_is_gone(world: World) -> None:
    uuid, other = soft_deleted(world), active(world)
    assert listed(world, deleted=False) == [other]
    assert listed(world, deleted=True) == [uuid]
    assert set(listed(world, deleted=None)) == {uuid, other}


def test_without_an_interval_a_delete_deletes(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.conductor.runner.start()
    try:
        uuid = active(world)
        delete(world, uuid)
        assert world.row(uuid).task_state == "deleting"
    finally:
        world.close()


@pytest.mark.parametrize("state", ["rescued", "resized", "shelved_offloaded"])
def test_one_that_can_not_be_restored_as_it_was_is_deleted(world: World, state: str) -> None:
    uuid = active(world)
    change = schema.servers.update().where(schema.servers.c.uuid == uuid)
    world.conductor.store.run(lambda c: c.execute(change.values(vm_state=state)))
    count = len(world.compute.sent)
    delete(world, uuid)
    world.answer(world.compute.wait_for(count + 1), ok=True, gone=True)
    world.until(uuid, "deleted")


def test_one_that_is_being_restored_is_not_deleted(world: World) -> None:
    uuid = soft_deleted(world)
    count = len(world.compute.sent)
    world.act(uuid, "restore")
    with pytest.raises(ServerStateConflict, match="in vm_state soft-delete"):
        delete(world, uuid)
    world.answer(world.compute.wait_for(count + 1), ok=True, power_state=PowerState.RUNNING)
    world.until(uuid, "active")


def test_saved_memory_is_kept_and_its_vm_needs_no_stop(world: World) -> None:
    uuid = active(world)
    count = len(world.compute.sent) + 1
    world.act(uuid, "suspend")
    world.answer(world.compute.wait_for(count), ok=True, power_state=PowerState.SUSPENDED)
    world.until(uuid, "suspended")
    world.silence()
    delete(world, uuid)
    world.until(uuid, "soft-delete")
    assert len(world.compute.sent) == count
    world.beat()
    world.act(uuid, "restore")
    command: Any = world.compute.wait_for(count + 1)
    assert command.action is PowerAction.RESUME
    world.answer(command, ok=True, power_state=PowerState.RUNNING)
    world.until(uuid, "active")
