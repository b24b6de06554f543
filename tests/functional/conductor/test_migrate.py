"""Cold migration, and resize to another host: what is held, sent and recorded on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common import clock
from common.errors import Conflict, HostNotFound, Invalid, ServerStateConflict
from common.messages.commands import Grow, Move, Power, PowerAction, Shape
from common.messages.reports import Category, Failure
from common.resources import states
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.server_groups import NewServerGroup
from conductor.rpc.servers.servers import RequestedNetwork
from conductor.store.networks import networks
from conductor.store.servers import server_groups
from db import schema
from tests.functional.conductor.harness import World

SMALL = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
LARGER = FlavorSnapshot("2", "m1.larger", 4, 1024, 3)
LARGE = {"VCPU": 4, "MEMORY_MB": 1024, "DISK_GB": 3}
BROKEN = Failure(Category.AUTHORIZATION, "Permission check failed")
GONE = Failure(Category.VANISHED, "The server has no VM.")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, hosts=("pve1", "pve2", "pve3"))
    made.conductor.runner.start()
    yield made
    made.close()


class Agents:
    """Answer the commands in order, and remember them."""

    def __init__(self, world: World, uuid: str) -> None:
        self._world, self.uuid, self._seen = world, uuid, len(world.compute.sent)

    def next(self, kind: type, **outcome: Any) -> Any:
        self._seen += 1
        command = self._world.compute.wait_for(self._seen)
        assert isinstance(command, kind), command
        self._world.answer(command, **({"ok": True, "power_state": 1} | outcome))
        return command


def a_server(world: World, vm_state: str = "active", **changes: Any) -> Agents:
    (uuid,) = world.create(**changes)
    agents = Agents(world, uuid)
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "active")
    if vm_state == "stopped":
        world.act(uuid, "stop")
        world.answer(world.compute.wait_for(2), ok=True, power_state=4)
        world.until(uuid, "stopped")
    return Agents(world, agents.uuid)


def held(world: World) -> dict[str, tuple[str, dict[str, int]]]:
    """Consumer → host and amounts; the migration's is named so."""
    (row,) = world.rows(schema.migrations)
    found = {}
    for consumer in world.placement.claims:
        ((host, amounts),) = world.placement.allocations_of(consumer).by_provider.items()
        name = "migration" if consumer == row.uuid else "server"
        found[name] = (host.removeprefix("uuid-"), dict(amounts))
    return found


def migration(world: World) -> Any:
    (row,) = world.rows(schema.migrations)
    return row


def place(world: World, uuid: str) -> tuple[str, str, str]:
    row = world.row(uuid)
    return row.host, row.node, states.status(row.vm_state, row.task_state)


def moved(world: World, agents: Agents, was: str = "active") -> None:
    if was == "active":
        off = agents.next(Power, power_state=4)
        assert (off.action, off.placed.host) == (PowerAction.STOP, "pve1")
    move = agents.next(Move, node="pve2", power_state=4)
    assert (move.placed.host, move.target_node, move.live) == ("pve1", "pve2", False)
    assert move.config_drive is not None
    if was == "active":
        on = agents.next(Power)
        assert (on.action, on.placed.host) == (PowerAction.START, "pve2")
    world.until(agents.uuid, "resized")


@pytest.mark.parametrize("was", ["active", "stopped"])
@pytest.mark.parametrize("host", [None, "pve2"])
def test_migrate_and_confirm(world: World, was: str, host: str | None) -> None:
    agents = a_server(world, was)
    world.migrate(agents.uuid, host)
    moved(world, agents, was)
    assert world.scheduler.asked[-1].force_host == host
    assert place(world, agents.uuid) == ("pve2", "pve2", "VERIFY_RESIZE")
    assert held(world) == {"server": ("pve2", SMALL), "migration": ("pve1", SMALL)}
    row = migration(world)
    assert (row.type, row.status) == ("migration", "finished")
    assert (row.source_host, row.dest_host, row.dest_node) == ("pve1", "pve2", "pve2")
    world.end_resize(agents.uuid, "confirmResize")
    world.until(agents.uuid, was)
    assert held(world) == {"server": ("pve2", SMALL)}
    assert migration(world).status == "confirmed"


@pytest.mark.parametrize("was", ["active", "stopped"])
def test_a_reversion_goes_back(world: World, was: str) -> None:
    agents = a_server(world, was)
    world.migrate(agents.uuid)
    moved(world, agents, was)
    world.end_resize(agents.uuid, "revertResize")
    if was == "active":
        assert agents.next(Power, power_state=4).placed.host == "pve2"
    back = agents.next(Move, node="pve1")
    assert (back.placed.host, back.target_node) == ("pve2", "pve1")
    if was == "active":
        assert place(world, agents.uuid)[0] == "pve2"
        assert agents.next(Power).placed.host == "pve1"
    world.until(agents.uuid, was)
    assert place(world, agents.uuid)[:2] == ("pve1", "pve1")
    assert held(world) == {"server": ("pve1", SMALL)}
    assert migration(world).status == "reverted"


