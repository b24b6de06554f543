from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from common import clock, ids
from common.errors import ConfigurationError
from common.messages.commands import Build, Image, Swap
from common.messages.facts import ClusterFacts, Heartbeat, ImageFacts
from common.resources import image_files
from conductor.images import cache_ahead
from conductor.store.hosts import registry
from conductor.store.images import image_properties
from db import schema
from tests.functional.conductor.harness import IMAGE, World

GIB = 2**30


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def report(world: World, *images: ImageFacts) -> None:
    cluster = ClusterFacts("sim1", "9.2", True, images, 100_000, 100_009)
    world.conductor.reports.heartbeat(Heartbeat("w1", clock.utcnow(), (), (), (cluster,)))


def test_an_image_needs_a_flavor_with_room_for_its_disk(world: World) -> None:
    assert [row.min_disk_gib for row in world.rows(schema.images)] == [0]
    image = ImageFacts(IMAGE, "debian-12", "shared:import/debian-12.qcow2", 1, "qcow2", "s")
    report(world, dataclasses.replace(image, virtual_size_bytes=3 * GIB))
    (row,) = world.rows(schema.images)
    assert (row.virtual_size_bytes, row.min_disk_gib) == (3 * GIB, 3)
    report(world, dataclasses.replace(image, virtual_size_bytes=3 * GIB + 1))
    assert world.rows(schema.images)[0].min_disk_gib == 4
    report(world)
    assert world.rows(schema.images) == []


def test_images_are_as_the_configuration_describes_them(world: World) -> None:
    image = ImageFacts(IMAGE, "debian-12", "shared:import/debian-12.qcow2", 1, "qcow2", "s")
    image = dataclasses.replace(image, virtual_size_bytes=3 * GIB)
    reports = world.conductor.reports
    reports._descriptions = image_properties.parse(
        ["debian-*; hw_firmware_type=uefi; min_disk=2; min_ram=512", "*-11; hw_firmware_type=bios"]
    )
    report(world, image)
    (row,) = world.rows(schema.images)
    assert (row.properties, row.min_disk_gib, row.min_ram_mib) == (
        {"hw_firmware_type": "uefi"},
        3,
        512,
    )
    reports._descriptions = ()
    report(world, image)
    (row,) = world.rows(schema.images)
    assert (row.properties, row.min_disk_gib, row.min_ram_mib) == ({}, 3, 0)


def test_descriptions_of_images() -> None:
    rules = image_properties.parse(["*; a=1; b=2", "windows-*; b=3;min_ram=4096 ;"])
    assert image_properties.of(rules, "windows-11") == {"a": "1", "b": "3", "min_ram": "4096"}
    assert image_properties.of(rules, "debian-12") == {"a": "1", "b": "2"}
    for wrong in ("", "x", "x; a", "; a=1", "x; min_ram=much"):
        with pytest.raises(ConfigurationError):
            image_properties.parse([wrong])


def test_a_cd_is_used_where_it_lies(world: World) -> None:
    """No template is reserved for a server that is made from it, and a rescue needs no room."""
    volid = "shared:iso/install.iso"
    image = ImageFacts(IMAGE, "install.iso", volid, GIB, "iso", "s", virtual_size_bytes=GIB)
    report(world)
    report(world, image)
    (uuid,) = world.create()
    build = world.compute.wait_for(1)
    assert isinstance(build, Build)
    assert build.image is not None
    assert (build.image.cd, build.image.volid, build.template) == (True, volid, None)
    assert world.rows(schema.templates) == []
    world.answer(build, ok=True, power_state=1)
    world.until(uuid, "active")
    world.compute.sent.clear()
    world.rescue(uuid)
    swap = world.compute.wait_for(1)
    assert isinstance(swap, Swap)
    assert swap.image is not None
    assert (swap.image.cd, swap.disk_gib) == (True, 0)


def test_a_cd_is_not_cached(world: World) -> None:
    with world.conductor.store.read() as connection:
        facts, _ = registry.host(connection, "pve1")
    cd = Image(facts.images[0], "install.iso", "shared:iso/install.iso", cd=True)
    facts = dataclasses.replace(facts, cached_images=(), capabilities={"full_clone": True})
    assert cache_ahead._refusal(facts, cd.id, cd, "") == (
        f"image {cd.id} is a CD, which is used where it lies"
    )


def test_what_another_cloud_uploaded_under_the_same_id_is_not_cached(world: World) -> None:
    upload, cloud = ids.new_uuid(), world.conductor.cloud.id
    image = Image(upload, "mine", f"shared:import/{upload}.qcow2")
    with world.conductor.store.read() as connection:
        facts, _ = registry.host(connection, "pve1")
    facts = dataclasses.replace(facts, capabilities={"full_clone": True})
    for owner, refused in ((ids.new_uuid(), True), (image_files.cloud_in_name(cloud), False)):
        listed = image_files.listed(image_files.ImageFile(owner, upload, "0"))
        there = dataclasses.replace(facts, images=(listed,))
        assert (cache_ahead._refusal(there, upload, image, cloud) is not None) is refused
