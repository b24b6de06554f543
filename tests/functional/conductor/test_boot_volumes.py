"""Servers that are created with volumes: made, waited for, made elsewhere, freed, removed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common import ids
from common.errors import Conflict, Invalid, MicronovaError, QuotaExceeded
from common.messages.commands import (
    Build,
    Destroy,
    MakeVolume,
    Placed,
    Power,
    RemoveVolume,
    Shape,
    SnapVolume,
)
from common.messages.facts import StorageFacts
from common.messages.reports import Category, Failure, MadeVolume
from common.messages.scheduling import VolumeNeed
from common.resources.states import PowerState, VmState
from conductor.images import remove_image as user_images
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.servers import BlockDevice, CreateServers, NewServerImage
from conductor.servers.create.create import Create
from conductor.servers.disks import begin_image
from conductor.servers.record.reset_state import reset_state
from conductor.store.images import server_images
from conductor.volumes.volume_types import VolumeTypes
from db import schema
from tests.functional.conductor.harness import IMAGE, World
from tests.functional.conductor.test_security_groups import at_once
from tests.functional.conductor.test_volumes import DATA, FULL, Site
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401
from tests.functional.waiting import eventually

pytestmark = pytest.mark.sampled(2)

OWN = StorageFacts("own", "lvmthin", False, True, 1000, 900, ("images",))
SICK = Failure(Category.NODE_UNHEALTHY, "The node is offline.", host="pve1")
#: a root disk of an image
ROOT = BlockDevice(size_gib=4, image_id=IMAGE, boot=True, delete_on_termination=True)


class Boots(Site):
    """Creates servers with volumes, and plays their agents."""

    def create(self, *devices: BlockDevice, **more: Any) -> str:
        return self.create_all(*devices, **more)[0]

    def create_all(self, *devices: BlockDevice, image: str = "", **more: Any) -> list[str]:
        """``image``: named beside a root volume."""
        backed = any(one.boot for one in devices)
        values: dict[str, Any] = {"networks": (), "volumes": devices, **more}
        flavor, image = FlavorSnapshot("1", "m1.tiny", 1, 512, 1), image if backed else IMAGE
        request = CreateServers("web", flavor, image, **values)
        conductor = self.world.conductor
        created, operations = conductor.creates.create(self.ctxt, request)
        if len(operations) > 1:
            # By one decision, as in the endpoint.
            conductor.runner.submit_many(operations, Create(conductor.cloud).begin_many)
        else:
            conductor.runner.submit(operations[0])
        return list(created.uuids)

    def attached(self, server: str) -> list[Any]:  # type: ignore[override]
        found = self.world.rows(schema.volume_attachments)
        return sorted((one for one in found if one.server_uuid == server), key=lambda o: o.slot)

    def volume_of(self, server: str, slot: int = 0) -> str:
        return str(next(one for one in self.attached(server) if one.slot == slot).volume_id)

    def make(self, volume_id: str) -> MakeVolume:
        """Have a volume made that is being made."""
        command: MakeVolume = self.last(MakeVolume, volume_id)
        volid = f"{command.storage}:vm-{command.placed.vmid}-disk-0"
        made = MadeVolume(volid, command.size_gib << 30)
        self.world.answer(command, ok=True, volume=made)
        return command

    def build(self, server: str, count: int = 1) -> Build:
        command: Build = self.last(Build, server, count)
        return command

    def built(self, server: str, count: int = 1) -> Build:
        command = self.build(server, count)
        self.world.answer(command, ok=True, power_state=PowerState.RUNNING)
        self.world.until(server, "active")
        return command

    def active(self, *devices: BlockDevice, **more: Any) -> str:
        server = self.create(*devices, **more)
        for one in self.attached(server):
            if one.with_build:
                self.make(one.volume_id)
        self.built(server)
        return server

    def volumes_left(self) -> list[str]:
        return [one.status for one in self.world.rows(schema.volumes)]


def a_site(tmp_path: Path, url: str | None = None) -> Iterator[Boots]:
    world = World(tmp_path, url=url)
    world.storages.append(DATA)
    world.beat()
    world.conductor.runner.start()
    yield Boots(world)
    world.close()
    for pool in (world.conductor.store._writer, world.conductor.store._reader):
        pool.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Boots]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    yield from a_site(tmp_path, url)


@pytest.fixture
def lone(tmp_path: Path) -> Iterator[Boots]:
    """On SQLite alone."""
    yield from a_site(tmp_path)


def test_a_volume_is_made_of_an_image_then_the_server_on_it(site: Boots) -> None:
    data = BlockDevice(size_gib=2, tag="data")
    server = site.create(dataclasses.replace(ROOT, tag="system"), data)
    site.world.until(server, "building", "block_device_mapping")
    root, other = (one.volume_id for one in site.attached(server))
    assert (site.row(root).status, site.row(root).bootable) == ("downloading", True)
    assert (site.row(other).status, site.row(other).name) == ("creating", f"{server}-blank-vol")
    (asked,) = site.world.scheduler.asked
    assert (asked.disk_gib, asked.image_id, asked.volume_backed) == (0, None, True)
    assert asked.volumes == (VolumeNeed(gib=4, image_id=IMAGE), VolumeNeed(gib=2))
    command = site.last(MakeVolume, root)
    assert command.source.volid == "shared:import/debian-12.qcow2"
    assert (command.placed.host, command.size_gib) == (site.world.row(server).host, 4)
    # It waits for both, without a lease.
    site.make(root)
    site.becomes(root, "attaching")
    (operation,) = [o for o in site.world.rows(schema.operations) if o.action == "create"]
    eventually(lambda: operation_of(site, operation.id).lease_owner is None)
    assert operation_of(site, operation.id).state == "queued"
    site.make(other)
    build = site.build(server)
    assert (build.image, build.template, build.disk_gib) == (None, None, 0)
    assert build.boots_from_volume
    assert [(one.slot, one.serial) for one in build.volumes] == [(0, root[:20]), (1, other[:20])]
    holder = site.row(root)
    assert build.volumes[0].holder == Placed(holder.host, "sim1", holder.node, holder.vmid)
    assert build.volumes[0].volid == holder.volid
    devices = build.config_drive.meta_data["devices"]  # type: ignore[union-attr]
    assert [(one["serial"], one["tags"]) for one in devices] == [
        (root[:20], ["system"]),
        (other[:20], ["data"]),
    ]
    site.built(server)
    assert [site.row(one).status for one in (root, other)] == ["in-use", "in-use"]
    assert [(one.status, one.with_build) for one in site.attached(server)] == [
        ("attached", False),
        ("attached", False),
    ]
    row = site.world.row(server)
    assert (row.image_id, row.disk_gib, row.flavor["disk_gib"]) == (None, 0, 1)
    events = [one.name for one in site.world.rows(schema.operation_events)]
    assert events.count("conductor_make_volumes") == 1
    # The root volume is deleted with it, the other remains.
    site.world.act(server, "delete")
    site.world.answer(site.last(Destroy, server), ok=True, gone=True)
    site.becomes(other, "available")
    site.world.answer(site.last(RemoveVolume, root), ok=True, gone=True)
    site.becomes(root, None)


def operation_of(site: Boots, number: int) -> Any:
    return next(one for one in site.world.rows(schema.operations) if one.id == number)


def test_a_volume_keeps_of_its_image_what_cinder_keeps(site: Boots) -> None:
    """Also a volume made with a server, or of its snapshot; no property replaces the ID."""
    lies = {"image_id": "other", "min_ram": "99", "os_distro": "debian", "hw_disk_bus": "sata"}
    changed = schema.images.update().values(properties=lies, min_ram_mib=64, md5="abc")
    site.world.conductor.store.run(lambda c: c.execute(changed))
    server = site.create(ROOT)
    site.world.until(server, "building", "block_device_mapping")
    root = site.volume_of(server)
    kept = site.row(root).image_metadata
    assert {name: kept[name] for name in ("image_id", "min_ram", "checksum")} == {
        **{"image_id": IMAGE, "min_ram": "64", "checksum": "abc"}
    }
    assert (kept["os_distro"], kept["hw_disk_bus"]) == ("debian", "sata")
    site.make(root)
    site.built(server)
    snapped(site, way="online")
    imaged(site, server)
    site.world.answer(site.last(SnapVolume, root), ok=True)
    eventually(
        lambda: {o.status for o in site.world.rows(schema.volume_snapshots)} == {"available"}
    )
    (shot,) = site.world.rows(schema.volume_snapshots)
    other = site.create(BlockDevice(size_gib=4, snapshot_id=shot.id, boot=True))
    copy = site.row(site.volume_of(other))
    assert (copy.image_metadata, copy.bootable) == (kept, True)


def test_an_existing_volume_is_its_root_disk(site: Boots) -> None:
    volume_id = site.made(5, image_id=IMAGE)
    device = BlockDevice(volume_id, boot=True)
    server = site.create(device)
    assert site.row(volume_id).status == "attaching"
    with pytest.raises(Invalid, match="status must be available, but current status"):
        site.create(device)
    with pytest.raises(Conflict, match="an operation is under way"):
        site.volumes.reset_volume(site.ctxt, volume_id, "error")
    build = site.built(server)
    assert [(one.volume_id, one.slot) for one in build.volumes] == [(volume_id, 0)]
    assert site.row(volume_id).status == "in-use"
    assert site.world.scheduler.asked[-1].volumes == (VolumeNeed("data", "sim1"),)
    with pytest.raises(Invalid, match="Cannot detach a root device volume"):
        site.plugs.detach_volume(site.ctxt, server, volume_id)
    site.world.act(server, "delete")
    site.world.answer(site.last(Destroy, server), ok=True, gone=True)
    site.becomes(volume_id, "available")


def test_an_image_named_beside_a_root_volume_is_only_shown(site: Boots) -> None:
    """No disk is made of it, nor a template kept for it; the volume needn't even be bootable."""
    image = "0f6c1a9e-0000-4000-8000-00000000abcd"
    row = {**site.world.rows(schema.images)[0]._mapping, "id": image, "locations": {}}
    row["min_disk_gib"] = 900
    site.world.conductor.store.run(lambda c: c.execute(schema.images.insert().values(**row)))
    volume_id = site.made(5)
    with pytest.raises(Invalid, match="is not bootable"):
        site.create(BlockDevice(volume_id, boot=True))
    server = site.create(BlockDevice(volume_id, boot=True), image=image)
    build = site.built(server)
    asked = site.world.scheduler.asked[-1]
    assert (asked.image_id, asked.volume_backed, asked.disk_gib) == (None, True, 0)
    assert (build.image, build.boots_from_volume) == (None, True)
    assert site.world.row(server).image_id == image
    with site.world.conductor.store.read() as connection:
        assert not server_images.has_servers(connection, image)
    snapped(site, way="online")
    copy = imaged(site, server)
    assert copy.properties["base_image_ref"] == image
    assert (copy.min_disk_gib, copy.disk_format) == (0, "")
    site.world.answer(site.last(SnapVolume, volume_id), ok=True)
    site.world.resize(server, FlavorSnapshot("2", "m1.other", 2, 1024, 30))
    site.world.answer(site.last(Shape, server), ok=True, power_state=PowerState.RUNNING)
    site.world.until(server, "resized")
    site.world.end_resize(server, "confirmResize")
    site.world.until(server, "active")
    assert site.world.scheduler.asked[-1].image_id is None
    assert site.world.placement.amounts[server] == {"VCPU": 2, "MEMORY_MB": 1024}
    assert site.world.row(server).image_id == image


