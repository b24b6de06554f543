"""Servers that boot from volumes are rebuilt, and volumes get other images, by the record."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import ids
from common.errors import Conflict, ImageNotFound, Invalid
from common.messages.commands import Destroy, EndSwap, MakeVolume, RemoveVolume, Swap
from common.messages.reports import Category, Failure, MadeVolume
from common.resources.states import PowerState
from conductor.audit.heal import Healer
from conductor.audit.kinds import Verb
from conductor.audit.proof import RefusedError
from conductor.endpoints.volumes.snapshots import VolumeSnapshotEndpoint
from conductor.rpc.servers.servers import BlockDevice, RebuildServer
from conductor.rpc.volumes.snapshots import NewVolumeSnapshot
from conductor.servers.disks.root_volume import RootVolume
from conductor.store.audits.findings import Kept
from conductor.store.ledger import operations as ledger
from db import schema
from tests.functional.conductor.harness import IMAGE
from tests.functional.conductor.test_boot_volumes import ROOT, Boots, a_site
from tests.functional.conductor.test_volumes import FULL, USED
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401
from tests.functional.waiting import eventually

pytestmark = pytest.mark.sampled(2)

OTHER = ids.named("image", "ubuntu-24.04")
_ENDED = {"done", "failed"}


class Rebuilds(Boots):
    """Rebuilds servers that boot from volumes."""

    def other_image(self, **changes: Any) -> str:
        """Have another image in the cluster."""

        def work(connection: sa.Connection) -> None:
            query = sa.select(schema.images).where(schema.images.c.id == IMAGE)
            row = dict(connection.execute(query).mappings().one())
            row = {schema.images.c[key].key: value for key, value in row.items()}
            more = {"id": OTHER, "name": "ubuntu", "properties": {"os_distro": "ubuntu"}}
            row |= more | {"locations": {"sim1": "shared:import/ubuntu.qcow2"}} | changes
            connection.execute(schema.images.insert().values(**row))

        self.world.conductor.store.run(work)
        return OTHER

    def rebuilt(self, server: str, image_id: str = OTHER, **more: Any) -> MakeVolume:
        """Begin a rebuild that gives the root volume an image; return what makes its content."""
        root = self.volume_of(server)
        count = self.count(MakeVolume, root)
        properties = {"os_distro": "ubuntu"}
        request = RebuildServer(image_id, properties, reimages=True, **more)
        self.world.rebuild(server, request)
        command: MakeVolume = self.last(MakeVolume, root, count + 1)
        return command

    def count(self, kind: type[Any], uuid: str) -> int:
        sent = [one for _, one in self.world.compute.sent if type(one) is kind]
        return sum(one.resource_id == uuid for one in sent)

    def content(self, command: MakeVolume) -> str:
        """Have the new content made; return its volid."""
        volid = f"{command.storage}:vm-{command.placed.vmid}-disk-0"
        self.world.answer(command, ok=True, volume=MadeVolume(volid, command.size_gib << 30))
        return volid

    def ended(self) -> None:
        eventually(lambda: {o.state for o in self.world.rows(schema.operations)} <= _ENDED)

    def vmids(self) -> set[int]:
        return {one.vmid for one in self.world.rows(schema.vmids)}


@pytest.fixture(params=["sqlite", "postgresql"])
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Rebuilds]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    for boots in a_site(tmp_path, url):
        yield Rebuilds(boots.world)


@pytest.fixture
def lone(tmp_path: Path) -> Iterator[Rebuilds]:
    """On SQLite alone."""
    for boots in a_site(tmp_path):
        yield Rebuilds(boots.world)


def test_its_volume_gets_another_image(site: Rebuilds) -> None:
    server = site.active(dataclasses.replace(ROOT, tag="system"))
    root, other = site.volume_of(server), site.other_image()
    before, vmids = site.row(root), site.vmids()
    (attachment,) = site.attached(server)
    make = site.rebuilt(server)
    assert site.row(root).status == "downloading"
    assert (site.row(root).volid, site.row(root).vmid) == (before.volid, before.vmid)
    assert make.source is not None
    assert make.source.volid == "shared:import/ubuntu.qcow2"
    assert make.placed.vmid not in vmids
    assert (make.placed.host, make.size_gib) == (site.world.row(server).host, before.size_gib)
    assert site.world.row(server).task_state == "rebuild_spawning"
    (preview,) = site.world.scheduler.asked[-1:]
    assert (preview.volume_backed, preview.volumes[0].image_id) == (True, other)
    volid = site.content(make)
    swap = site.last(Swap, server)
    assert swap.root.volid == volid
    assert (swap.root.holder.vmid, swap.root.serial) == (make.placed.vmid, root[:20])
    assert (swap.image, swap.running) == (None, True)
    (device,) = swap.config_drive.meta_data["devices"]
    assert (device["serial"], device["tags"]) == (root[:20], ["system"])
    with pytest.raises(Conflict, match="an operation is under way"):
        site.volumes.reset_volume(site.ctxt, root, "in-use")
    # The record has the old one as long as the VM may name it.
    assert site.row(root).volid == before.volid
    # The report of what was made comes twice: it says nothing of the swap.
    site.content(make)
    site.world.answer(swap, ok=True, power_state=PowerState.RUNNING)
    end = site.last(EndSwap, server)
    assert end.keep
    row = site.becomes(root, "in-use")
    assert (row.volid, row.vmid) == (volid, make.placed.vmid)
    assert (row.image_id, row.image_metadata["image_id"]) == (other, other)
    assert (row.size_gib, row.bootable) == (before.size_gib, True)
    assert site.attached(server) == [attachment]
    site.world.answer(end, ok=True, power_state=PowerState.RUNNING)
    site.world.until(server, "active")
    assert site.world.row(server).image_id is None
    assert site.world.row(server).image_properties == {"os_distro": "ubuntu"}
    removal = site.last(RemoveVolume, root)
    assert (removal.placed.vmid, removal.volid) == (before.vmid, before.volid)
    assert [one.vmid for one in removal.users] == [site.world.row(server).vmid]
    site.world.answer(removal, ok=True, gone=True)
    site.ended()
    assert site.row(root).status == "in-use"
    assert site.vmids() == (vmids - {before.vmid}) | {make.placed.vmid}
    # It is deleted with its server, from where it is now.
    site.world.act(server, "delete")
    site.world.answer(site.last(Destroy, server), ok=True, gone=True)
    site.becomes(root, "deleting")
    last = site.last(RemoveVolume, root, 2)
    assert (last.placed.vmid, last.volid) == (make.placed.vmid, volid)
    site.world.answer(last, ok=True, gone=True)
    site.becomes(root, None)
    site.ended()


def test_the_same_volume_stays_as_it_is(site: Rebuilds) -> None:
    server = site.active(ROOT)
    root = site.row(site.volume_of(server))
    previews = len(site.world.scheduler.asked)
    site.world.rebuild(server, RebuildServer(IMAGE, changes={"name": "new"}))
    swap = site.last(Swap, server)
    assert (swap.root.volid, swap.root.holder.vmid) == (root.volid, root.vmid)
    assert len(site.world.scheduler.asked) == previews
    site.world.answer(swap, ok=True, power_state=PowerState.RUNNING)
    site.world.answer(site.last(EndSwap, server), ok=True, power_state=PowerState.RUNNING)
    site.world.until(server, "active")
    assert site.row(root.id) == root
    assert site.world.row(server).name == "new"
    assert site.count(RemoveVolume, root.id) == 0
    site.ended()


@pytest.mark.parametrize("stage", ["make", "swap"])
def test_what_fails_leaves_the_old_content(site: Rebuilds, stage: str) -> None:
    server = site.active(ROOT)
    root = site.row(site.volume_of(server))
    site.other_image()
    vmids = site.vmids()
    make = site.rebuilt(server)
    if stage == "make":
        site.world.answer(make, ok=False, failure=FULL, gone=True)
    else:
        site.content(make)
        site.world.answer(site.last(Swap, server), ok=False, failure=FULL)
        back = site.last(EndSwap, server)
        assert not back.keep
        site.world.answer(back, ok=True, power_state=PowerState.RUNNING)
    site.world.until(server, "error")
    row = site.row(root.id)
    assert (row.status, row.volid, row.vmid) == ("in-use", root.volid, root.vmid)
    assert row.image_metadata["image_id"] == IMAGE
    removal = site.last(RemoveVolume, root.id)
    assert removal.placed.vmid == make.placed.vmid
    assert [one.vmid for one in removal.users] == [site.world.row(server).vmid]
    site.world.answer(removal, ok=True, gone=True)
    site.ended()
    assert site.vmids() == vmids
    assert site.row(root.id).status == "in-use"


def test_a_lock_is_waited_for(lone: Rebuilds) -> None:
    server = lone.active(ROOT)
    lone.other_image()
    make = lone.rebuilt(server)
    locked = Failure(Category.LOCK, "The node is busy.", host=make.placed.host)
    lone.world.answer(make, ok=False, failure=locked)
    lone.world.make_due()
    again = lone.last(MakeVolume, lone.volume_of(server), 3)
    assert (again.placed, again.attempt) == (make.placed, 2)
    lone.content(again)
    assert lone.last(Swap, server).attempt == 2


@pytest.mark.parametrize("moment", ["making", "made", "swapped"])
def test_a_delete_during_a_rebuild_leaves_nothing(site: Rebuilds, moment: str) -> None:
    server = site.active(ROOT)
    root = site.row(site.volume_of(server))
    site.other_image()
    before = site.vmids() - {root.vmid, site.world.row(server).vmid}
    make = site.rebuilt(server)
    if moment != "making":
        site.content(make)
        site.last(Swap, server)
    if moment == "swapped":
        site.world.answer(site.last(Swap, server), ok=True, power_state=PowerState.RUNNING)
        site.last(EndSwap, server)
    site.world.act(server, "delete")
    site.world.answer(site.last(Destroy, server), ok=True, gone=True)
    site.world.until(server, "deleted")
    if moment == "making":
        site.content(make)
    elif moment == "made":
        site.world.answer(site.last(Swap, server), ok=True, power_state=PowerState.RUNNING)
    else:
        site.world.answer(site.last(EndSwap, server), ok=True, power_state=PowerState.RUNNING)
    holders = {root.vmid, make.placed.vmid}

    def removals() -> list[RemoveVolume]:
        sent = [one for _, one in site.world.compute.sent]
        return [one for one in sent if isinstance(one, RemoveVolume)]

    eventually(lambda: {one.placed.vmid for one in removals()} == holders)
    # Before the server's VM, which named it, was seen gone.
    (named,) = [one for one in removals() if one.users]
    for one in removals():
        site.world.answer(one, **({"ok": False, "failure": USED} if one is named else GONE))
    eventually(lambda: waits(site, named.operation_id))
    site.world.make_due()
    eventually(lambda: removals()[-1].attempt == 2)
    site.world.answer(removals()[-1], **GONE)
    site.becomes(root.id, None)
    site.ended()
    assert site.vmids() == before


GONE: dict[str, Any] = {"ok": True, "gone": True}


def waits(site: Rebuilds, operation_id: int) -> bool:
    """Return whether an operation is tried again later."""
    rows = site.world.rows(schema.operations)
    return any(row.id == operation_id and row.not_before is not None for row in rows)


def test_a_lost_rebuild_never_drops_what_the_record_took(lone: Rebuilds) -> None:
    """One conductor has ended the swap when another, which read it before, finds it overtaken."""
    server = lone.active(ROOT)
    root = lone.volume_of(server)
    lone.other_image()
    volid = lone.content(lone.rebuilt(server))
    swap = lone.last(Swap, server)
    (operation,) = [o for o in lone.world.rows(schema.operations) if o.action == "rebuild"]
    runner = lone.world.conductor.runner._flows["rebuild"]
    with lone.world.conductor.store.read() as connection:
        read = ledger.get(connection, operation.id)
    assert read is not None
    task = runner._load(read)
    lone.world.answer(swap, ok=True, power_state=PowerState.RUNNING)
    lone.becomes(root, "in-use")
    lone.world.act(server, "delete")
    RootVolume(lone.world.conductor.cloud).on_superseded(task)
    assert lone.row(root).volid == volid
    removals = [o for _, o in lone.world.compute.sent if isinstance(o, RemoveVolume)]
    assert all(one.volid != volid for one in removals)
    lone.world.answer(lone.last(Destroy, server), ok=True, gone=True)
    lone.world.until(server, "deleted")


def test_what_is_wrong_is_refused_and_changes_nothing(site: Rebuilds) -> None:
    server = site.active(ROOT, BlockDevice(size_gib=1))
    root, data = site.volume_of(server), site.volume_of(server, 1)
    other = site.other_image(min_disk_gib=9)
    shots = VolumeSnapshotEndpoint(site.world.conductor.cloud)

    def rebuild(image_id: str) -> None:
        site.world.rebuild(server, RebuildServer(image_id, reimages=True))

    with pytest.raises(Invalid, match="cannot be smaller than the image minDisk size 9GB"):
        rebuild(other)
    with pytest.raises(ImageNotFound):
        rebuild(ids.new_uuid())
    change = schema.images.update().where(schema.images.c.id == other)
    site.world.conductor.store.run(
        lambda c: c.execute(change.values(min_disk_gib=0, locations={"sim2": "x:import/y.raw"}))
    )
    with pytest.raises(Invalid, match="is not in cluster sim1"):
        rebuild(other)
    # A volume that something is done to.
    busy = schema.volumes.update().where(schema.volumes.c.id == data)
    run = site.world.conductor.store.run
    run(lambda c: c.execute(busy.values(status="detaching")))
    with pytest.raises(Invalid, match=r"must be 'in-use'\. Currently in 'detaching'"):
        rebuild(IMAGE)
    with pytest.raises(Conflict, match=r"must be 'in-use'\. Currently in 'detaching'"):
        site.world.rescue(server)
    run(lambda c: c.execute(busy.values(status="in-use", snapshot_way="online")))
    way = schema.volumes.update().where(schema.volumes.c.id == root)
    run(lambda c: c.execute(way.values(snapshot_way="online")))
    shots.create_volume_snapshot(site.ctxt, NewVolumeSnapshot(root, in_use=True))
    with pytest.raises(Invalid, match="has snapshots, which storage"):
        rebuild(IMAGE)
    assert site.row(root).status == "in-use"
    assert site.world.row(server).task_state is None
    assert [o.action for o in site.world.rows(schema.operations)].count("rebuild") == 0


# --- os-reimage


def reimage(site: Rebuilds, volume_id: str, *, reserved: bool = False) -> MakeVolume:
    count = site.count(MakeVolume, volume_id)
    site.volumes.reimage_volume(site.ctxt, volume_id, OTHER, reserved=reserved)
    command: MakeVolume = site.last(MakeVolume, volume_id, count + 1)
    return command


def test_a_volume_gets_another_image(site: Rebuilds) -> None:
    volume_id = site.made(5, image_id=IMAGE)
    site.other_image()
    before, vmids = site.row(volume_id), site.vmids()
    make = reimage(site, volume_id)
    assert site.row(volume_id).status == "downloading"
    with pytest.raises(Invalid, match="must be available or error, but current status is: down"):
        site.volumes.reimage_volume(site.ctxt, volume_id, OTHER, reserved=False)
    volid = site.content(make)
    row = site.becomes(volume_id, "available")
    assert (row.volid, row.vmid, row.image_id) == (volid, make.placed.vmid, OTHER)
    # Deleted while the old one is removed.
    site.volumes.delete_volume(site.ctxt, volume_id, force=False)
    removal = site.last(RemoveVolume, volume_id)
    assert (removal.placed.vmid, removal.volid) == (before.vmid, before.volid)
    site.world.answer(removal, ok=True, gone=True)
    again = site.last(RemoveVolume, volume_id, 2)
    assert (again.placed.vmid, again.volid) == (make.placed.vmid, volid)
    site.world.answer(again, ok=True, gone=True)
    site.becomes(volume_id, None)
    site.ended()
    assert site.vmids() == vmids - {before.vmid}


def test_a_volume_whose_image_fails_has_its_old_content(site: Rebuilds) -> None:
    volume_id = site.made(5, image_id=IMAGE)
    site.other_image()
    before, vmids = site.row(volume_id), site.vmids()
    make = reimage(site, volume_id)
    site.world.answer(make, ok=False, failure=FULL, gone=True)
    row = site.becomes(volume_id, "error")
    assert (row.volid, row.vmid, row.fault) == (before.volid, before.vmid, "It is full.")
    removal = site.last(RemoveVolume, volume_id)
    assert removal.placed.vmid == make.placed.vmid
    # What can't be removed says nothing of the volume itself.
    site.world.answer(removal, ok=False, failure=USED)
    site.ended()
    assert site.row(volume_id).status == "error"
    # From there it may be tried again; Cinder leaves the status as it was.
    site.content(reimage(site, volume_id))
    row = site.becomes(volume_id, "error")
    eventually(lambda: site.row(volume_id).volid != before.volid)
    assert site.row(volume_id).fault is None
    site.world.answer(site.last(RemoveVolume, volume_id, 2), ok=True, gone=True)
    site.ended()
    assert before.vmid not in site.vmids()
    assert vmids - {before.vmid} < site.vmids()
    # What could not be removed still has its VMID, and an audit says so.
    site.world.leaves = {"vmid_without_owner"}


def test_a_volume_that_is_deleted_during_a_reimage_is_removed_whole(site: Rebuilds) -> None:
    volume_id = site.made(5, image_id=IMAGE)
    site.other_image()
    before, vmids = site.row(volume_id), site.vmids()
    make = reimage(site, volume_id)
    site.volumes.delete_volume(site.ctxt, volume_id, force=True)
    assert site.row(volume_id).status == "deleting"
    site.content(make)

    def removals() -> list[RemoveVolume]:
        sent = [one for _, one in site.world.compute.sent]
        return [one for one in sent if isinstance(one, RemoveVolume)]

    eventually(lambda: len(removals()) == 2)
    assert {one.placed.vmid for one in removals()} == {before.vmid, make.placed.vmid}
    for one in removals():
        site.world.answer(one, ok=True, gone=True)
    site.becomes(volume_id, None)
    site.ended()
    assert site.vmids() == vmids - {before.vmid}


def test_what_a_volume_must_be(lone: Rebuilds) -> None:
    lone.other_image()
    server = lone.active(ROOT)
    volume_id = lone.made(5, image_id=IMAGE)
    with pytest.raises(Invalid, match="must be available or error, but current status is: in-use"):
        lone.volumes.reimage_volume(lone.ctxt, lone.volume_of(server), OTHER, reserved=False)
    lone.volumes.reset_volume(lone.ctxt, volume_id, "reserved")
    with pytest.raises(Invalid, match="current status is: reserved"):
        lone.volumes.reimage_volume(lone.ctxt, volume_id, OTHER, reserved=False)
    make = reimage(lone, volume_id, reserved=True)
    lone.content(make)
    lone.becomes(volume_id, "reserved")


def free(site: Rebuilds, vmid: int) -> None:
    """Heal an old finding that says that nobody has a VMID."""
    subject, verb = f"sim1/{vmid}", Verb.FREE_VMID
    found = Kept(
        1, "vmid_without_owner", subject, verb, None, "sim1", None, vmid, {}, 0, None, None
    )
    conductor = site.world.conductor
    Healer(conductor.cloud, conductor.runner).heal(found, asked=False)


def test_an_audit_never_frees_the_vmid_of_a_holder(site: Rebuilds) -> None:
    server, volume_id = site.active(ROOT), site.made(5, image_id=IMAGE)
    root = site.volume_of(server)
    site.other_image()
    old, vmids = [site.row(root).vmid, site.row(volume_id).vmid], site.vmids()
    makes = [site.rebuilt(server), reimage(site, volume_id)]
    new = [one.placed.vmid for one in makes]
    for vmid in new:
        with pytest.raises(RefusedError, match="being created or removed there"):
            free(site, vmid)
    for vmid in old:
        with pytest.raises(RefusedError, match="A volume uses it"):
            free(site, vmid)
    for one in makes:
        site.content(one)
    site.world.answer(site.last(Swap, server), ok=True, power_state=PowerState.RUNNING)
    site.world.answer(site.last(EndSwap, server), ok=True, power_state=PowerState.RUNNING)
    site.world.until(server, "active")
    removals = [site.last(RemoveVolume, one) for one in (root, volume_id)]
    assert [one.placed.vmid for one in removals] == old
    for vmid in old:
        with pytest.raises(RefusedError, match="being created or removed there"):
            free(site, vmid)
    for one in removals:
        site.world.answer(one, ok=True, gone=True)
    site.ended()
    for vmid in new:
        with pytest.raises(RefusedError, match="A volume uses it"):
            free(site, vmid)
    assert site.vmids() == (vmids - set(old)) | set(new)