def test_a_drive_that_is_made_again_names_the_tagged_devices(world: World) -> None:
    subnet = networks.parse_subnet("vmbr0=10.0.0.0/24")
    world.conductor.store.run(lambda connection: networks.ensure_subnet(connection, subnet))
    network = next(str(row.id) for row in world.rows(schema.networks) if row.bridge == "vmbr0")
    wished = (RequestedNetwork(network, tag="front"), RequestedNetwork(network))
    agents = a_server(world, networks=wished, disk_tag="système")
    build = world.compute.wait_for(1)
    assert build.config_drive is not None
    devices = build.config_drive.meta_data["devices"]
    assert devices == [
        {
            **{"type": "nic", "bus": "none", "address": "none"},
            **{"mac": build.nics[0].mac, "tags": ["front"]},
        },
        {"type": "disk", "bus": "scsi", "address": "0:0:0:0", "tags": ["système"]},
    ]
    world.migrate(agents.uuid)
    agents.next(Power, power_state=4)
    move = agents.next(Move, node="pve2", power_state=4)
    assert move.config_drive is not None
    assert move.config_drive.meta_data["devices"] == devices


def test_a_reversion_that_fails_may_be_tried_again(world: World) -> None:
    agents = a_server(world)
    world.migrate(agents.uuid)
    moved(world, agents)
    world.end_resize(agents.uuid, "revertResize")
    agents.next(Power, power_state=4)
    agents.next(Move, ok=False, failure=BROKEN)
    again = agents.next(Move, node="pve2")
    assert (again.placed.host, again.target_node) == ("pve1", "pve2")
    assert agents.next(Power).placed.host == "pve2"
    world.until(agents.uuid, "resized")
    assert place(world, agents.uuid) == ("pve2", "pve2", "VERIFY_RESIZE")
    assert migration(world).status == "finished"
    assert held(world) == {"server": ("pve2", SMALL), "migration": ("pve1", SMALL)}
    world.end_resize(agents.uuid, "confirmResize")
    world.until(agents.uuid, "active")


def test_a_resize_that_has_no_room_here_goes_elsewhere(world: World) -> None:
    agents = a_server(world)
    world.scheduler.hosts.remove("pve1")
    world.resize(agents.uuid, LARGER)
    agents.next(Power, power_state=4)
    agents.next(Move, node="pve2")
    shape = agents.next(Shape, power_state=4)
    assert (shape.placed.host, shape.size.vcpus, shape.running) == ("pve2", 4, False)
    row = world.row(agents.uuid)
    assert (row.task_state, row.host) == ("resize_finish", "pve1")
    agents.next(Power)
    world.until(agents.uuid, "resized")
    assert place(world, agents.uuid) == ("pve2", "pve2", "VERIFY_RESIZE")
    assert held(world) == {"server": ("pve2", LARGE), "migration": ("pve1", SMALL)}
    world.end_resize(agents.uuid, "confirmResize")
    assert agents.next(Grow).placed.host == "pve2"
    world.until(agents.uuid, "active")
    assert held(world) == {"server": ("pve2", LARGE)}


def test_a_resize_elsewhere_is_reverted(world: World) -> None:
    agents = a_server(world)
    world.scheduler.hosts.remove("pve1")
    world.resize(agents.uuid, LARGER)
    for kind in (Power, Move, Shape, Power):
        agents.next(kind)
    world.until(agents.uuid, "resized")
    world.end_resize(agents.uuid, "revertResize")
    agents.next(Power)
    agents.next(Move)
    shape = agents.next(Shape)
    assert (shape.placed.host, shape.size.vcpus, shape.former.vcpus) == ("pve1", 1, 4)
    agents.next(Power)
    row = world.until(agents.uuid, "active")
    assert (row.host, row.flavor["id"], row.vcpus) == ("pve1", "1", 1)
    assert held(world) == {"server": ("pve1", SMALL)}


def test_without_another_host_it_stays(world: World) -> None:
    agents = a_server(world)
    world.scheduler.hosts[:] = ["pve1"]
    world.migrate(agents.uuid)
    world.until(agents.uuid, "active")
    assert held(world) == {"server": ("pve1", SMALL)}
    assert migration(world).status == "error"
    (fault,) = world.rows(schema.faults)
    words = "No valid host was found. No valid host found for cold migrate"
    assert (fault.category, fault.owner_message) == ("no_valid_host", words)
    assert "none left" in fault.message


