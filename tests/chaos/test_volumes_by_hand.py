"""What people do to volumes, holders and servers' VMs in Proxmox VE: no volume is lost by it, none
is in two VMs because of the cloud, and the audit reports what it is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common.context import RequestContext
from common.errors import MicronovaError
from conductor.rpc.servers.server_volumes import AttachRequest
from conductor.rpc.volumes.volumes import NewVolume
from db import schema
from tests.chaos.person import Person
from tests.chaos.test_edited_marks import config_of, edit, findings
from tests.chaos.world import World, world

ADMIN = RequestContext(user_id="boss", project_id="admin", roles=["admin"], is_admin=True)
PATTERN = "a pattern"


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One cloud for all; at its end nothing is left."""
    folder: Path = tmp_path_factory.mktemp("cloud")
    with world(folder / "world", {"proxmox:sim1": {"vm_storage": "shared"}}) as running:
        running.may_heal = frozenset({"holder_not_parked"})
        yield running


@pytest.fixture
def person(cloud: World) -> Person:
    return Person(cloud)


def volume(cloud: World, volume_id: str) -> Any:
    """The volume's row; None: it is gone."""
    found = cloud.rows(sa.select(schema.volumes).where(schema.volumes.c.id == volume_id))
    return found[0] if found else None


def status(cloud: World, volume_id: str, wanted: str) -> Any:
    """Wait until the volume has a status and nothing is under way; return its row."""

    def there() -> Any:
        row = volume(cloud, volume_id)
        return row if row.status == wanted and not cloud.open_operations() else None

    return cloud.until(there)


def data(cloud: World, row: Any) -> str | None:
    """What is in the volume; None: it isn't there."""
    volumes = cloud.simulator.state()["sim1"]["volumes"]
    return next((str(one["data"]) for one in volumes if one["volid"] == row.volid), None)


def made(cloud: World) -> Any:
    """A volume with a pattern in it."""
    made = cloud.client.create_volume(cloud.context(), NewVolume("project", 1))
    row = status(cloud, made, "available")
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        there = cluster.volume(row.volid, row.node)
        assert there is not None
        there.data = PATTERN
        cluster.add_volume(there)
    return row


def attached(cloud: World, name: str) -> tuple[Any, Any]:
    """A server, and a volume that it has."""
    row, server = made(cloud), cloud.built(name)
    cloud.client.attach_volume(cloud.context(), server.uuid, AttachRequest(row.id))
    return server, status(cloud, row.id, "in-use")


def removed(cloud: World, row: Any) -> None:
    """Have the volume gone, forced as an administrator does."""

    def gone() -> bool:
        if volume(cloud, row.id) is None and not cloud.open_operations():
            return True
        if not cloud.open_operations():
            with contextlib.suppress(MicronovaError):
                cloud.client.delete_volume(ADMIN, row.id, force=True, cascade=True)
        return False

    cloud.until(gone)


def right(cloud: World, row: Any) -> None:
    """The volume has its data, is free, and is deleted; then nothing is found."""
    assert data(cloud, status(cloud, row.id, "available")) == PATTERN
    removed(cloud, row)
    assert findings(cloud) == {}


def test_the_servers_vm_is_purged(cloud: World, person: Person) -> None:
    server, row = attached(cloud, "purged")
    cloud.look()
    vm = person.vm(server)
    person.task(server.node, vm.status.stop.post())
    person.task(server.node, vm.delete(purge=1))
    cloud.until(lambda: cloud.server(server.uuid).vm_state == "error")
    assert data(cloud, row) == PATTERN
    cloud.delete(server.uuid)
    right(cloud, row)


def test_a_backup_of_the_servers_vm_is_restored_beside_it(cloud: World, person: Person) -> None:
    """Neither has the backup the volume's data, nor does the copy name the volume; when the copy
    is purged the volume is left."""
    server, row = attached(cloud, "restored")
    node = person.api.nodes(server.node)
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        storage = cluster.storages["shared"]
        storage.content = [*storage.content, "backup"]
    person.task(server.node, node.vzdump.post(vmid=server.vmid, storage="shared", mode="stop"))
    (archive,) = (one["volid"] for one in node.storage("shared").content.get(content="backup"))
    person.task(server.node, node.qemu.post(vmid=900, archive=archive, storage="shared"))
    copy = config_of(cloud, 900)
    named = {str(one).partition(",")[0] for one in copy.values()}
    assert row.volid not in named, "a drive with backup=0 returns as a comment"
    assert row.volid in copy["description"]
    assert "volume_referenced_elsewhere" not in findings(cloud)
    person.task(server.node, node.qemu(900).delete(purge=1))
    node.storage("shared").content(archive).delete()
    assert data(cloud, row) == PATTERN
    cloud.delete(server.uuid)
    right(cloud, row)


