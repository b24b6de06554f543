"""Destinations of moves: what is reserved for a migration beside its server, and given back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.messages.scheduling import Decision
from common.resources.migrations import MigrationStatus, MigrationType
from conductor.audit.differences import differences
from conductor.audit.gather import Gatherer
from conductor.engine import start
from conductor.engine.stages import Task
from conductor.rpc.servers.server_groups import NewServerGroup
from conductor.servers.move.destination import Chosen, Destinations, Wanted
from conductor.store.servers import migrations, server_groups, servers
from conductor.store.transactions import Transaction
from conductor.sync import claims
from db import schema
from tests.functional.conductor.harness import BOOKS, IMAGE, World

SMALL = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
FLAVOR = {"vcpus": 1, "memory_mib": 512, "disk_gib": 1}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, hosts=("pve1", "pve2", "pve3"))
    made.conductor.runner.start()
    yield made
    made.close()


def a_server(world: World, **changes: Any) -> str:
    (uuid,) = world.create(**changes)
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "active")
    return uuid


def a_group(world: World, policy: str) -> str:
    new = NewServerGroup("p", "u", "g", policy, {})
    return world.conductor.store.run(lambda c: server_groups.create(c, new))


class Moving:
    """A migration of a server, and the operation that decides where it moves."""

    def __init__(self, world: World, uuid: str) -> None:
        cloud = world.conductor.cloud
        self._world, self.destinations = world, Destinations(cloud)

        def work(connection: Transaction) -> tuple[Task, migrations.New]:
            server = servers.alive(connection, uuid, None)
            kind = MigrationType.MIGRATION
            row = migrations.insert(connection, "u", server, server.flavor, kind=kind)
            operation = start.begin(connection, cloud, world.ctxt, server, "delete")
            return Task(operation, server), row

        self.task, self.row = cloud.store.run(work)

    def find(self, **wanted: Any) -> Chosen | Decision:
        def commit(connection: Transaction, chosen: Chosen) -> Chosen:
            migrations.set_status(
                connection,
                self.row.id,
                MigrationStatus.MIGRATING,
                self.task.operation,
                dest_host=chosen.place.host,
            )
            return chosen

        asked = Wanted(self.row.uuid, FLAVOR, **wanted)
        return self.destinations.find(self.task, asked, commit)

    def end(self, status: MigrationStatus) -> None:
        operation = self.task.operation
        self._world.conductor.store.run(
            lambda c: migrations.set_status(c, self.row.id, status, operation)
        )
        self._world.conductor.store.run(
            lambda c: c.execute(schema.operations.update().values(state="done"))
        )


def kinds(world: World) -> set[str]:
    found = differences(Gatherer(world.conductor.cloud).look())
    return {one.kind for one in found} & (
        BOOKS | {"migration_allocation_left", "migration_allocation_differs"}
    )


def places(world: World) -> dict[str, str]:
    return {row.server_uuid: row.host for row in world.rows(schema.server_group_places)}


def test_a_cd_on_storage_of_the_hosts_own_must_be_on_the_other_too(world: World) -> None:
    uuid = a_server(world)
    for volid, wanted in ((f"shared:iso/{IMAGE}", None), (f"local:iso/{IMAGE}", IMAGE)):
        values = {"disk_format": "iso", "locations": {"sim1": volid}}
        change = schema.images.update().values(**values)
        world.conductor.store.run(lambda c, change=change: c.execute(change))
        moving = Moving(world, uuid)
        moving.find()
        assert world.scheduler.asked[-1].image_id == wanted
        moving.end(MigrationStatus.ERROR)
        moving.destinations.release(moving.row.uuid)


def test_the_migration_holds_another_host(world: World) -> None:
    uuid = a_server(world)
    moving = Moving(world, uuid)
    chosen = moving.find()
    assert isinstance(chosen, Chosen)
    assert (chosen.place.host, chosen.place.vmid) == ("pve2", world.row(uuid).vmid)
    request = world.scheduler.asked[-1]
    assert (request.cluster, request.ignore_hosts) == ("sim1", ("pve1",))
    assert request.image_id is None
    assert world.placement.claims == {uuid: "pve1", moving.row.uuid: "pve2"}
    # As after a crash: the claim of the earlier decision is not in the way.
    assert isinstance(moving.find(host="pve3"), Chosen)
    moving.end(MigrationStatus.ERROR)
    assert kinds(world) == {"migration_allocation_left"}
    moving.destinations.release(moving.row.uuid)
    assert kinds(world) == set()


def test_what_a_server_has_no_host_for_is_decided(world: World) -> None:
    uuid = a_server(world)
    world.scheduler.hosts[:] = ["pve1"]
    moving = Moving(world, uuid)
    decision = moving.find()
    assert isinstance(decision, Decision)
    assert decision.host is None
    assert world.placement.claims == {uuid: "pve1"}
    moving.end(MigrationStatus.ERROR)


def test_both_exchange_what_they_hold(world: World) -> None:
    uuid = a_server(world)
    moving = Moving(world, uuid)
    moving.find()
    there, here = {"uuid-pve2": SMALL}, {"uuid-pve1": SMALL}
    cloud = world.conductor.cloud
    for mine, held in ((there, here), (there, here), (here, {})):
        assert claims.hold_both(cloud.placement, moving.task.server, mine, moving.row.uuid, held)
        assert world.placement.allocations_of(uuid).by_provider == mine
        assert world.placement.allocations_of(moving.row.uuid).by_provider == held
    moving.end(MigrationStatus.REVERTED)


def test_a_claim_that_is_known_is_read_only_in_doubt(world: World) -> None:
    uuid = a_server(world)
    moving = Moving(world, uuid)
    moving.find()
    placement, holder = world.placement, moving.row.uuid
    there, here = {"uuid-pve2": SMALL}, {"uuid-pve1": SMALL}

    def read_for(mine: Any, held: Any) -> list[str]:
        placement.read.clear()
        cloud = world.conductor.cloud
        server = moving.task.server
        assert claims.hold_both(cloud.placement, server, mine, holder, held, claimed=True)
        found = list(placement.read)
        assert placement.allocations_of(uuid).by_provider == mine
        assert placement.allocations_of(holder).by_provider == held
        return found

    assert read_for(there, here) == [uuid]
    # As after a crash: nothing is left to do.
    assert read_for(there, here) == [uuid, holder]
    # Something was written for it since.
    assert read_for(here, {}) == [uuid, uuid, holder]
    # It has nothing any more.
    for mine in (there, here):
        assert read_for(mine, {}) == [uuid, uuid, holder]
    moving.end(MigrationStatus.REVERTED)


@pytest.mark.parametrize("policy", ["affinity", "anti-affinity"])
def test_the_place_in_a_strict_group(world: World, policy: str) -> None:
    uuid = a_server(world, server_group=a_group(world, policy))
    moving = Moving(world, uuid)
    assert isinstance(moving.find(), Chosen)
    assert places(world) == {uuid: "pve1", moving.row.uuid: "pve2"}
    store, server = world.conductor.store, moving.task.server
    store.run(lambda c: server_groups.drop(c, server, moving.row.uuid))
    assert places(world) == {uuid: "pve1"}
    assert isinstance(moving.find(), Chosen)
    for _ in range(2):
        store.run(lambda c: server_groups.move_place(c, server, moving.row.uuid))
        assert places(world) == {uuid: "pve2"}
    anchors = [row.host for row in world.rows(schema.server_group_anchors)]
    assert anchors == (["pve2"] if policy == "affinity" else [])
    world.placement.release(moving.row.uuid)
    moving.end(MigrationStatus.ERROR)


def test_a_host_that_its_group_lost_is_left_out(world: World) -> None:
    group = a_group(world, "anti-affinity")
    uuid = a_server(world, server_group=group)
    moving = Moving(world, uuid)
    row = {"server_uuid": "x", "group_uuid": group, "host": "pve2", "slot": 0}
    world.conductor.store.run(
        lambda c: c.execute(schema.server_group_places.insert().values(**row))
    )
    chosen = moving.find()
    assert isinstance(chosen, Chosen)
    assert chosen.place.host == "pve3"
    assert world.placement.claims == {uuid: "pve1", moving.row.uuid: "pve3"}
    assert [one["host"] for one in chosen.decision.claims] == ["pve2"]
    moving.destinations.release(moving.row.uuid)
    moving.end(MigrationStatus.ERROR)
    world.leaves = {"group_place_without_server"}
    assert places(world).keys() == {uuid, moving.row.uuid, "x"}
