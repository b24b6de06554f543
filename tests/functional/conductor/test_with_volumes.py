"""What servers that have volumes can and can't do: moves, resizes, shelving."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.context import RequestContext
from common.errors import Conflict, Invalid
from common.messages.commands import Build, Move, PlugVolume, Power, PowerAction, Shape
from common.messages.reports import Category, Failure
from common.messages.scheduling import VolumeNeed
from common.resources.states import PowerState
from conductor.endpoints.servers import request_specs
from conductor.plans import BulkPlan, Place
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.servers.bulk import looking
from conductor.servers.disks import begin_unshelve
from conductor.servers.move import begin_evacuation, begin_live_migration
from conductor.store.servers import host_assignments
from db import schema
from tests.functional.conductor.harness import World
from tests.functional.conductor.test_volumes import DATA, LOCAL, Site
from tests.functional.waiting import eventually

ADMIN = RequestContext(user_id="boss", project_id="admin", roles=["admin"], is_admin=True)
LARGER = FlavorSnapshot("2", "m1.larger", 2, 1024, 1)
FULL = Failure(Category.STORAGE_FULL, "It is full.", host="pve1", verdict="fatal")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    world = World(tmp_path, hosts=("pve1", "pve2", "pve3"))
    world.storages += [DATA, LOCAL]
    world.beat()
    world.conductor.cloud.conf.set_override("default_type", None, group="volumes")
    world.conductor.runner.start()
    yield Site(world)
    world.close()


@pytest.fixture
def server(site: Site) -> str:
    [uuid] = site.world.create()
    site.world.answer(site.last(Build, uuid), ok=True, power_state=PowerState.RUNNING)
    site.world.until(uuid, "active")
    return uuid


def change(site: Site, table: Any, column: str, key: str, **values: Any) -> None:
    changed = table.update().where(table.c[column] == key).values(**values)
    site.world.conductor.store.run(lambda c: c.execute(changed))


def on_own_storage(site: Site, volume_id: str, node: str) -> None:
    values = {"storage": "own", "shared": False, "node": node, "host": node}
    change(site, schema.volumes, "id", volume_id, **values)


def loses(site: Site, host: str, storage: str) -> None:
    """A storage is limited to other nodes."""
    (row,) = [one for one in site.world.rows(schema.hosts) if one.host == host]
    kept = [one for one in row.facts["storages"] if one["name"] != storage]
    change(site, schema.hosts, "host", host, facts={**row.facts, "storages": kept})


def shared(site: Site, server: str) -> str:
    """A volume on a shared storage that the server has."""
    volume_id = site.made()
    site.attached(server, volume_id)
    return volume_id


def pinned(site: Site, server: str) -> str:
    """A volume on the own storage of the server's node that the server has."""
    volume_id = site.made()
    on_own_storage(site, volume_id, "pve1")
    site.attached(server, volume_id)
    return volume_id


def live(site: Site, server: str, host: str | None = None) -> Any:
    cloud = site.world.conductor.cloud
    operation = begin_live_migration.accept(cloud, site.ctxt, server, host, None)
    site.world.conductor.runner.submit(operation)
    return operation


def shelved(site: Site, server: str, power_state: int = PowerState.SHUTDOWN) -> None:
    site.world.act(server, "shelve")
    if power_state == PowerState.SHUTDOWN:
        stop = site.last(Power, server)
        assert stop.action == PowerAction.STOP
        site.world.answer(stop, ok=True, power_state=power_state)
    site.world.until(server, "shelved_offloaded")


def unshelve(site: Site, server: str, **asked: Any) -> None:
    operation = begin_unshelve.accept(site.world.conductor.accept, site.ctxt, server, asked)
    assert operation is not None
    site.world.conductor.runner.submit(operation)


def fault_of(site: Site) -> str:
    eventually(lambda: site.world.rows(schema.faults))
    return str(site.world.rows(schema.faults)[-1].message)


@pytest.mark.parametrize("how", ["live", "cold"])
def test_a_move_goes_where_its_volumes_are_reached(site: Site, server: str, how: str) -> None:
    shared(site, server)
    loses(site, "pve2", "data")
    if how == "live":
        live(site, server)
    else:
        site.world.migrate(server)
        stop = site.last(Power, server)
        site.world.answer(stop, ok=True, power_state=PowerState.SHUTDOWN)
    # The scheduler of these tests would have taken pve2.
    assert site.last(Move, server).target_node == "pve3"
    assert site.world.scheduler.asked[-1].volumes == (VolumeNeed("data", "sim1"),)
    (migration,) = site.world.rows(schema.migrations)
    assert migration.dest_host == "pve3"


def test_without_such_a_node_it_stays_and_says_why(site: Site, server: str) -> None:
    shared(site, server)
    loses(site, "pve2", "data")
    loses(site, "pve3", "data")
    live(site, server)
    site.world.until(server, "active")
    eventually(lambda: site.world.rows(schema.migrations)[0].status == "error")
    decided = site.world.rows(schema.decisions)[-1]
    reasons = [one["result"] for one in decided.body["claims"]]
    assert reasons == [
        "of a volume: it is on storage data, which node pve2 doesn't reach",
        "of a volume: it is on storage data, which node pve3 doesn't reach",
    ]


