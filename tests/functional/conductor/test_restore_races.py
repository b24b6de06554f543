"""A restored record that several look at, and decide about, at once: on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from common.messages.facts import OwnerMark
from common.resources.states import ResourceType
from conductor.store import restored
from conductor.store.restored import Marked
from db import schema
from tests.functional.conductor.harness import World
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401
from tests.functional.waiting import while_it_waits

pytestmark = pytest.mark.database

CLOUD = "5a3c1b7e-0000-4000-8000-0000000000c1"
LOST = "5a3c1b7e-0000-4000-8000-000000000001"
SEEN = Marked("sim1", 555, OwnerMark(CLOUD, ResourceType.SERVER, LOST, epoch=1000, vmid=555))


@pytest.fixture
def world(tmp_path: Path, postgres_url: str) -> Iterator[World]:  # noqa: F811
    made = World(tmp_path, url=postgres_url)
    row = {"id": 1, "cloud_id": CLOUD}
    made.conductor.store.run(lambda c: c.execute(schema.cloud_identity.insert(), row))
    yield made
    made.close()
    for conductor in made.conductors:
        conductor.store._writer.dispose()
        conductor.store._reader.dispose()


def test_what_was_decided_about_is_not_held_again_by_who_looked_before(world: World) -> None:
    run = world.conductor.store.run
    assert run(lambda c: restored.look(c, [SEEN]))
    held = while_it_waits(
        world.conductor.store._writer,
        lambda c: restored.release(c, 1000),
        lambda c: restored.look(c, [SEEN]),
    )
    assert not held
    assert run(restored.read).held_at is None
