"""Snapshots of volumes in the conductor: taken as their storage can, brought back to, removed."""

from __future__ import annotations

from typing import Any

import pytest

from common.context import RequestContext
from common.errors import Invalid, QuotaExceeded, SnapshotNotFound
from common.messages.commands import (
    MakeVolume,
    RemoveVolume,
    SnapshotVerb,
    SnapVolume,
    VolumeSource,
    VolumeUser,
)
from common.messages.reports import MadeVolume
from conductor.endpoints.volumes.snapshots import VolumeSnapshotEndpoint
from conductor.rpc.volumes.snapshots import NewVolumeSnapshot
from conductor.rpc.volumes.volumes import VolumeEdit
from db import schema
from tests.functional.conductor.harness import IMAGE
from tests.functional.conductor.test_volumes import FULL, USED, Site, a_server, site, vmids
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401
from tests.functional.waiting import eventually

pytestmark = pytest.mark.sampled(2)

__all__ = ["site"]
SNAPSHOTS = schema.volume_snapshots


class Shots:
    """Snapshots of the site's volumes."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.endpoint = VolumeSnapshotEndpoint(site.world.conductor.cloud)

    def volume(self, way: str, **more: Any) -> str:
        """An available volume, on a storage that makes snapshots in this way."""
        volume_id = self.site.new(**more)
        command = self.site.last(MakeVolume, volume_id)
        made = MadeVolume(f"data:vm-{command.placed.vmid}-disk-0", 2 << 30, way)
        self.site.world.answer(command, ok=True, volume=made)
        self.site.becomes(volume_id, "available")
        return volume_id

    def take(self, volume_id: str, **more: Any) -> str:
        new = NewVolumeSnapshot(volume_id, **more)
        return self.endpoint.create_volume_snapshot(self.site.ctxt, new)

    def delete(self, snapshot_id: str) -> None:
        self.endpoint.delete_volume_snapshot(self.site.ctxt, snapshot_id)

    def row(self, snapshot_id: str) -> Any:
        rows = self.site.world.rows(schema.volume_snapshots)
        return next((one for one in rows if one.id == snapshot_id), None)

    def becomes(self, snapshot_id: str, status: str | None) -> Any:
        def there() -> bool:
            row = self.row(snapshot_id)
            return (None if row is None else row.status) == status

        eventually(there)
        return self.row(snapshot_id)

    def sent(self, volume_id: str, verb: str, number: int = 1) -> SnapVolume:
        """The n-th such command about a volume's holder."""

        def found() -> list[SnapVolume]:
            return [
                one
                for _, one in self.site.world.compute.sent
                if isinstance(one, SnapVolume)
                and (one.resource_id, one.verb) == (volume_id, SnapshotVerb(verb))
            ]

        eventually(lambda: len(found()) >= number)
        return found()[number - 1]

    def taken(self, volume_id: str) -> str:
        """An available snapshot, in the volume's holder."""
        before = len(self.site.world.rows(schema.volume_snapshots))
        snapshot_id = self.take(volume_id)
        number = 1 + sum(
            isinstance(one, SnapVolume)
            and (one.resource_id, one.verb) == (volume_id, SnapshotVerb.TAKE)
            and one.name != self.row(snapshot_id).snapname
            for _, one in self.site.world.compute.sent
        )
        self.site.world.answer(self.sent(volume_id, "take", number), ok=True)
        self.becomes(snapshot_id, "available")
        assert len(self.site.world.rows(schema.volume_snapshots)) == before + 1
        return snapshot_id


@pytest.fixture
def shots(site: Site) -> Shots:
    return Shots(site)