def test_a_host_that_is_asked_for_must_reach_them(site: Site, server: str) -> None:
    shared(site, server)
    loses(site, "pve2", "data")
    words = "host pve2 can't take it because of a volume: it is on storage data, which node pve2"
    for move in (
        lambda: live(site, server, "pve2"),
        lambda: site.world.migrate(server, "pve2"),
    ):
        with pytest.raises(Invalid, match=words):
            move()
    assert site.world.rows(schema.migrations) == []
    shelved(site, server)
    with pytest.raises(Conflict, match=words):
        unshelve(site, server, host="pve2")
    unshelve(site, server, host="pve3")
    assert site.last(Move, server).target_node == "pve3"


def test_one_on_its_node_s_own_storage_pins_it(site: Site, server: str) -> None:
    volume_id = pinned(site, server)
    words = f"volume {volume_id} is on storage own, which only node pve1 has; detach it first"
    for move in (
        lambda: live(site, server),
        lambda: live(site, server, "pve2"),
        lambda: site.world.migrate(server),
    ):
        with pytest.raises(Invalid, match=words):
            move()
    # A resize is refused beforehand only if it can't be on the own host.
    site.world.scheduler.hosts.remove("pve1")
    with pytest.raises(Invalid, match=f"the server can't be moved, {words}"):
        site.world.resize(server, LARGER)
    assert site.world.rows(schema.migrations) == []
    assert site.world.row(server).task_state is None
    site.world.scheduler.hosts.insert(0, "pve1")
    site.world.resize(server, LARGER)
    shape = site.last(Shape, server)
    site.world.answer(shape, ok=True, power_state=PowerState.RUNNING)
    assert site.world.until(server, "resized").host == "pve1"


def test_plans_of_moves_know_it(site: Site, server: str) -> None:
    volume_id = pinned(site, server)
    shared_id = site.made()
    site.attached(server, shared_id)
    store = site.world.conductor.store
    plan = BulkPlan(Place("pve1", None, "sim1", "pve1", None))
    with store.read() as connection:
        seen = looking.look(connection, plan).servers[server]
    assert volume_id in seen.situation.pinned[str(site.world.row(server).vmid)]

    with store.read() as connection:
        there = host_assignments.idle(connection, ("active",), 10)
        (one,) = request_specs.of_servers(connection, there)
    assert one.requested.volumes == (
        VolumeNeed("own", "sim1", "pve1"),
        VolumeNeed("data", "sim1"),
    )


def test_it_is_not_evacuated_from_its_volume(site: Site, server: str) -> None:
    pinned(site, server)
    site.world.beat(lost="pve1")
    with pytest.raises(Invalid, match="a volume on the node's own storage own"):
        begin_evacuation.accept(site.world.conductor.cloud, ADMIN, server, None)


def test_a_moved_server_gets_what_both_its_hosts_reach(site: Site, server: str) -> None:
    """Until its resize is confirmed it may have to go back."""
    near, far, both = site.made(), site.made(), site.made()
    site.world.migrate(server)
    site.world.answer(site.last(Power, server), ok=True, power_state=PowerState.SHUTDOWN)
    site.world.answer(
        site.last(Move, server), ok=True, node="pve2", power_state=PowerState.SHUTDOWN
    )
    site.world.answer(site.last(Power, server, 2), ok=True, power_state=PowerState.RUNNING)
    site.world.until(server, "resized")
    on_own_storage(site, near, "pve2")
    on_own_storage(site, far, "pve1")
    with pytest.raises(Invalid, match="confirm or revert the server's resize first"):
        site.attach(server, near)
    with pytest.raises(Invalid, match="which only node pve1 has"):
        site.attach(server, far)
    site.attached(server, both)
    # It moves along on the way back, and there is no other node for it.
    site.world.end_resize(server, "revertResize")
    site.world.answer(site.last(Power, server, 3), ok=True, power_state=PowerState.SHUTDOWN)
    back = site.last(Move, server, 2)
    site.world.answer(back, ok=True, node="pve1", power_state=PowerState.SHUTDOWN)
    site.world.answer(site.last(Power, server, 4), ok=True, power_state=PowerState.RUNNING)
    assert site.world.until(server, "active").host == "pve1"
    assert site.row(both).status == "in-use"
    with pytest.raises(Invalid, match="which only node pve2 has"):
        site.attach(server, near)
    site.attached(server, far)


def test_a_shelved_server_keeps_its_volumes(site: Site, server: str) -> None:
    volume_id = shared(site, server)
    shelved(site, server)
    assert site.row(volume_id).status == "in-use"
    loses(site, "pve2", "data")
    site.world.placement.full.add("uuid-pve1")
    unshelve(site, server)
    move = site.last(Move, server)
    assert move.target_node == "pve3"
    site.world.answer(move, ok=True, node="pve3", power_state=PowerState.SHUTDOWN)
    site.world.answer(site.last(Power, server, 2), ok=True, power_state=PowerState.RUNNING)
    assert site.world.until(server, "active").host == "pve3"
    assert site.row(volume_id).status == "in-use"


