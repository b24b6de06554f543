"""What failed about a server's volume is a message of the volume."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.messages.commands import PlugVolume
from common.resources.states import PowerState
from db import engine
from db.reading import reading
from db.reads.volumes import messages
from db.reads.volumes.block_storage import Filter
from db.reads.volumes.messages import Message
from tests.functional.conductor.harness import World
from tests.functional.conductor.test_volumes import DATA, FULL, Site, a_server
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401

pytestmark = pytest.mark.database


@pytest.fixture
def site(tmp_path: Path, postgres_url: str) -> Iterator[Site]:  # noqa: F811
    world = World(tmp_path, url=postgres_url)
    world.storages.append(DATA)
    world.beat()
    world.conductor.runner.start()
    yield Site(world)
    world.close()
    for pool in (world.conductor.store._writer, world.conductor.store._reader):
        pool.dispose()


def found(site: Site, project: str | None = "p", **equal: Any) -> list[Message]:
    reader = engine.reader(site.world.url)
    try:
        with reading(reader) as connection:
            return messages.listing(connection, Filter(project, equal))
    finally:
        reader.dispose()


def test_a_refused_attachment(site: Site) -> None:
    server, volume_id = a_server(site), site.made()
    site.attach(server, volume_id)
    site.world.answer(site.last(PlugVolume, server), ok=False, failure=FULL)
    assert found(site) == []
    site.world.answer(site.last(PlugVolume, server, 2), ok=True, power_state=PowerState.RUNNING)
    site.becomes(volume_id, "available")
    (one,) = found(site, resource_uuid=volume_id, event_id="VOLUME_VOLUME_002_021")
    assert (one.resource_type, one.action) == ("VOLUME", "attach_volume")
    assert found(site, None) == [one]
    assert found(site, "q") == []