def test_one_in_the_holder(shots: Shots) -> None:
    site, volume_id = shots.site, shots.volume("online")
    before = vmids(site)
    snapshot_id = shots.take(volume_id, name="first", metadata={"a": "b"})
    row = shots.row(snapshot_id)
    assert (row.status, row.size_gib, row.vmid) == ("creating", 2, None)
    volume = site.row(volume_id)
    command = shots.sent(volume_id, "take")
    assert (command.volid, command.name, command.user) == (volume.volid, row.snapname, None)
    assert (command.placed.vmid, command.storage_way) == (volume.vmid, "online")
    assert len(command.name) == 20
    # Nothing else is begun with the volume until then.
    for act in (
        lambda: site.volumes.extend_volume(site.ctxt, volume_id, 5, in_use=False),
        lambda: site.volumes.delete_volume(site.ctxt, volume_id, force=True),
        lambda: shots.take(volume_id),
        lambda: site.new(source_volume_id=volume_id),
    ):
        with pytest.raises(Invalid):
            act()
    for _ in range(2):
        site.world.answer(command, ok=True)
    shots.becomes(snapshot_id, "available")
    assert vmids(site) == before
    with pytest.raises(Invalid, match="have snapshots"):
        site.volumes.delete_volume(site.ctxt, volume_id, force=False)
    shots.endpoint.edit_volume_snapshot(site.ctxt, snapshot_id, VolumeEdit(name="second"))
    assert shots.row(snapshot_id).name == "second"
    shots.delete(snapshot_id)
    assert shots.row(snapshot_id).status == "deleting"
    with pytest.raises(Invalid, match="it is deleting"):
        shots.delete(snapshot_id)
    for _ in range(2):
        site.world.answer(shots.sent(volume_id, "remove"), ok=True, gone=True)
    shots.becomes(snapshot_id, None)
    with pytest.raises(SnapshotNotFound):
        shots.delete(snapshot_id)


def test_a_copy_has_a_holder_of_its_own(shots: Shots) -> None:
    site, volume_id = shots.site, shots.volume("copy")
    before = vmids(site)
    snapshot_id = shots.take(volume_id)
    copy = site.last(MakeVolume, snapshot_id)
    volume = site.row(volume_id)
    assert (copy.source, copy.size_gib) == (VolumeSource(volume.volid), 2)
    assert copy.placed.vmid != volume.vmid
    made = MadeVolume(f"data:vm-{copy.placed.vmid}-disk-0", 2 << 30, "copy")
    site.world.answer(copy, ok=True, volume=made)
    row = shots.becomes(snapshot_id, "available")
    assert (row.vmid, row.volid) == (copy.placed.vmid, made.volid)
    # It is no snapshot of Proxmox VE's, to which the volume could be brought back.
    with pytest.raises(Invalid, match="are copies"):
        shots.endpoint.revert_volume(site.ctxt, volume_id, snapshot_id)
    # A volume of it is a copy of the copy.
    second = site.new(2, snapshot_id=snapshot_id)
    assert site.last(MakeVolume, second).source == VolumeSource(made.volid)
    with pytest.raises(Invalid, match="it is copied"):
        shots.delete(snapshot_id)
    site.world.answer(site.last(MakeVolume, second), ok=True, volume=made)
    site.becomes(second, "available")
    shots.delete(snapshot_id)
    removal = site.last(RemoveVolume, snapshot_id)
    assert removal.volid == made.volid
    site.world.answer(removal, ok=True, gone=True)
    shots.becomes(snapshot_id, None)
    assert vmids(site) == before + 1


def test_a_copy_that_fails_leaves_nothing(shots: Shots) -> None:
    site, volume_id = shots.site, shots.volume("copy")
    before = vmids(site)
    clean = shots.take(volume_id)
    site.world.answer(site.last(MakeVolume, clean), ok=False, failure=FULL, gone=True)
    assert shots.becomes(clean, "error").fault == "It is full."
    assert vmids(site) == before
    unclean = shots.take(volume_id)
    site.world.answer(site.last(MakeVolume, unclean), ok=False, failure=FULL)
    shots.becomes(unclean, "error")
    site.world.answer(site.last(RemoveVolume, unclean), ok=True, gone=True)
    eventually(lambda: vmids(site) == before)
    for one in (clean, unclean):
        shots.delete(one)
        assert shots.row(one) is None


