"""The last assertion of every case notices each kind of thing that could be left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock, ids
from db import schema
from simulator.state.ha_config import HaRule
from simulator.state.ha_resources import forget, manage
from simulator.state.model import MIB, Vm, Volume
from tests.chaos.world import World, world

NOBODY = ids.named("server", "nobody")
ARCHIVE = "backup/vzdump-qemu-150000-2026_01_01-00_00_00.vma.zst"


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A cloud with one server, and nothing wrong."""
    with world(tmp_path_factory.mktemp("clean")) as running:
        assert running.built("web").vm_state == "active"
        assert running.left() == ""
        yield running


def machine(cloud: World) -> Callable[[], None]:
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        vm = cluster.add_vm(Vm(150_000, "pve1", {"name": "web"}))

    def undo() -> None:
        with cluster.turn():
            cluster.remove_vm(vm)

    return undo


def volume(name: str, content: str, notes: str = "") -> Callable[[World], Callable[[], None]]:
    def put(cloud: World) -> Callable[[], None]:
        cluster = cloud.simulator.cluster()
        with cluster.turn():
            vmid = 150_000 if content == "images" else 0
            place = cluster.place("local", "pve1")
            new = Volume(*place, name, content, "raw", MIB, MIB, vmid, notes=notes)
            made = cluster.add_volume(new)

        def undo() -> None:
            with cluster.turn():
                cluster.remove_volume(made)

        return undo

    return put


def lock(cloud: World) -> Callable[[], None]:
    order = cloud.simulator.fault(action="lock-held", storage="shared")
    return lambda: cloud.simulator.take_back(order)


def config_lock(cloud: World) -> Callable[[], None]:
    order = cloud.simulator.fault(action="config-lock", vmid=cloud.named("web").vmid)
    return lambda: cloud.simulator.take_back(order)


def managed(cloud: World) -> Callable[[], None]:
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        manage(cluster, cloud.named("web").vmid, comment=f"micronova: cloud=c group={NOBODY}")

    def undo() -> None:
        with cluster.turn():
            forget(cluster, f"vm:{cloud.named('web').vmid}", purge=True)

    return undo


def rule(cloud: World) -> Callable[[], None]:
    cluster = cloud.simulator.cluster()
    made = HaRule(f"micronova-c-{NOBODY}", "resource-affinity", ["vm:150000"], 1)
    with cluster.turn():
        cluster.ha.rules[made.rule] = made

    def undo() -> None:
        with cluster.turn():
            del cluster.ha.rules[made.rule]

    return undo


def allocation(cloud: World) -> Callable[[], None]:
    consumer = ids.new_uuid()
    (host, *_) = cloud.rows(sa.select(schema.hosts.c.uuid))
    assert cloud.placement.claim(consumer, host.uuid, {"VCPU": 1}, "p", "u")
    return lambda: cloud.placement.release(consumer)


def no_allocation(cloud: World) -> Callable[[], None]:
    server = cloud.named("web")
    kept = cloud.placement.allocations_of(server.uuid)
    cloud.placement.release(server.uuid)

    def undo() -> None:
        assert cloud.placement.replace(server.uuid, kept.by_provider, "project", "user", None)

    return undo


def no_provider(cloud: World) -> Callable[[], None]:
    # Not the server's host: its allocation would be missing too.
    elsewhere = schema.hosts.c.host != cloud.named("web").host
    (host, *_) = cloud.rows(sa.select(schema.hosts.c.id, schema.hosts.c.uuid).where(elsewhere))

    def know_it_as(uuid: str) -> None:
        with cloud.engine.begin() as connection:
            named = schema.hosts.update().where(schema.hosts.c.id == host.id)
            connection.execute(named.values(uuid=uuid))

    know_it_as(ids.new_uuid())
    return lambda: know_it_as(host.uuid)


def row(table: sa.Table, **values: Any) -> Callable[[World], Callable[[], None]]:
    def put(cloud: World) -> Callable[[], None]:
        with cloud.engine.begin() as connection:
            connection.execute(table.insert().values(**values))
        mine = sa.and_(*(table.c[name] == value for name, value in values.items()))

        def undo() -> None:
            with cloud.engine.begin() as connection:
                connection.execute(table.delete().where(mine))

        return undo

    return put


PORT = {
    "id": ids.new_uuid(),
    "network_id": NOBODY,
    "server_uuid": NOBODY,
    "project_id": "p",
    "position": 0,
    "mac": "fa:16:3e:00:00:01",
    "created_at": clock.utcnow(),
}
VMID = {
    "cluster": "sim1",
    "vmid": 150_001,
    "state": "reserved",
    "server_uuid": NOBODY,
    "since": clock.utcnow(),
}


@pytest.mark.parametrize(
    ("leave", "difference"),
    [
        (machine, "VM 150000 on pve1 is nobody's"),
        (volume("150000/vm-150000-disk-0.raw", "images"), "volume local:150000/"),
        (volume("iso/micronova-150000-nobody.iso", "iso"), "volume local:iso/micronova-150000"),
        (
            volume(ARCHIVE, "backup", f"micronova: backup={NOBODY} cloud=chaos"),
            f"archive local:{ARCHIVE} is nobody's",
        ),
        (lock, "lock storage-shared is held"),
        (config_lock, "is locked (backup)"),
        (managed, "high availability: resource vm:"),
        (rule, "high availability: rule micronova-c-"),
        (allocation, "allocation of"),
        (no_allocation, "has no allocation"),
        (no_provider, "has no resource provider"),
        (row(schema.ports, **PORT), f"of server {NOBODY}, which is gone"),
        (row(schema.vmids, **VMID), "VMID 150001 is reserved"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_left_is_noticed(
    cloud: World, leave: Callable[[World], Callable[[], None]], difference: str
) -> None:
    undo = leave(cloud)
    found = cloud.until(cloud.differences, 10)
    undo()
    assert len(found) == 1
    assert difference in found[0]
    assert cloud.left() == ""