def test_one_with_a_disk_of_its_own_gets_volumes_beside(site: Boots) -> None:
    there = site.made(2)
    server = site.active(BlockDevice(there), BlockDevice(size_gib=1))
    build = site.build(server)
    assert build.image is not None
    assert build.disk_gib == 1
    assert [one.slot for one in build.volumes] == [1, 2]
    assert not build.boots_from_volume


def test_one_volume_boots_one_server(site: Boots) -> None:
    volume_id = site.made(5, image_id=IMAGE)
    lost: list[MicronovaError] = []

    def one() -> None:
        try:
            site.create(BlockDevice(volume_id, boot=True))
        except MicronovaError as error:
            lost.append(error)

    at_once(*[one] * 4)
    assert len(lost) == 3, lost
    (attached,) = site.world.rows(schema.volume_attachments)
    assert len([1 for one in site.world.rows(schema.servers)]) == 1
    site.built(attached.server_uuid)


def test_several_servers_each_get_their_own(site: Boots) -> None:
    servers = site.create_all(ROOT, min_count=2, max_count=2)
    volumes = {site.volume_of(server) for server in servers}
    assert len(volumes) == 2
    for one in volumes:
        site.make(one)
    for server in servers:
        assert site.built(server).volumes[0].volume_id == site.volume_of(server)
    there = site.made(5, image_id=IMAGE)
    with pytest.raises(Invalid, match="to multiple instances"):
        site.create_all(BlockDevice(there, boot=True), min_count=2, max_count=2)
    assert site.row(there).status == "available"


