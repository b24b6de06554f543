"""Volumes that a restored record lacks, or says of other servers, are written as they are used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common import ids
from common.errors import Conflict
from common.messages.facts import StorageFacts
from common.messages.inventory import ClusterInventory, SeenReference, SeenVm, SeenVolume
from common.resources.states import ResourceType
from common.resources.volumes import SLOTS
from conductor.audit.restoring import written
from conductor.audit.restoring.comparison import Attached
from conductor.audit.restoring.items import Item, Verdict
from conductor.store.volumes import attachments, volumes
from db import schema
from tests.functional.conductor.harness import World

NEW = "5a3c1b7e-0000-4000-8000-0000000000f1"
DISK = "data:vm-9-disk-0"
DATA = StorageFacts("data", "rbd", True, True, 1000, 900, ("images",))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.storages.append(DATA)
    made.beat()
    yield made
    made.close()


@pytest.fixture
def server(world: World) -> str:
    """A server of the record that runs."""
    world.conductor.runner.start()
    [uuid] = world.create()
    world.answer(world.compute.wait_for(1))
    world.until(uuid, "active")
    return uuid


def record(world: World, server: str, slot: int) -> str:
    """Write a volume of a server; return its ID."""
    volume_id = ids.new_uuid()
    about = {"project_id": "p", "user_id": "u", "name": "", "size_gib": 1, "status": "in-use"}
    world.conductor.store.run(lambda c: volumes.insert_found(c, id=volume_id, **about))
    world.conductor.store.run(lambda c: attachments.insert(c, volume_id, server, "p", slot))
    return volume_id


def adopt(world: World, volume_id: str, found: Attached) -> None:
    about = (ResourceType.VOLUME, volume_id, DISK, "It got it since.", "sim1")
    item = Item(Verdict.ADOPT, *about, found=found)
    world.conductor.store.run(lambda c: written.volume(c, item, None))


def slots(world: World) -> dict[str, tuple[str, int]]:
    """Volume → its server and slot."""
    rows: list[Any] = world.rows(schema.volume_attachments)
    return {one.volume_id: (one.server_uuid, one.slot) for one in rows}


def test_a_volume_made_since_is_where_a_volume_was_that_is_detached_since(
    world: World, server: str
) -> None:
    former = record(world, server, 1)
    holder = SeenVm(9, "pve1", volume_id=NEW, held=DISK, project_id="p", user_id="u")
    user = SeenVm(
        *(100_000, "pve1"),
        **{"server_uuid": server, "proven": True},
        references=(SeenReference(100_000, "pve1", "scsi1", DISK),),
    )
    disks = (SeenVolume(DISK, "data", "pve1", 9, size_bytes=1 << 30),)
    inventory = ClusterInventory("sim1", (holder, user), disks)
    about = (ResourceType.VOLUME, NEW, "VM 9 of cluster sim1", "It was made since.", "sim1")
    item = Item(Verdict.ADOPT, *about, vm=holder)
    world.conductor.store.run(lambda c: written.volume(c, item, inventory))
    assert slots(world) == {NEW: (server, 1), former: (server, 2)}
    [made] = [one for one in world.rows(schema.volumes) if one.id == NEW]
    assert (made.status, made.volid) == ("in-use", DISK)


def test_a_volume_that_another_server_has_by_the_record(world: World, server: str) -> None:
    was = ids.new_uuid()
    volume_id = record(world, was, 1)
    with pytest.raises(Conflict, match="has changed since"):
        adopt(world, volume_id, Attached((server, 3)))
    adopt(world, volume_id, Attached((server, 3), was))
    assert slots(world) == {volume_id: (server, 3)}
    with pytest.raises(Conflict, match="has changed since"):
        adopt(world, volume_id, Attached((server, 3), was))


def test_no_slot_is_left(world: World, server: str) -> None:
    had = {slot: record(world, server, slot) for slot in SLOTS}
    volume_id = record(world, ids.new_uuid(), 1)
    before = slots(world)
    with pytest.raises(Conflict, match="no free slot"):
        adopt(world, volume_id, Attached((server, 1), before[volume_id][0]))
    assert slots(world) == before
    assert before[had[1]] == (server, 1)