@pytest.mark.parametrize("way", ["online", "offline", "copy"])
def test_while_a_server_has_the_volume(shots: Shots, way: str) -> None:
    site, volume_id = shots.site, shots.volume(way)
    server = a_server(site)
    site.attached(server, volume_id)
    with pytest.raises(Invalid, match="status must be available, but"):
        shots.take(volume_id)
    if way != "online":
        with pytest.raises(Invalid, match="detach"):
            shots.take(volume_id, in_use=True)
        return
    shots.take(volume_id, in_use=True)
    row = site.world.row(server)
    assert shots.sent(volume_id, "take").user == VolumeUser(server, row.node, row.vmid)


def test_one_inside_of_a_volume_is_removed_while_no_server_has_that_open(shots: Shots) -> None:
    site, volume_id = shots.site, shots.volume("offline")
    snapshot_id = shots.taken(volume_id)
    server = a_server(site)
    site.attached(server, volume_id)
    before = site.world.rows(SNAPSHOTS)
    with pytest.raises(Invalid, match=f"stop server {server}, or detach volume {volume_id}"):
        shots.delete(snapshot_id)
    assert site.world.rows(SNAPSHOTS) == before
    table = schema.servers
    stopped = table.update().where(table.c.uuid == server).values(vm_state="stopped")
    site.world.conductor.store.run(lambda connection: connection.execute(stopped))
    shots.delete(snapshot_id)
    assert shots.row(snapshot_id).status == "deleting"


def test_the_volume_is_brought_back_to_the_last_one_only(shots: Shots) -> None:
    site, volume_id = shots.site, shots.volume("offline")
    with pytest.raises(Invalid, match="has no snapshots"):
        shots.endpoint.revert_volume(site.ctxt, volume_id, volume_id)
    first, last = shots.taken(volume_id), shots.taken(volume_id)
    with pytest.raises(Invalid, match="not the latest one"):
        shots.endpoint.revert_volume(site.ctxt, volume_id, first)
    shots.endpoint.revert_volume(site.ctxt, volume_id, last)
    assert site.row(volume_id).status == "reverting"
    with pytest.raises(Invalid, match="is reverting"):
        shots.delete(first)
    command = shots.sent(volume_id, "revert")
    assert command.name == shots.row(last).snapname
    site.world.answer(command, ok=True)
    site.becomes(volume_id, "available")
    shots.endpoint.revert_volume(site.ctxt, volume_id, last)
    site.world.answer(shots.sent(volume_id, "revert", 2), ok=False, failure=USED)
    assert site.becomes(volume_id, "error").fault == "VM 7 on pve1 uses it."


def test_a_volume_of_a_snapshot_is_made_where_its_holder_is(shots: Shots) -> None:
    site, volume_id = shots.site, shots.volume("online")
    snapshot_id = shots.taken(volume_id)
    with pytest.raises(Invalid, match="cannot be smaller than the snapshot size 2GB"):
        site.new(1, snapshot_id=snapshot_id)
    made = site.new(3, snapshot_id=snapshot_id)
    volume, command = site.row(volume_id), site.last(MakeVolume, made)
    assert command.placed.host == volume.host
    assert command.source == VolumeSource(
        volume.volid, volume_id, volume.vmid, shots.row(snapshot_id).snapname
    )
    assert site.row(made).type_id == volume.type_id
    with pytest.raises(Invalid, match="it is copied"):
        shots.delete(snapshot_id)
    site.world.answer(command, ok=True, volume=MadeVolume("data:vm-1-disk-0", 3 << 30, "online"))
    site.becomes(made, "available")
    with pytest.raises(SnapshotNotFound):
        site.new(2, snapshot_id=volume_id)


def test_a_volume_of_a_volume_must_rest(shots: Shots) -> None:
    site, volume_id = shots.site, shots.volume("online")
    made = site.new(2, source_volume_id=volume_id)
    assert site.last(MakeVolume, made).source == VolumeSource(site.row(volume_id).volid)
    server = a_server(site)
    with pytest.raises(Invalid, match="it is copied"):
        site.attach(server, volume_id)
    site.world.answer(
        site.last(MakeVolume, made), ok=True, volume=MadeVolume("data:vm-1-disk-0", 2 << 30)
    )
    site.becomes(made, "available")
    site.attach(server, volume_id)
    with pytest.raises(Invalid, match="Take a snapshot"):
        site.new(2, source_volume_id=volume_id)