def test_a_holder_is_started(cloud: World, person: Person) -> None:
    """What starts is an empty machine; what is done with the volume stops it where it must."""
    server, row = attached(cloud, "started")
    person.task(row.node, person.vm(row).status.start.post())
    assert "scsi0" not in config_of(cloud, row.vmid)
    cloud.client.detach_volume(cloud.context(), server.uuid, row.id)
    status(cloud, row.id, "available")
    cloud.client.extend_volume(cloud.context(), row.id, 2, in_use=True)
    status(cloud, row.id, "available")
    cloud.delete(server.uuid)
    right(cloud, row)


def test_a_volume_is_detached_by_hand(cloud: World, person: Person) -> None:
    server, row = attached(cloud, "detached")
    person.vm(server).config.put(delete="scsi1")
    found = findings(cloud)["volume_not_referenced"]
    assert (found.server_uuid, found.vmid) == (server.uuid, server.vmid)
    assert row.id in found.remedy
    cloud.client.detach_volume(cloud.context(), server.uuid, row.id)
    status(cloud, row.id, "available")
    assert findings(cloud) == {}
    cloud.delete(server.uuid)
    right(cloud, row)


@pytest.mark.parametrize("vmid", [900, None])
def test_a_volume_is_attached_to_another_vm(
    cloud: World, person: Person, vmid: int | None
) -> None:
    """To one of the cloud, or to a stranger's: reported, never cut, and no volume is lost."""
    row = made(cloud)
    other = cloud.built(f"other-{vmid}") if vmid is None else None
    number, named = (vmid or 0, "pve1") if other is None else (int(other.vmid), other.node)
    node = person.api.nodes(named)
    if other is None:
        person.task("pve1", node.qemu.post(vmid=number, memory=128))
    node.qemu(number).config.put(scsi5=row.volid)
    found = findings(cloud)["volume_referenced_elsewhere"]
    assert (found.vmid, found.heal) == (number, None)
    assert f"qm set {number} --delete scsi5" in found.remedy
    cloud.client.delete_volume(cloud.context(), row.id)
    status(cloud, row.id, "error_deleting")
    assert config_of(cloud, number)["scsi5"].startswith(row.volid)
    assert config_of(cloud, row.vmid)["protection"] == "1"
    assert data(cloud, row) == PATTERN
    node.qemu(number).config.put(delete="scsi5")
    if other is None:
        person.task("pve1", node.qemu(number).delete(purge=1))
    else:
        cloud.delete(other.uuid)
    removed(cloud, row)
    assert findings(cloud) == {}


def test_a_holder_is_deleted(cloud: World, person: Person) -> None:
    """Proxmox VE deletes its disk with it: that is reported, and the record can be deleted."""
    row = made(cloud)
    person.vm(row).config.put(protection=0)
    person.task(row.node, person.vm(row).delete(purge=1))
    assert findings(cloud)["volume_missing"].evidence["volume"] == row.id
    removed(cloud, row)
    assert findings(cloud) == {}


def test_a_holders_description_is_rewritten(cloud: World, person: Person) -> None:
    """Nothing is done to a VM that doesn't say what it is; put back, all is as before."""
    server, row = attached(cloud, "renamed")
    was = edit(cloud, row.vmid, description="my notes")
    found = findings(cloud)["holder_replaced"]
    assert (found.vmid, found.heal) == (row.vmid, None)
    cloud.client.detach_volume(cloud.context(), server.uuid, row.id)
    status(cloud, row.id, "available")
    cloud.client.attach_volume(cloud.context(), server.uuid, AttachRequest(row.id))
    cloud.until(lambda: volume(cloud, row.id).status == "available")
    assert "scsi1" not in config_of(cloud, server.vmid)
    assert config_of(cloud, row.vmid)["description"] == "my notes"
    edit(cloud, row.vmid, **was)
    cloud.until(lambda: not cloud.open_operations())
    cloud.delete(server.uuid)
    right(cloud, row)


def test_a_holders_disk_is_moved(cloud: World, person: Person) -> None:
    """It has another name then: no server gets it, and it is reported."""
    row, server = made(cloud), cloud.built("moved")
    vm = person.vm(row)
    vm.config.put(protection=0)
    person.task(row.node, vm.move_disk.post(disk="unused0", storage="local", delete=1))
    vm.config.put(protection=1)
    assert findings(cloud)["volume_missing"].evidence["volid"] == row.volid
    cloud.client.attach_volume(cloud.context(), server.uuid, AttachRequest(row.id))
    status(cloud, row.id, "available")
    assert "scsi1" not in config_of(cloud, server.vmid)
    cloud.delete(server.uuid)
    removed(cloud, row)
    assert findings(cloud) == {}


def test_a_plugged_holder_is_parked_by_the_audit(cloud: World, person: Person) -> None:
    row = made(cloud)
    person.vm(row).config.put(protection=0, scsi0=row.volid)
    assert findings(cloud) == {}
    assert config_of(cloud, row.vmid)["unused0"] == row.volid
    assert "scsi0" not in config_of(cloud, row.vmid)
    right(cloud, row)