@pytest.mark.parametrize("stage", ["move", "power_on"])
def test_what_can_t_be_done_is_undone(world: World, stage: str) -> None:
    agents = a_server(world)
    world.migrate(agents.uuid)
    agents.next(Power, power_state=4)
    if stage == "power_on":
        agents.next(Move, node="pve2")
        agents.next(Power, ok=False, failure=BROKEN)
        off = agents.next(Power)
        assert (off.action, off.placed.host) == (PowerAction.STOP, "pve2")
    else:
        agents.next(Move, ok=False, failure=BROKEN)
    back = agents.next(Move, node="pve1")
    assert (back.placed.host, back.target_node) == ("pve2", "pve1")
    assert held(world) == {"server": ("pve1", SMALL), "migration": ("pve2", SMALL)}
    on = agents.next(Power)
    assert (on.action, on.placed.host) == (PowerAction.START, "pve1")
    world.until(agents.uuid, "active")
    assert place(world, agents.uuid) == ("pve1", "pve1", "ACTIVE")
    assert held(world) == {"server": ("pve1", SMALL)}
    assert migration(world).status == "error"


def test_without_its_vm_the_way_back_has_an_end(world: World) -> None:
    """Somebody removed the VM: nothing can be put back, however often it is tried."""
    agents = a_server(world)
    world.migrate(agents.uuid)
    agents.next(Power, power_state=4)
    for command in (Move, Move, Power):
        agents.next(command, ok=False, failure=GONE)
    world.until(agents.uuid, "active")
    assert held(world) == {"server": ("pve1", SMALL)}
    assert migration(world).status == "error"


@pytest.mark.parametrize("settled", [False, True])
def test_a_delete_gives_back_both_sides(world: World, settled: bool) -> None:
    new = NewServerGroup("p", "u", "g", "anti-affinity", {})
    group = world.conductor.store.run(lambda c: server_groups.create(c, new))
    agents = a_server(world, server_group=group)
    world.migrate(agents.uuid)
    if settled:
        moved(world, agents)
    else:
        world.compute.wait_for(2)
    assert len(world.rows(schema.server_group_places)) == 2
    world.act(agents.uuid, "delete")
    assert migration(world).status == ("confirmed" if settled else "error")
    world.answer(world.compute.wait_for(5 if settled else 3), ok=True, gone=True)
    world.until(agents.uuid, "deleted")
    assert not world.placement.claims
    assert not world.rows(schema.server_group_places)


def test_a_delete_from_error_gives_back_both_sides(world: World) -> None:
    agents = a_server(world)
    world.migrate(agents.uuid)
    moved(world, agents)
    failed = schema.servers.update().values(vm_state="error")
    world.conductor.store.run(lambda c: c.execute(failed))
    world.act(agents.uuid, "delete")
    world.answer(world.compute.wait_for(5), ok=True, gone=True)
    world.until(agents.uuid, "deleted")
    assert not world.placement.claims
    assert migration(world).status == "confirmed"


def test_a_delete_that_takes_over_an_overdue_one_gives_back_both_sides(world: World) -> None:
    """The overdue one has ended the migration, and not yet released what that held."""
    agents = a_server(world)
    world.migrate(agents.uuid)
    moved(world, agents)
    world.act(agents.uuid, "delete")
    late = schema.operations.update().values(deadline=clock.after(-1))
    world.conductor.store.run(lambda c: c.execute(late))
    world.answer(world.compute.wait_for(5), ok=False, failure=BROKEN)
    world.until(agents.uuid, "error")
    world.act(agents.uuid, "delete")
    world.answer(world.compute.wait_for(6), ok=True, gone=True)
    world.until(agents.uuid, "deleted")
    assert not world.placement.claims


@pytest.mark.parametrize("end", ["confirmResize", "revertResize"])
def test_the_place_in_a_strict_group(world: World, end: str) -> None:
    new = NewServerGroup("p", "u", "g", "anti-affinity", {})
    group = world.conductor.store.run(lambda c: server_groups.create(c, new))
    agents = a_server(world, server_group=group)
    world.migrate(agents.uuid)
    moved(world, agents)
    world.end_resize(agents.uuid, end)
    if end == "revertResize":
        for kind in (Power, Move, Power):
            agents.next(kind)
    row = world.until(agents.uuid, "active")
    (there,) = world.rows(schema.server_group_places)
    assert (there.server_uuid, there.host) == (agents.uuid, row.host)


def test_what_is_refused_at_once(world: World) -> None:
    uuid = a_server(world).uuid
    with pytest.raises(Invalid, match="Cannot migrate to the host where the server exists"):
        world.migrate(uuid, "pve1")
    with pytest.raises(HostNotFound, match="Compute host pve9 could not be found"):
        world.migrate(uuid, "pve9")
    world.act(uuid, "stop")
    with pytest.raises(ServerStateConflict, match="Cannot 'migrate' instance"):
        world.migrate(uuid)
    world.answer(world.compute.wait_for(2), ok=True, power_state=4)
    world.until(uuid, "stopped")
    world.silence()
    with pytest.raises(Conflict, match="Service is unavailable at this time"):
        world.migrate(uuid)
    assert not world.rows(schema.migrations)