@pytest.mark.parametrize("of", ["snapshot", "volume"])
def test_a_copy_that_gets_another_image_lets_go_of_its_source(shots: Shots, of: str) -> None:
    site, volume_id = shots.site, shots.volume("online")
    source = shots.taken(volume_id) if of == "snapshot" else None
    more = {"snapshot_id": source} if source else {"source_volume_id": volume_id}
    made = site.made(2, **more)
    site.volumes.reimage_volume(site.ctxt, made, IMAGE, reserved=False)
    assert site.row(made).status == "downloading"
    if source is None:
        site.volumes.delete_volume(site.ctxt, volume_id, force=False)
        assert site.row(volume_id).status == "deleting"
    else:
        shots.delete(source)
        assert shots.row(source).status == "deleting"


@pytest.mark.parametrize("way", ["online", "copy"])
def test_a_cascade_removes_snapshots_before_their_volume(shots: Shots, way: str) -> None:
    site, volume_id = shots.site, shots.volume(way)
    before = vmids(site)
    both: list[str] = []
    for _ in range(2):
        one = shots.take(volume_id)
        if way == "copy":
            made = MadeVolume(f"data:of-{one[:8]}", 2 << 30, way)
            site.world.answer(site.last(MakeVolume, one), ok=True, volume=made)
        else:
            site.world.answer(shots.sent(volume_id, "take", len(both) + 1), ok=True)
        shots.becomes(one, "available")
        both.append(one)
    site.volumes.delete_volume(site.ctxt, volume_id, force=False, cascade=True)
    assert site.row(volume_id).status == "deleting"
    for number in range(2):
        assert not [c for _, c in site.world.compute.sent if _is_removal(c, volume_id)]
        if way == "copy":
            site.world.answer(site.last(RemoveVolume, both[number]), ok=True, gone=True)
        else:
            site.world.answer(shots.sent(volume_id, "remove", number + 1), ok=True, gone=True)
        eventually(lambda left=1 - number: len(site.world.rows(SNAPSHOTS)) == left)  # type: ignore[misc]
    site.world.answer(site.last(RemoveVolume, volume_id), ok=True, gone=True)
    site.becomes(volume_id, None)
    assert vmids(site) == before - 1


def _is_removal(command: Any, volume_id: str) -> bool:
    return isinstance(command, RemoveVolume) and command.resource_id == volume_id


def test_a_snapshot_that_stays_keeps_its_volume(shots: Shots) -> None:
    site, volume_id = shots.site, shots.volume("offline")
    snapshot_id = shots.taken(volume_id)
    site.volumes.delete_volume(site.ctxt, volume_id, force=False, cascade=True)
    site.world.answer(shots.sent(volume_id, "remove"), ok=False, failure=USED)
    assert shots.becomes(snapshot_id, "error_deleting").fault == "VM 7 on pve1 uses it."
    assert site.becomes(volume_id, "error_deleting").fault == "VM 7 on pve1 uses it."
    site.volumes.delete_volume(site.ctxt, volume_id, force=False, cascade=True)
    site.world.answer(shots.sent(volume_id, "remove", 2), ok=True, gone=True)
    site.world.answer(site.last(RemoveVolume, volume_id), ok=True, gone=True)
    site.becomes(volume_id, None)


def test_quota_and_strangers(shots: Shots) -> None:
    site, volume_id = shots.site, shots.volume("online")
    site.world.conductor.cloud.conf.set_override("gigabytes", 3, "quota")
    with pytest.raises(QuotaExceeded, match="gigabytes"):
        shots.take(volume_id)
    assert site.world.rows(schema.volume_snapshots) == []
    site.world.conductor.cloud.conf.set_override("gigabytes", 10, "quota")
    snapshot_id = shots.taken(volume_id)
    strangers = RequestContext(user_id="x", project_id="other", roles=["member"])
    for act in (
        lambda: shots.endpoint.delete_volume_snapshot(strangers, snapshot_id),
        lambda: shots.endpoint.edit_volume_snapshot(strangers, snapshot_id, VolumeEdit(name="x")),
    ):
        with pytest.raises(SnapshotNotFound):
            act()
    assert shots.row(snapshot_id).status == "available"
