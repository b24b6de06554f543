"""Uploads by the record: races on SQLite and PostgreSQL, and what the audit removes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.context import RequestContext
from common.errors import Conflict
from common.messages.commands import Command, RemoveImage, StoreImage
from common.messages.inventory import ClusterInventory, SeenImageFile
from common.resources.image_files import cloud_in_name
from conductor.endpoints.images import ImageEndpoint
from conductor.rpc.images import ImageData, ImageEdit, NewImage
from db import schema
from tests.functional.conductor.harness import World
from tests.functional.conductor.test_security_groups import at_once
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401
from tests.functional.waiting import eventually

pytestmark = pytest.mark.sampled(2)

OWNER = RequestContext(user_id="u", project_id="p", roles=["member"])
DATA = ImageData("http://api/spool", "secret", 5, 1 << 30, "raw", "0" * 32, "0" * 128)
NEW = NewImage("p", disk_format="raw", container_format="bare")


@pytest.fixture(params=["sqlite", "postgresql"])
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    made = World(tmp_path, url=url, audit_heals=True)
    made.conductor.runner.start()
    yield made
    made.close()
    for pool in (made.conductor.store._writer, made.conductor.store._reader):
        pool.dispose()


@pytest.fixture
def images(world: World) -> ImageEndpoint:
    return ImageEndpoint(world.conductor.cloud)


def operations(world: World, image_id: str) -> list[str]:
    rows = world.rows(schema.operations)
    return sorted(row.action for row in rows if row.resource_id == image_id)


def test_one_of_many_uploads_counts(world: World, images: ImageEndpoint) -> None:
    image_id = images.create_image(OWNER, NEW)
    ends = at_once(*[lambda: images.save_image(OWNER, image_id, DATA)] * 6)
    assert (ends.count(None), len([one for one in ends if isinstance(one, Conflict)])) == (1, 5)
    assert operations(world, image_id) == ["store-image"]


def test_a_delete_beside_the_end_of_an_upload_leaves_no_file(
    world: World, images: ImageEndpoint
) -> None:
    """Whichever comes first, the file is removed by one of them."""
    for _ in range(4):
        image_id = images.create_image(OWNER, NEW)
        images.save_image(OWNER, image_id, DATA)
        stored = _last(world, StoreImage, image_id)
        at_once(
            lambda image_id=image_id: images.delete_image(OWNER, image_id),
            lambda stored=stored: world.answer(stored, ok=True),
            lambda image_id=image_id: _edit(images, image_id),
        )
        removal = _last(world, RemoveImage, image_id)
        assert removal.volid == stored.volid
        world.answer(removal, ok=True, gone=True)
    eventually(lambda: {row.state for row in world.rows(schema.operations)} == {"done"}, 10)
    assert [row.project_id for row in world.rows(schema.images)] == [None]


def _edit(images: ImageEndpoint, image_id: str) -> None:
    images.edit_image(OWNER, image_id, [ImageEdit("replace", "name", "x")])


def _last(world: World, kind: type[Command], image_id: str) -> Any:
    def find() -> Any:
        sent = [command for _, command in list(world.compute.sent) if isinstance(command, kind)]
        return next((one for one in sent if one.resource_id == image_id), None)

    return eventually(find, 10, 0.02)


def test_the_audit_removes_a_file_that_came_late_and_no_stranger(
    world: World, images: ImageEndpoint
) -> None:
    image_id = images.create_image(OWNER, NEW)
    images.save_image(OWNER, image_id, DATA)
    stored = _last(world, StoreImage, image_id)
    file = SeenImageFile(stored.volid, "nfs1", "pve1", image_id, US, True, 5)
    stranger = dataclasses.replace(file, volid=file.volid.replace(image_id, OTHER), image_id=OTHER)
    theirs = dataclasses.replace(file, volid=file.volid.replace(US, OTHER), cloud=OTHER)
    world.compute.seen["sim1"] = ClusterInventory("sim1", image_files=(file, stranger, theirs))
    world.answer(stored, ok=True)
    eventually(lambda: any(row.status == "active" and row.md5 for row in _rows(world)), 10)
    report = world.conductor.auditor.audit()
    assert report["open"] == {"image_file_without_image": 1}
    images.delete_image(OWNER, image_id)
    world.answer(_last(world, RemoveImage, image_id), ok=True, gone=True)
    eventually(lambda: {row.state for row in world.rows(schema.operations)} == {"done"}, 10)
    world.compute.sent.clear()

    def remove(command: Command) -> None:
        if isinstance(command, RemoveImage):
            assert command.volid == stored.volid
            world.compute.seen["sim1"] = ClusterInventory("sim1", image_files=(stranger, theirs))
            world.answer(command, ok=True, gone=True)

    world.compute.answering = remove
    report = world.conductor.auditor.audit()
    assert (report["healed"], report["open"]) == (1, {"image_file_without_image": 1})
    kept = world.rows(schema.findings)
    assert [row.evidence["image"] for row in kept if row.healed_at is None] == [OTHER]


US = cloud_in_name("")
OTHER = "6f0e4c1e-2a0b-4a51-8f3d-0d6f1f1f0a02"


def _rows(world: World) -> list[Any]:
    return list(world.rows(schema.images))