def test_what_is_wrong_is_refused_and_nothing_is_written(site: Boots) -> None:
    blank = site.made(2)
    foreign = site.made(2)
    change = schema.volumes.update().where(schema.volumes.c.id == foreign)
    site.world.conductor.store.run(lambda c: c.execute(change.values(project_id="other")))
    types = VolumeTypes(site.world.conductor.cloud)
    types.follow()
    gone = ids.new_uuid()
    many = [BlockDevice(size_gib=1)] * 40
    for devices, words in (
        ((BlockDevice(blank, boot=True),), f"Block Device {blank} is not bootable"),
        ((BlockDevice(gone, boot=True),), f"failed to get volume {gone}"),
        ((BlockDevice(foreign),), f"failed to get volume {foreign}"),
        ((ROOT, BlockDevice(blank), BlockDevice(blank)), "named twice"),
        ((dataclasses.replace(ROOT, image_id=gone),), f"failed to get image {gone}"),
        ((dataclasses.replace(ROOT, type_id=gone),), f"Volume type {gone} could not be found"),
        (
            (BlockDevice(size_gib=2, snapshot_id=gone, boot=True),),
            f"failed to get snapshot {gone}",
        ),
        ((ROOT, *many), "maximum allowed number of disk devices"),
    ):
        with pytest.raises(Invalid, match=words):
            site.create(*devices)
    site.world.conductor.cloud.conf.set_override("gigabytes", 6, "quota")
    with pytest.raises(QuotaExceeded, match="quota is 6G and 2G has been consumed"):
        site.create(ROOT, BlockDevice(size_gib=1))
    assert site.world.rows(schema.servers) == []
    assert site.world.rows(schema.volume_attachments) == []
    assert len(site.world.rows(schema.volumes)) == 2
    assert site.row(blank).status == "available"


