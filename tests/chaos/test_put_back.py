"""A backup of every commit of an action is put back an hour later, and decided about.

No VM, disk or address of a user is lost, removed or given twice: what ran runs, and what the
record lacks is adopted by the marks, or left and named.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from common import ids
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.interfaces import Attachment
from conductor.rpc.servers.server_volumes import AttachRequest
from conductor.rpc.servers.servers import NewServerImage, RebuildServer
from conductor.rpc.volumes.backups import NewBackup
from conductor.rpc.volumes.snapshots import NewVolumeSnapshot
from conductor.rpc.volumes.volumes import NewVolume
from db import schema
from tests.chaos.cloud import IMAGE
from tests.chaos.director import TRANSACTION
from tests.chaos.stage import Plan, Stage, stage
from tests.chaos.test_overslept import WHOLE, at_one_moment, copied, vms

pytestmark = pytest.mark.timeout(3600)

#: what an action changes: a copy in which these are as in the one before is the same moment
CHANGED = (
    *("operations", "servers", "vmids", "ports", "volumes", "volume_attachments"),
    *("volume_snapshots", "volume_backups", "images", "networks", "vnets"),
)
ACTIONS = (
    *("create", "resize", "rebuild", "delete", "attach", "snapshot"),
    *("detach", "interface", "image", "volume", "delete volume", "backup"),
)
LARGER = FlavorSnapshot("2", "m1.larger", 2, 256, 2)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("putback"), Plan(conductors=1, options=WHOLE)) as running:
        yield running


Copy = tuple[str, Callable[[], None]]


def copies(cloud: Stage, begin: Callable[[], Any]) -> list[Copy]:
    """Carry an action out to its end; return a copy of the database after each of its commits."""
    found: list[Copy] = []
    last: list[Any] = []
    before = cloud.director.before

    def looked(process: str, kind: str, name: str) -> tuple[str, int]:
        if kind == TRANSACTION:
            with at_one_moment(cloud) as connection:
                now = [
                    sorted(map(repr, connection.execute(sa.select(schema.metadata.tables[one]))))
                    for one in CHANGED
                ]
                if now != last:
                    last[:] = now
                    found.append((f"before {name}", copied(cloud, connection)))
        return before(process, kind, name)

    cloud.director.before = looked  # type: ignore[method-assign]
    try:
        begin()
        cloud.until(lambda: not cloud.open_operations())
    finally:
        del cloud.director.before
    return found


def put_back(cloud: Stage, copy: Callable[[], None]) -> dict[str, Any]:
    """Stop all, put a copy back, start all, and decide; return the report."""
    for name in reversed(cloud.services):
        cloud.stop(name)
    copy()
    with cloud.engine.begin() as connection:
        # As a dump does: numbers are given again.
        connection.exec_driver_sql(
            "SELECT setval(pg_get_serial_sequence('operations', 'id'), "
            "GREATEST((SELECT max(id) FROM operations), 1))"
        )
    for name in cloud.services:
        cloud.start(name)
    # What was open is probed first.
    cloud.until(lambda: all(row.action == "delete" for row in cloud.open_operations()))
    audit_id = cloud.client.begin_restore(cloud.context(), apply=True)
    audits = schema.audits
    row = cloud.until(
        lambda: [
            one
            for one in cloud.rows(sa.select(audits).where(audits.c.id == audit_id))
            if one.state in ("done", "failed")
        ]
    )[0]
    assert row.state == "done", row.report
    cloud.until(lambda: not cloud.open_operations())
    report: dict[str, Any] = row.report["restore"]
    assert report["released"], report
    return report


def addresses(cloud: Stage) -> dict[str, list[str]]:
    """Server → the addresses of its ports."""
    found: dict[str, list[str]] = {}
    for row in cloud.rows(sa.select(schema.ports)):
        found.setdefault(str(row.server_uuid), []).append(str(row.ip))
    return {uuid: sorted(ips) for uuid, ips in found.items()}


def disks(cloud: Stage) -> set[str]:
    """All volumes of all storages: disks, archives, files; without config drives."""
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        return {one.volid for one in cluster.volumes.all() if ":iso/" not in one.volid}


def owned(cloud: Stage) -> dict[str, set[str]]:
    """What the project has that is no server, by table."""
    names = ("volumes", "volume_snapshots", "volume_backups", "images")
    tables = [schema.metadata.tables[name] for name in names]
    return {
        one.name: {
            row.id
            for row in cloud.rows(sa.select(one.c.id, one.c.status, one.c.project_id))
            if row.status in ("available", "active", "in-use") and row.project_id == "project"
        }
        for one in tables
    }


class Before:
    """What there is once an action has ended."""

    def __init__(self, cloud: Stage) -> None:
        self.vms, self.servers = vms(cloud), cloud.alive()
        self.addresses, self.owned, self.disks = addresses(cloud), owned(cloud), disks(cloud)


def require_nothing_lost(cloud: Stage, copy: Copy, was: Before) -> None:
    """Put a copy back, and compare what there is with what there was."""
    report = put_back(cloud, copy[1])
    now, there = vms(cloud), disks(cloud)
    gone = {vmid for vmid in was.vms if vmid not in now}
    assert not gone, (copy[0], gone, report)
    assert was.disks <= there, (copy[0], was.disks - there, report)
    for name, those in was.owned.items():
        assert those <= owned(cloud)[name], (copy[0], name, those - owned(cloud)[name], report)
    assert {vmid: now[vmid][0] for vmid in was.vms} == {
        vmid: one[0] for vmid, one in was.vms.items()
    }
    for row in was.servers:
        after = cloud.server(row.uuid)
        assert after is not None, (copy[0], report)
        place = (after.cluster, after.vmid)
        assert after.deleted_at is None and place == (row.cluster, row.vmid), (copy[0], report)
        assert addresses(cloud).get(row.uuid) == was.addresses.get(row.uuid), (copy[0], report)
    given = [ip for ips in addresses(cloud).values() for ip in ips]
    assert len(given) == len(set(given)), (copy[0], given)
    # A new server gets nothing that another one has.
    name = ids.new_uuid()
    fresh = cloud.built(name)
    assert fresh.vm_state == "active", cloud.faults(fresh.uuid)
    assert fresh.vmid not in was.vms
    mine = addresses(cloud)[fresh.uuid]
    assert not set(mine) & {ip for ips in was.addresses.values() for ip in ips}, copy[0]
    cloud.act(fresh.uuid, "delete")
    cloud.until(lambda: cloud.server(fresh.uuid).deleted_at is not None)


def volume(cloud: Stage) -> str:
    made = cloud.client.create_volume(cloud.context(), NewVolume("project", 1, "data"))
    cloud.until(lambda: not cloud.open_operations())
    return str(made)


def begin(cloud: Stage, action: str) -> Callable[[], Any]:
    """Prepare what an action needs; return what begins it."""
    if action == "create":
        return lambda: cloud.create("created")
    server = cloud.built(f"for-{action}").uuid
    client, ctxt = cloud.client, cloud.context()
    if action == "resize":
        return lambda: client.resize_server(ctxt, server, LARGER)
    if action == "rebuild":
        wanted = RebuildServer(ids.named("image", IMAGE))
        return lambda: client.rebuild_server(ctxt, server, wanted)
    if action == "delete":
        return lambda: cloud.act(server, "delete")
    if action == "interface":
        asked = Attachment(ids.named("network", "vmbr0"))
        return lambda: client.attach_interface(ctxt, server, asked, wait=False)
    if action == "image":
        golden = NewServerImage("golden")
        return lambda: client.create_server_image(ctxt, server, golden)
    if action == "volume":
        return lambda: client.create_volume(ctxt, NewVolume("project", 1, "new"))
    made = volume(cloud)
    attach = functools.partial(client.attach_volume, ctxt, server, AttachRequest(made))
    if action == "detach":
        attach()
        cloud.until(lambda: not cloud.open_operations())
        return functools.partial(client.detach_volume, ctxt, server, made)
    of_volume: dict[str, Callable[[], Any]] = {
        "attach": attach,
        "delete volume": functools.partial(client.delete_volume, ctxt, made),
        "snapshot": functools.partial(
            client.create_volume_snapshot, ctxt, NewVolumeSnapshot(made, "snap")
        ),
        "backup": functools.partial(client.create_backup, ctxt, NewBackup(made, "monday")),
    }
    return of_volume[action]


def play(cloud: Stage, action: str, choose: Callable[[list[Copy]], list[Copy]]) -> None:
    found = copies(cloud, begin(cloud, action))
    assert len(found) > 2
    was = Before(cloud)
    for copy in choose(found):
        require_nothing_lost(cloud, copy, was)
    cloud.delete_all()


def test_the_first_and_a_middle_commit_of_a_create(cloud: Stage) -> None:
    """The sample of the gate: the server isn't known at all, and known without its VM."""
    play(cloud, "create", lambda found: [found[0], found[len(found) // 2]])


@pytest.mark.long
@pytest.mark.parametrize("action", ACTIONS)
def test_every_commit(cloud: Stage, action: str) -> None:
    play(cloud, action, lambda found: found)
