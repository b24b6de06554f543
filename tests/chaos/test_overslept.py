"""An older copy of the database is put back after every deadline in it has passed.

What was under way when it was copied has ended since. Nothing of it is stopped or removed: it is
adopted, or shown as it is; and once its owner deletes it nothing is left.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock, ids
from common.context import internal
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.servers import NewServerImage, RebuildServer
from conductor.rpc.volumes.volumes import NewVolume
from db import schema
from tests.chaos.cloud import IMAGE
from tests.chaos.stage import Plan, Stage, stage

pytestmark = [pytest.mark.timeout(2400), pytest.mark.long]

#: disks that can be moved with their server
WHOLE = {"proxmox:sim1": {"linked_clones": "never"}}
#: what is not a matter of the record: agents report it again
OBSERVED = {"hosts", "services"}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("overslept"), Plan(conductors=1, options=WHOLE)) as running:
        yield running


@contextlib.contextmanager
def at_one_moment(cloud: Stage) -> Iterator[sa.Connection]:
    """A connection that reads all tables as they were at its first statement, as a dump does."""
    with cloud.engine.connect() as connection:
        yield connection.execution_options(isolation_level="REPEATABLE READ")


def copied(cloud: Stage, connection: sa.Connection | None = None) -> Callable[[], None]:
    """Copy the database; return what puts the copy back, an hour later."""
    if connection is None:
        with at_one_moment(cloud) as own:
            return copied(cloud, own)
    tables = [one for one in schema.metadata.sorted_tables if one.name not in OBSERVED]
    kept = {
        one.name: [
            {column.key: row[column] for column in one.columns}
            for row in connection.execute(sa.select(one)).mappings()
        ]
        for one in tables
    }

    def put_back() -> None:
        with cloud.engine.begin() as connection:
            for table in reversed(tables):
                connection.execute(table.delete())
            for table in tables:
                if kept[table.name]:
                    connection.execute(table.insert(), kept[table.name])
            signs = schema.leases.update().where(schema.leases.c.name.like("sign %"))
            connection.execute(signs.values(expires_at=clock.after(-3600)))
            connection.execute(
                schema.operations.update().values(
                    deadline=clock.after(-1800), lease_expires_at=clock.after(-3500)
                )
            )

    return put_back


@contextlib.contextmanager
def held(cloud: Stage, method: str, path: str) -> Iterator[Callable[[], bool]]:
    """A call to Proxmox VE that is not answered; yields what waits until it has come."""
    order = cloud.simulator.fault(action="hold", method=method, path=path)
    try:
        yield lambda: cloud.simulator.await_strike(order, 60)
    finally:
        cloud.simulator.take_back(order)


def vms(cloud: Stage) -> dict[int, tuple[str, str]]:
    """VMID → its power state, and its configuration."""
    found = {}
    for vmid, vm in cloud.simulator.cluster().vms.items():
        found[vmid] = (vm.status, str(sorted(vm.config.items())))
    return found


def again(cloud: Stage, put_back: Callable[[], None]) -> None:
    """Stop all, put the copy back, start all, and wait until nothing is open."""
    for name in reversed(cloud.services):
        cloud.stop(name)
    put_back()
    for name in cloud.services:
        cloud.start(name)
    cloud.until(lambda: not cloud.open_operations())


def test_four_builds_are_adopted(cloud: Stage) -> None:
    with held(cloud, "POST", "/status/start$") as came:
        cloud.create("four", count=4)
        came()
        cloud.until(lambda: {row.task_state for row in cloud.alive()} == {"spawning"})
        put_back = copied(cloud)
    cloud.until(lambda: {row.vm_state for row in cloud.alive()} == {"active"})
    seen = vms(cloud)
    again(cloud, put_back)
    assert {row.vm_state for row in cloud.alive()} == {"active"}
    assert vms(cloud) == seen


LARGER = FlavorSnapshot("2", "m1.larger", 2, 256, 2)

#: action → how it is begun, and the call to Proxmox VE at which the database is copied
ACTIONS: dict[str, tuple[Callable[[Stage, str], Any], str, str]] = {
    "resize": (
        lambda cloud, uuid: cloud.client.resize_server(cloud.context(), uuid, LARGER),
        "POST",
        r"/qemu/\d+/config$",
    ),
    "rebuild": (
        lambda cloud, uuid: cloud.client.rebuild_server(
            cloud.context(), uuid, RebuildServer(ids.named("image", IMAGE))
        ),
        "POST",
        "/status/start$",
    ),
    "stop": (lambda cloud, uuid: cloud.act(uuid, "stop"), "POST", "/status/(stop|shutdown)$"),
    "live-migration": (
        lambda cloud, uuid: cloud.client.live_migrate_server(internal(), uuid, None, None),
        "POST",
        "/migrate$",
    ),
    "createImage": (
        lambda cloud, uuid: cloud.client.create_server_image(
            cloud.context(), uuid, NewServerImage("copy")
        ),
        "POST",
        "/(clone|template)$",
    ),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_what_has_ended_since_is_seen_done(cloud: Stage, action: str) -> None:
    row = cloud.built(f"for-{action}")
    begin, method, path = ACTIONS[action]
    with held(cloud, method, path) as came:
        begin(cloud, row.uuid)
        came()
        put_back = copied(cloud)
    cloud.until(lambda: not cloud.open_operations())
    well = cloud.server(row.uuid)
    seen = vms(cloud)
    again(cloud, put_back)
    now = cloud.server(row.uuid)
    assert vms(cloud) == seen, action
    assert (now.vm_state, now.task_state, now.node) == (well.vm_state, None, well.node)
    assert (now.vcpus, now.image_id) == (well.vcpus, well.image_id)
    assert cloud.faults(row.uuid) == []


def test_a_volume_that_was_made_is_there(cloud: Stage) -> None:
    with held(cloud, "POST", r"/nodes/\w+/qemu$") as came:
        cloud.client.create_volume(cloud.context(), NewVolume("project", 1, "v"))
        came()
        put_back = copied(cloud)
    cloud.until(lambda: not cloud.open_operations())
    seen = vms(cloud)
    again(cloud, put_back)
    (row,) = cloud.rows(sa.select(schema.volumes).where(schema.volumes.c.name == "v"))
    assert row.status == "available"
    assert vms(cloud) == seen


def test_a_delete_that_has_ended_ends(cloud: Stage) -> None:
    row = cloud.built("deleted")
    with held(cloud, "DELETE", r"/qemu/\d+$") as came:
        cloud.act(row.uuid, "delete")
        came()
        put_back = copied(cloud)
    cloud.until(lambda: not cloud.open_operations())
    again(cloud, put_back)
    assert cloud.server(row.uuid).vm_state == "deleted"


def test_a_server_that_its_user_has_stopped_since_is_not_touched(cloud: Stage) -> None:
    """The copy says that it is built: its VM is there and stopped. It is shown, and kept."""
    with held(cloud, "POST", "/status/start$") as came:
        cloud.create("stopped")
        came()
        cloud.until(lambda: cloud.named("stopped").task_state == "spawning")
        put_back = copied(cloud)
    row = cloud.until(lambda: (row := cloud.named("stopped")).vm_state == "active" and row)
    cloud.act(row.uuid, "stop")
    cloud.until(lambda: cloud.named("stopped").vm_state == "stopped")
    seen = vms(cloud)
    again(cloud, put_back)
    assert vms(cloud) == seen
    now = cloud.named("stopped")
    assert (now.vm_state, now.vmid) == ("error", row.vmid)