def test_a_build_that_fails_frees_and_removes(site: Boots) -> None:
    """New volumes are removed with the claim and the VMID; others are available again."""
    there = site.made(2)
    kept = BlockDevice(there, delete_on_termination=True)
    server = site.create(ROOT, kept)
    root = site.volume_of(server)
    site.make(root)
    site.world.answer(site.build(server), ok=False, failure=FULL, gone=True)
    site.world.until(server, "error")
    site.becomes(there, "available")
    removal = site.last(RemoveVolume, root)
    assert site.row(root).status == "deleting"
    assert site.attached(server) == []
    site.world.answer(removal, ok=True, gone=True)
    site.becomes(root, None)
    assert site.volumes_left() == ["available"]
    site.world.act(server, "delete")
    site.world.until(server, "deleted")


def test_while_its_vm_may_be_there_volumes_stay(site: Boots) -> None:
    there = site.made(2)
    server = site.create(ROOT, BlockDevice(there))
    root = site.volume_of(server)
    site.make(root)
    site.world.answer(site.build(server), ok=False, failure=FULL, gone=False)
    site.world.until(server, "error")
    assert [site.row(one).status for one in (root, there)] == ["attaching", "attaching"]
    site.world.make_due()
    site.world.answer(site.last(Destroy, server), ok=True, gone=True)
    site.becomes(there, "available")
    site.world.answer(site.last(RemoveVolume, root), ok=True, gone=True)
    site.becomes(root, None)


