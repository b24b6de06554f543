from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from common import clock
from common.messages.facts import ClusterFacts, Heartbeat, ImageFacts
from db import schema
from tests.functional.conductor.harness import IMAGE, World

GIB = 2**30


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def tell(world: World, *images: ImageFacts) -> None:
    cluster = ClusterFacts("sim1", "9.2", True, images, 100_000, 100_009)
    world.conductor.reports.heartbeat(Heartbeat("w1", clock.utcnow(), (), (), (cluster,)))


def test_an_image_needs_a_flavor_with_room_for_its_disk(world: World) -> None:
    assert [row.min_disk_gib for row in world.rows(schema.images)] == [0]
    image = ImageFacts(IMAGE, "debian-12", "shared:import/debian-12.qcow2", 1, "qcow2", "s")
    tell(world, dataclasses.replace(image, virtual_size_bytes=3 * GIB))
    (row,) = world.rows(schema.images)
    assert (row.virtual_size_bytes, row.min_disk_gib) == (3 * GIB, 3)
    tell(world, dataclasses.replace(image, virtual_size_bytes=3 * GIB + 1))
    assert world.rows(schema.images)[0].min_disk_gib == 4
    tell(world)
    assert world.rows(schema.images) == []
