"""The audit of a cloud that has lived: servers came, failed and went, and so did a host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import ids
from common.context import RequestContext
from common.errors import Conflict, NotFound
from conductor.rpc.servers.manage import Adoption
from db import schema
from simulator.state.model import MIB, Vm, Volume
from tests.chaos.world import World, world

ADMIN = RequestContext(user_id="boss", project_id="admin", roles=["admin"], is_admin=True)
#: in the band, out of it
FOREIGN = (150_000, 800)


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[World]:
    """Two nodes; every audit reads only some descriptions."""
    with world(tmp_path, {"conductor": {"audit_reads": "3"}}) as running:
        yield running


def left(cloud: World) -> list[tuple[str, str]]:
    """Kind and subject of what an audit leaves that everybody was at rest for."""
    cloud.until(lambda: not cloud.open_operations())
    cloud.until(lambda: (report := cloud.audited())["complete"] and not report["in_flux"])
    query = sa.select(schema.findings).where(schema.findings.c.healed_at.is_(None))
    return sorted((row.kind, row.subject) for row in cloud.rows(query))


def somebodys(cloud: World, vmid: int) -> None:
    """A VM that was there before any cloud, with a disk."""
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        disk = cluster.add_volume(
            Volume(
                *cluster.place("local", "pve1"),
                f"{vmid}/vm-{vmid}-disk-0.raw",
                "images",
                "raw",
                MIB,
                MIB,
                vmid,
            )
        )
        uuid = ids.named("server", str(vmid))
        config: dict[str, Any] = {
            "name": f"old-{vmid}",
            "memory": "128",
            "cores": 1,
            "scsi0": disk.volid,
        }
        cluster.add_vm(Vm(vmid, "pve1", {**config, "smbios1": f"uuid={uuid}"}))


def adopt(cloud: World, vmid: int) -> str:
    """Take it under management; the server."""

    def asked() -> Any:
        try:
            return cloud.client.adopt(ADMIN, Adoption("sim1", vmid, "project", "user"))
        except (Conflict, NotFound):  # the list lags, or its allocation is still there
            return None

    uuid = str(cloud.until(asked).server_uuid)
    cloud.until(lambda: cloud.server(uuid).vm_state in ("active", "stopped"))
    return uuid


def built(cloud: World, name: str) -> list[Any]:
    """The four servers of this name, once they run."""
    rows = [row for row in cloud.alive() if row.name.startswith(name)]
    return rows if len(rows) == 4 and all(row.vm_state == "active" for row in rows) else []


def remove_host(cloud: World, host: str) -> None:
    """Its service is deleted: its agent, which still runs, brings it back."""
    columns = schema.services.c
    (service,) = cloud.rows(sa.select(schema.services).where(columns.host == host))
    cloud.client.delete_service(ADMIN, service.uuid)
    known = sa.select(schema.hosts.c.uuid).where(schema.hosts.c.host == host)
    cloud.until(lambda: cloud.rows(known))
    cloud.until(lambda: host in {provider.name for provider in cloud.placement.providers()})


def test_everything_agrees_whatever_a_cloud_has_lived_through(cloud: World) -> None:
    for turn in range(2):
        # Servers of every end.
        mine = f"many-{turn}"
        cloud.create(mine, count=4)
        many = cloud.until(lambda name=mine: built(cloud, name))  # type: ignore[misc]
        cloud.delete(many[0].uuid)
        cloud.act(many[1].uuid, "stop")
        order = cloud.simulator.fault(
            action="task-fail", method="POST", path=r"/status/start$", times=0, text="no KVM today"
        )
        failed = [cloud.built(f"failed-{turn}-{number}") for number in range(2)]
        assert {row.vm_state for row in failed} == {"error"}
        cloud.simulator.take_back(order)
        cloud.delete(failed[0].uuid)
        # Adopted and let go, adopted and deleted, adopted and kept: in the band, and out of it.
        for vmid in FOREIGN:
            if turn == 0:
                somebodys(cloud, vmid)
            uuid = adopt(cloud, vmid)
            cloud.client.act(ADMIN, uuid, "release")
            cloud.until(lambda uuid=uuid: cloud.server(uuid).deleted_at is not None)  # type: ignore[misc]
        assert left(cloud) == []
        # A host is removed, and comes back; then all services start again.
        for row in cloud.alive():
            if row.host == "pve2" or row.vm_state == "error":
                cloud.delete(row.uuid)
        remove_host(cloud, "pve2")
        assert left(cloud) == []
        for kind in ("compute", "conductor", "scheduler"):
            cloud.restart(kind)
        assert left(cloud) == []
    kept = adopt(cloud, FOREIGN[0])
    assert left(cloud) == []
    # One of them loses its VM to somebody else, and is forgotten.
    cluster = cloud.simulator.cluster()
    victim = next(row for row in cloud.alive() if row.uuid != kept)
    with cluster.turn():
        lost = cluster.vms[victim.vmid]
        for name in ("description", "smbios1", "tags"):
            cluster.edit(lost).config.pop(name, None)
    assert left(cloud) == [("vm_replaced", f"sim1/{victim.vmid}")]
    cloud.client.abandon(ADMIN, victim.uuid, "somebody took it", force=False)
    # The VM, which was let go, still has the server's config drive in it.
    assert [kind for kind, _ in left(cloud)] == ["config_drive_without_server", "vm_foreign"]
    with cluster.turn():
        cluster.remove_vm(lost)
    # Its disk is ours by journal and task, and yet an operator let it go: nobody removes it.
    assert {kind for kind, _ in left(cloud)} == {
        "config_drive_without_server",
        "volume_without_vm",
    }
    with cluster.turn():
        there = [
            one
            for one in cluster.volumes.all()
            if one.vmid == victim.vmid or victim.uuid in one.name
        ]
        assert {one.content for one in there} == {"images", "iso"}
        for one in there:
            cluster.remove_volume(one)
    assert left(cloud) == []
    cloud.delete(kept)
    cloud.delete_all()
    assert left(cloud) == []
    # What was never ours is as it was.
    with cluster.turn():
        assert FOREIGN[1] in cluster.vms
        assert "micronova" not in str(cluster.vms[FOREIGN[1]].config.get("description"))
        cluster.remove_vm(cluster.vms[FOREIGN[1]])
        for one in [one for one in cluster.volumes.all() if one.vmid == FOREIGN[1]]:
            cluster.remove_volume(one)