def test_a_volume_that_cannot_be_made_ends_the_build(site: Boots) -> None:
    there = site.made(2)
    server = site.create(ROOT, BlockDevice(there))
    root = site.volume_of(server)
    corrupt = Failure(Category.IMAGE_CORRUPT, "The image is damaged.", host="pve1")
    site.world.answer(site.last(MakeVolume, root), ok=False, failure=corrupt, gone=True)
    site.world.until(server, "error")
    (fault,) = [one for one in site.world.rows(schema.faults) if one.server_uuid == server]
    assert f"Volume {root} could not be made: The image is damaged." in fault.message
    site.becomes(there, "available")
    assert site.volumes_left() == ["available"]
    assert site.world.placement.claims == {}


def test_one_that_fails_here_is_made_on_another_host(site: Boots) -> None:
    """What was made is removed, and its successor has the same place in the server."""
    server = site.create(dataclasses.replace(ROOT, tag="root"), BlockDevice(size_gib=1))
    root, other = (one.volume_id for one in site.attached(server))
    site.make(other)
    first = site.last(MakeVolume, root)
    # What is left of it is not known.
    site.world.answer(first, ok=False, failure=SICK, gone=False)
    site.becomes(root, "deleting")
    site.becomes(other, "deleting")
    eventually(lambda: [one.volume_id for one in site.attached(server)] != [root, other])
    again, too = (one.volume_id for one in site.attached(server))
    assert {again, too} & {root, other} == set()
    assert [(one.slot, one.tag, one.with_build) for one in site.attached(server)] == [
        (0, "root", True),
        (1, None, True),
    ]
    second = site.make(again)
    assert second.placed.host != first.placed.host
    site.make(too)
    assert [one.volume_id for one in site.build(server).volumes] == [again, too]
    site.built(server)
    for gone in (root, other):
        site.world.answer(site.last(RemoveVolume, gone), ok=True, gone=True)
        site.becomes(gone, None)
    assert sorted(site.volumes_left()) == ["in-use", "in-use"]


def test_a_host_without_room_for_it_is_passed_over(lone: Boots) -> None:
    lone.world.storages[:] = [StorageFacts("data", "rbd", True, True, 3, 3, ("images",))]
    lone.world.beat()
    server = lone.create(ROOT)
    lone.world.until(server, "error")
    (*_, fault) = [one for one in lone.world.rows(schema.faults) if one.server_uuid == server]
    assert "Earlier attempts failed on 2" in fault.message
    first = next(one for one in lone.world.rows(schema.faults))
    assert "there is no storage that has 4 GiB left" in first.message
    assert lone.volumes_left() == []


def test_a_local_volume_is_made_on_the_server_s_node(lone: Boots) -> None:
    lone.world.storages[:] = [OWN]
    lone.world.beat()
    lone.world.scheduler.hosts.reverse()
    server = lone.active(ROOT)
    root = lone.row(lone.volume_of(server))
    assert (root.node, root.shared) == ("pve2", False)
    assert lone.world.row(server).node == "pve2"
    with pytest.raises(Invalid, match="which only node pve2 has"):
        lone.world.migrate(server)
    # Another server must go to where such a volume is.
    near = lone.made(2, local_to_server=server)
    other = lone.create(BlockDevice(near))
    lone.built(other)
    assert lone.world.scheduler.asked[-1].volumes == (VolumeNeed("own", "sim1", "pve2"),)


@pytest.mark.parametrize("moment", ["making", "made", "failing"])
def test_a_delete_while_it_is_built_leaves_nothing(site: Boots, moment: str) -> None:
    there = site.made(2)
    never = dataclasses.replace(ROOT, delete_on_termination=False)
    server = site.create(never, BlockDevice(there))
    root = site.volume_of(server)
    make = site.last(MakeVolume, root)
    if moment == "made":
        site.make(root)
        site.build(server)
    site.world.act(server, "delete")
    site.world.answer(site.last(Destroy, server), ok=True, gone=True)
    site.world.until(server, "deleted")
    site.becomes(there, "available")
    assert site.row(root).status == "deleting"
    if moment == "making":
        site.make(root)
    if moment == "failing":
        site.world.answer(make, ok=False, failure=FULL, gone=True)
    else:
        site.world.answer(site.last(RemoveVolume, root), ok=True, gone=True)
    site.becomes(root, None)
    # The build has nothing to wait for any more, and sees to it that nothing of it is left.
    if moment == "made":
        site.world.answer(site.build(server), ok=False, failure=FULL, gone=True)
    else:
        site.world.answer(site.last(Destroy, server, 2), ok=True, gone=True)
    eventually(lambda: {one.state for one in site.world.rows(schema.operations)} <= _ENDED)


