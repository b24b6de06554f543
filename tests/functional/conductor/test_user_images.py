"""Images of users under races, on SQLite and where the database lets all in: PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from common.context import RequestContext
from common.errors import Conflict, ImageNotFound, NotFound
from conductor.endpoints.images import ImageEndpoint
from conductor.rpc.images import ImageEdit, NewImage
from db import schema
from tests.functional.conductor.harness import IMAGE, World
from tests.functional.conductor.test_security_groups import at_once
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401

pytestmark = pytest.mark.sampled(2)

OWNER = RequestContext(user_id="u", project_id="p", roles=["member"])
MEMBER = RequestContext(user_id="v", project_id="q", roles=["member"])
MINE = "6f0e4c1e-2a0b-4a51-8f3d-0d6f1f1f0a01"


@pytest.fixture(params=["sqlite", "postgresql"])
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    made = World(tmp_path, url=url)
    yield made
    made.close()
    for pool in (made.conductor.store._writer, made.conductor.store._reader):
        pool.dispose()


@pytest.fixture
def images(world: World) -> ImageEndpoint:
    return ImageEndpoint(world.conductor.cloud)


def test_one_of_many_gets_an_id(world: World, images: ImageEndpoint) -> None:
    made = at_once(*[lambda: images.create_image(OWNER, NewImage("p", MINE))] * 6)
    assert made.count(MINE) == 1
    assert len([one for one in made if isinstance(one, Conflict)]) == 5
    with pytest.raises(Conflict, match="already exists"):
        images.create_image(OWNER, NewImage("p", MINE))


def test_no_change_is_lost_and_none_outlives_the_image(
    world: World, images: ImageEndpoint
) -> None:
    for _ in range(3):
        _race(world, images)


def _race(world: World, images: ImageEndpoint) -> None:
    image_id = images.create_image(OWNER, NewImage("p"))
    names = [f"n{number}" for number in range(4)]
    at_once(
        *[
            lambda name=name: images.edit_image(OWNER, image_id, [ImageEdit("add", name, "")])
            for name in names
        ],
        *[
            lambda name=name: images.tag_image(OWNER, image_id, name, wanted=True)
            for name in names
        ],
        *[lambda: images.create_image_member(OWNER, image_id, "q")] * 2,
    )
    (row,) = [one for one in world.rows(schema.images) if one.id == image_id]
    assert (sorted(row.properties), row.tags) == (names, names)
    assert [one.member for one in world.rows(schema.image_members)] == ["q"]
    at_once(
        lambda: images.delete_image(OWNER, image_id),
        lambda: images.create_image_member(OWNER, image_id, "r"),
        lambda: images.update_image_member(MEMBER, image_id, "q", "accepted"),
        lambda: images.edit_image(OWNER, image_id, [ImageEdit("add", "late", "")]),
    )
    assert world.rows(schema.image_members) == []
    assert [one.id for one in world.rows(schema.images)] == [IMAGE]


def test_others_change_nothing(world: World, images: ImageEndpoint) -> None:
    image_id = images.create_image(OWNER, NewImage("p"))
    images.create_image_member(OWNER, image_id, "q")
    before = world.rows(schema.images)
    for refused in (
        lambda: images.edit_image(MEMBER, image_id, [ImageEdit("add", "x", "")]),
        lambda: images.tag_image(MEMBER, image_id, "x", wanted=True),
        lambda: images.activate_image(MEMBER, image_id, wanted=False),
        lambda: images.create_image_member(MEMBER, image_id, "r"),
        lambda: images.delete_image_member(MEMBER, image_id, "q"),
        lambda: images.delete_image(MEMBER, image_id),
        lambda: images.edit_image(OWNER, IMAGE, [ImageEdit("add", "x", "")]),
    ):
        with pytest.raises(ImageNotFound):
            refused()
    with pytest.raises(NotFound):
        images.update_image_member(MEMBER, image_id, "r", "accepted")
    assert world.rows(schema.images) == before
    assert [one.status for one in world.rows(schema.image_members)] == ["pending"]