def test_one_that_is_pinned_comes_back_where_it_is(site: Site, server: str) -> None:
    pinned(site, server)
    shelved(site, server)
    with pytest.raises(Conflict, match="is on storage own, which only node pve1 has"):
        unshelve(site, server, host="pve2")
    site.world.placement.full.add("uuid-pve1")
    unshelve(site, server)
    assert "is on storage own, which only node pve1 has" in fault_of(site)
    site.world.until(server, "shelved_offloaded")
    site.world.placement.full.clear()
    unshelve(site, server)
    site.world.answer(site.last(Power, server, 2), ok=True, power_state=PowerState.RUNNING)
    assert site.world.until(server, "active").host == "pve1"


def test_a_shelved_server_gets_and_loses_volumes(site: Site, server: str) -> None:
    first = shared(site, server)
    shelved(site, server)
    second = site.made()
    command = site.attached(server, second)
    assert (command.slot, command.placed.node) == (2, "pve1")
    assert site.world.row(server).vm_state == "shelved_offloaded"
    site.plugs.detach_volume(site.ctxt, server, first)
    off = site.last(PlugVolume, server, 3)
    assert off.on is False
    site.world.answer(off, ok=True, power_state=PowerState.SHUTDOWN)
    site.becomes(first, "available")
    # A volume that can't be attached is available again.
    site.attach(server, first)
    site.world.answer(site.last(PlugVolume, server, 4), ok=False, failure=FULL)
    back = site.last(PlugVolume, server, 5)
    assert back.on is False
    site.world.answer(back, ok=True, power_state=PowerState.SHUTDOWN)
    site.becomes(first, "available")
    assert site.world.row(server).vm_state == "shelved_offloaded"
    unshelve(site, server)
    site.world.answer(site.last(Power, server, 2), ok=True, power_state=PowerState.RUNNING)
    site.world.until(server, "active")
    assert [one.volume_id for one in site.world.rows(schema.volume_attachments)] == [second]


def test_an_unshelving_waits_for_what_is_begun(site: Site, server: str) -> None:
    """It moves with the volume that was being attached when it began, and both end."""
    shelved(site, server)
    volume_id = site.made()
    loses(site, "pve2", "data")
    site.attach(server, volume_id)
    unshelve(site, server, host="pve3")
    move = site.last(Move, server)
    assert site.world.scheduler.asked[-1].volumes == (VolumeNeed("data", "sim1"),)
    site.world.answer(site.last(PlugVolume, server), ok=True, power_state=PowerState.SHUTDOWN)
    site.becomes(volume_id, "in-use")
    site.world.answer(move, ok=True, node="pve3", power_state=PowerState.SHUTDOWN)
    site.world.answer(site.last(Power, server, 2), ok=True, power_state=PowerState.RUNNING)
    assert site.world.until(server, "active").host == "pve3"


def test_saved_memory_holds_its_volumes(site: Site, server: str) -> None:
    volume_id, other = shared(site, server), site.made()
    site.world.act(server, "suspend")
    site.world.answer(site.last(Power, server), ok=True, power_state=PowerState.SUSPENDED)
    site.world.until(server, "suspended")
    with pytest.raises(Invalid, match=f"the memory of server {server} is saved on its node"):
        site.volumes.extend_volume(site.ctxt, volume_id, 5, in_use=True)
    shelved(site, server, PowerState.SUSPENDED)
    with pytest.raises(Invalid, match=f"the memory of server {server} is saved on its node"):
        site.volumes.extend_volume(site.ctxt, volume_id, 5, in_use=True)
    with pytest.raises(Conflict, match="its memory is saved on its node"):
        site.attach(server, other)
    with pytest.raises(Conflict, match="its memory is saved on its node"):
        site.plugs.detach_volume(site.ctxt, server, volume_id)
    assert (site.row(other).status, site.row(volume_id).status) == ("available", "in-use")


def test_a_soft_deleted_server_has_volumes_until_it_is_gone(site: Site, server: str) -> None:
    volume_id = shared(site, server)
    site.world.act(server, "soft-delete")
    site.world.answer(site.last(Power, server), ok=True, power_state=PowerState.SHUTDOWN)
    site.world.until(server, "soft-delete")
    assert site.row(volume_id).status == "in-use"
    second = site.made()
    site.attached(server, second)
    site.plugs.detach_volume(site.ctxt, server, volume_id)
    off = site.last(PlugVolume, server, 3)
    site.world.answer(off, ok=True, power_state=PowerState.SHUTDOWN)
    site.becomes(volume_id, "available")


def test_one_that_has_volumes_is_not_released(site: Site, server: str) -> None:
    shared(site, server)
    with pytest.raises(Conflict, match=r"detach .* first"):
        site.world.act(server, "release")