_ENDED = {"done", "failed"}


def test_a_build_whose_server_was_reset_gives_it_its_volumes(site: Boots) -> None:
    there = site.made(2)
    server = site.create(
        dataclasses.replace(ROOT, delete_on_termination=False), BlockDevice(there)
    )
    root = site.volume_of(server)
    site.make(root)
    build = site.build(server)
    reset_state(site.world.conductor.cloud, site.ctxt, server, VmState.ACTIVE)
    site.world.answer(build, ok=True, power_state=PowerState.RUNNING)
    site.becomes(root, "in-use")
    site.becomes(there, "in-use")
    assert {(one.status, one.with_build) for one in site.attached(server)} == {("attached", False)}
    # The VM was theirs: what it wrote is not removed, as was asked.
    site.world.act(server, "delete")
    site.world.answer(site.last(Destroy, server), ok=True, gone=True)
    site.becomes(root, "available")
    site.becomes(there, "available")


def test_what_it_can_t(lone: Boots) -> None:
    server = lone.active(ROOT)
    cloud = lone.world.conductor.cloud
    backup = NewServerImage("b", backup_type="daily", rotation=1)
    with pytest.raises(Invalid, match="Backup is not supported for volume-backed instances"):
        begin_image.accept(cloud, lone.ctxt, server, backup)
    with pytest.raises(Conflict, match="while it has volumes"):
        lone.world.act(server, "release")
    assert lone.world.row(server).vm_state == "active"


def imaged(site: Boots, server: str, name: str = "copy") -> Any:
    """Make an image of a server; return its row."""
    cloud = site.world.conductor.cloud
    asked = NewServerImage(name, {"mine": "yes"})
    made, operation = begin_image.accept(cloud, site.ctxt, server, asked)
    assert operation is None
    site.world.make_due()
    return next(one for one in site.world.rows(schema.images) if one.id == made)


def snapped(site: Boots, *, way: str) -> None:
    """Have the storage make snapshots this way."""
    change = schema.volumes.update().values(snapshot_way=way)
    site.world.conductor.store.run(lambda c: c.execute(change))


def test_an_image_is_the_snapshots_of_all_its_volumes(site: Boots) -> None:
    server = site.active(ROOT, BlockDevice(size_gib=2))
    root, data = site.volume_of(server), site.volume_of(server, 1)
    snapped(site, way="online")
    image = imaged(site, server)
    assert (image.status, image.size_bytes, image.disk_format) == ("active", 0, "")
    assert (image.properties["mine"], image.properties["bdm_v2"]) == ("yes", "True")
    assert image.properties["root_device_name"] == "/dev/sda"
    shots = {one.volume_id: one for one in site.world.rows(schema.volume_snapshots)}
    assert {one.name for one in shots.values()} == {"snapshot for copy"}
    listed = json.loads(image.properties["block_device_mapping"])
    assert [
        (one["snapshot_id"], one["boot_index"], one["volume_size"], one["device_name"])
        for one in listed
    ] == [(shots[root].id, 0, 4, "/dev/sda"), (shots[data].id, None, 2, "/dev/sdb")]
    assert [one["delete_on_termination"] for one in listed] == [True, False]
    assert site.world.row(server).task_state is None
    (operation,) = [o for o in site.world.rows(schema.operations) if o.action == "createImage"]
    assert operation.state == "done"
    for one in shots.values():
        site.world.answer(site.last(SnapVolume, one.volume_id), ok=True)
    eventually(
        lambda: {o.status for o in site.world.rows(schema.volume_snapshots)} == {"available"}
    )
    # What makes disks of it doesn't, and a parked server's image is another one.
    with pytest.raises(Invalid, match="has no data: it lists snapshots"):
        site.new(5, image_id=image.id)
    site.world.act(server, "shelve")
    site.world.answer(site.last(Power, server), ok=True, power_state=PowerState.SHUTDOWN)
    site.world.until(server, "shelved_offloaded")
    assert {one.id for one in site.world.rows(schema.images)} == {IMAGE, image.id}
    site.world.act(server, "unshelve")
    site.world.answer(site.last(Power, server, 2), ok=True, power_state=PowerState.RUNNING)
    site.world.until(server, "active")
    assert site.world.placement.amounts[server] == {"VCPU": 1, "MEMORY_MB": 512}
    assert {one.id for one in site.world.rows(schema.images)} == {IMAGE, image.id}
    user_images.delete(site.world.conductor.cloud, site.ctxt, image.id)
    # As in Cinder: the snapshots are their owner's.
    assert len(site.world.rows(schema.volume_snapshots)) == 2


