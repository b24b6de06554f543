"""A storage is full, or has less room than is written, when something is done with a volume on it.

What fails ends at once, as Cinder's does, and leaves nothing; it says that the storage is full, to
its owner as well; what was there is as it was, and so is the usage. Once there is room the same
request succeeds.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common.errors import Invalid
from common.story.volume_messages import WORDS
from db import schema
from db.reads.volumes.volume_usage import usage
from tests.chaos.administrator import reset
from tests.chaos.dressing import image_name, put_images
from tests.chaos.fullness import BIG, HOW, KINDS, NARROW, follow, full_cloud
from tests.chaos.renewed import Renewed
from tests.chaos.resource_play import STORIES
from tests.chaos.retype_stories import Retype
from tests.chaos.world import World

#: snapshots are made by the storage while a server has the volume
ONLINE = ("btrfs", "lvmthin", "rbd")
#: snapshots are copies
COPIES = ("zfspool",)
#: those that may need room: kinds of storages where they can be asked for
NEEDS: dict[str, tuple[str, ...]] = {
    "volume": KINDS,
    "volume of an image": KINDS,
    "volume of a volume": KINDS,
    "extend a volume": KINDS,
    "extend an attached volume": KINDS,
    "snapshot": KINDS,
    "snapshot of a volume in use": ONLINE,
    "volume of a snapshot": KINDS,
    "revert": tuple(kind for kind in KINDS if kind not in COPIES),
    "retype a volume": KINDS,
    "retype to the storage": KINDS,
    "upload a volume": KINDS,
    "another image of a volume": KINDS,
    "rebuild on a volume": KINDS,
    "image of volumes": tuple(kind for kind in KINDS if kind not in COPIES),
    "boot from a new volume": KINDS,
    "boot from a snapshot": KINDS,
    "backup of a volume": KINDS,
    "restore of a backup": KINDS,
}
CASES = [
    (kind, name, how)
    for kind in KINDS
    for name, kinds in NEEDS.items()
    if kind in kinds
    for how in HOW
]
#: the status of the volume after a failure, where it isn't the one before: Cinder's
AFTER = {
    **dict.fromkeys(("extend a volume", "extend an attached volume"), "error_extending"),
    **dict.fromkeys(("revert", "another image of a volume"), "error"),
    "restore of a backup": "error_restoring",
}
#: kinds whose volumes, or those of a running server, grow without room: sparse files and thin ones
GROWING = {
    "extend a volume": ("btrfs", "lvmthin"),
    "extend an attached volume": ("dir", "btrfs", "lvmthin"),
}
#: what is refused beforehand, by what is known of storages
REFUSED = "No valid backend was found: there is no storage that"


class RetypeTo(Retype):
    """A volume moves to the storage from another one."""

    target = BIG


def story_of(cloud: World, name: str, title: str) -> Any:
    """The story, of volumes on the storage."""
    kind: Any = RetypeTo if name == "retype to the storage" else STORIES[name]
    story = kind(cloud, title)
    story.storage = "shared" if kind is RetypeTo else BIG
    return story


@pytest.fixture(scope="module")
def clouds(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], World]]:
    """A cloud with a storage of this type."""

    @contextlib.contextmanager
    def make(kind: str) -> Iterator[World]:
        with full_cloud(tmp_path_factory.mktemp("cloud") / "world", kind) as cloud:
            put_images(cloud.simulator.cluster(), 1)
            cloud.look()
            known = sa.select(schema.images.c.id).where(schema.images.c.name == image_name(0))
            cloud.until(lambda: cloud.rows(known))
            yield cloud

    clouds = Renewed(request.session, make)
    yield clouds
    clouds.close()


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("kind", "name", "how"), CASES)
def test_a_story(
    clouds: Callable[[str], World], tmp_path: Path, kind: str, name: str, how: str
) -> None:
    cloud = clouds(kind)
    story = story_of(cloud, name, re.sub(r"\W+", "-", f"{kind} {name} {how}"))
    story.prepare()
    cloud.until(lambda: not cloud.open_operations())
    volume, before, had = story.row(), used(cloud), contents(cloud)
    with HOW[how](cloud) as full:
        failed = asked(cloud, story)
        if failed:
            assert contents(cloud).items() >= had.items(), "what was there has changed"
            assert story.wrong() == ""
            if volume is not None:
                assert story.row().status == AFTER.get(name, volume.status)
            why = explained(cloud, failed[-1])
            if why.category == "storage_full":
                follow(cloud, tmp_path, why.remedy, full)
    assert failed or how == NARROW or kind in GROWING.get(name, ())
    if failed:
        put_back(cloud, story)
        assert used(cloud) == before
        assert not asked(cloud, story)
    assert story.state() == story.good, cloud.progress()
    assert story.wrong() == ""
    assert story.remove() == ""
    cloud.until(lambda: not cloud.open_operations() and not cloud.differences())


def used(cloud: World) -> dict[str, int]:
    """What counts against the quota."""
    with cloud.engine.connect() as connection:
        return {name: count for name, count in usage(connection, "project").items() if count}


def contents(cloud: World) -> dict[str, Any]:
    """What all disks and archives have in them."""
    there = cloud.simulator.state()["sim1"]["volumes"]
    return {one["volid"]: (one["size"], one["data"], one["kept"]) for one in there}


def asked(cloud: World, story: Any) -> list[Any]:
    """Ask for it; return the operations that failed, once nothing is under way."""
    columns = schema.operations.c
    query = sa.select(schema.operations).order_by(columns.id)
    known = len(cloud.rows(query))
    refused = ""
    try:
        story.act()
    except Invalid as error:
        refused = error.message
    cloud.until(lambda: not cloud.open_operations())
    cloud.until(story.state)
    assert not refused or REFUSED in refused, refused
    return [one for one in cloud.rows(query)[known:] if one.state == "failed"]


def explained(cloud: World, operation: Any) -> Any:
    """The fault of an operation that failed: the storage is full, to its owner as well."""
    query = sa.select(schema.faults).where(schema.faults.c.operation_id == operation.id)
    *_, fault = cloud.rows(query.order_by(schema.faults.c.id))
    assert fault.category in ("storage_full", "no_valid_host"), fault
    if fault.category == "no_valid_host":
        assert re.search(r"has \d+ GiB left|no room on the storage", fault.message), fault
    elif operation.resource_type != "server":
        assert WORDS[fault.category] == "The storage is full."
        assert fault.owner_message is None
        # At once: what is full is not full because of what passes.
        assert fault.attempt == 1
    return fault


def put_back(cloud: World, story: Any) -> None:
    """Remove what failed, as its owner does, and have an administrator reset the rest."""
    for row in story.servers():
        if row.vmid is None:
            cloud.delete(row.uuid)
    # Nova's leaves an image whose snapshots fail, too.
    query = sa.select(schema.images.c.id).where(schema.images.c.name == f"{story.name}-image")
    for row in cloud.rows(query):
        cloud.client.delete_image(cloud.context(), row.id)
    cloud.until(lambda: not cloud.open_operations())
    reset(cloud)
    for row in story.volumes():
        if row.volid is None:
            cloud.client.delete_volume(cloud.context(), row.id)
    cloud.until(lambda: not cloud.open_operations())