def test_an_image_that_can_t_be_made_now_changes_nothing(site: Boots) -> None:
    server = site.active(ROOT, BlockDevice(size_gib=2))
    for way, words in (("offline", "stop server"), ("copy", "must be detached")):
        snapped(site, way=way)
        with pytest.raises(Invalid, match=words):
            imaged(site, server)
    snapped(site, way="online")
    site.world.conductor.cloud.conf.set_override("snapshots", 1, "quota")
    with pytest.raises(QuotaExceeded):
        imaged(site, server)
    assert site.world.rows(schema.volume_snapshots) == []
    assert len(site.world.rows(schema.images)) == 1
    assert [one.status for one in site.world.rows(schema.volumes)] == ["in-use", "in-use"]


@pytest.mark.parametrize("keeps", [True, False])
def test_a_parked_one_keeps_its_volumes_and_claims_nothing(site: Boots, keeps: bool) -> None:
    """It is offloaded at once, whatever the option says, as in Nova."""
    if keeps:
        site.world.conductor.cloud.conf.set_override("shelved_offload_time", -1, "conductor")
    server = site.active(ROOT)
    root = site.volume_of(server)
    site.world.act(server, "shelve")
    site.world.answer(site.last(Power, server), ok=True, power_state=PowerState.SHUTDOWN)
    site.world.until(server, "shelved_offloaded")
    assert server not in site.world.placement.claims
    assert len(site.world.rows(schema.images)) == 1
    assert site.row(root).status == "in-use"
    with pytest.raises(Invalid, match="Cannot detach a root device volume"):
        site.plugs.detach_volume(site.ctxt, server, root)
    site.world.act(server, "delete")
    site.world.answer(site.last(Destroy, server), ok=True, gone=True)
    site.world.answer(site.last(RemoveVolume, root), ok=True, gone=True)
    site.becomes(root, None)


def test_a_resize_never_touches_its_disk(lone: Boots) -> None:
    server = lone.active(ROOT)
    lone.world.resize(server, FlavorSnapshot("2", "m1.other", 2, 1024, 30))
    shape = lone.last(Shape, server)
    assert lone.world.row(server).disk_gib == 0
    lone.world.answer(shape, ok=True, power_state=PowerState.RUNNING)
    lone.world.until(server, "resized")
    lone.world.end_resize(server, "confirmResize")
    lone.world.until(server, "active")
    row = lone.world.row(server)
    assert (row.vcpus, row.disk_gib, row.flavor["disk_gib"]) == (2, 0, 30)
    assert lone.world.placement.amounts[server] == {"VCPU": 2, "MEMORY_MB": 1024}
    # To a smaller disk, which it has not.
    lone.world.resize(server, FlavorSnapshot("3", "m1.tiny", 1, 512, 1))
    lone.world.answer(lone.last(Shape, server, 2), ok=True, power_state=PowerState.RUNNING)
    lone.world.until(server, "resized")


def test_a_root_volume_that_pins_its_server_isn_t_to_be_detached(lone: Boots) -> None:
    server = lone.active(ROOT)
    root, node = lone.volume_of(server), lone.world.row(server).host
    own = schema.volumes.update().where(schema.volumes.c.id == root)
    own = own.values(storage="own", shared=False, node=node, host=node)
    lone.world.conductor.store.run(lambda c: c.execute(own))
    words = f"on storage own, which only node {node} has; the server boots from it"
    with pytest.raises(Invalid, match=words):
        lone.world.migrate(server)
