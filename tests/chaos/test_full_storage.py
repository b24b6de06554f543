"""A storage is full, of each type with its own words, or has less room than is written, when
something needs room on it.

What fails ends as its table says and leaves nothing; the fault names the storage's want of room,
and how to see which storage it is. Once there is room the same succeeds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.chaos.actions import ACTIONS, MOVABLE, ask, delete_images
from tests.chaos.fullness import HOW, KINDS, Full, follow, full_cloud
from tests.chaos.renewed import Renewed
from tests.chaos.test_locked_vms import operations, prepared, rested
from tests.chaos.world import World

#: those that may need room; "create" is a build
SERVER_ACTIONS = (
    *("create", "rebuild", "rescue", "suspend", "createImage", "createBackup", "resize"),
    *("shelve", "unshelve", "attach_interface", "start", "reboot-hard"),
)
#: by what the scheduler knows of hosts, or placement, which may know it first
REFUSED = "no room on the storage|placement offers none of them"
#: those that copy a disk, and can't be done without room
COPY = ("rebuild", "rescue", "createImage", "createBackup")
MOVES = tuple(name for name, one in ACTIONS.items() if one.options and "CD" not in name)


@pytest.fixture(scope="module")
def clouds(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], World]]:
    """A cloud whose servers are on a storage of this type, or move."""

    def make(kind: str) -> AbstractContextManager[World]:
        folder = tmp_path_factory.mktemp("cloud") / "world"
        return full_cloud(folder, kind, MOVABLE if kind == "moves" else None)

    clouds = Renewed(request.session, make)
    yield clouds
    clouds.close()


CASES = [
    *((kind, name, how) for kind in KINDS for name in SERVER_ACTIONS for how in HOW),
    *(("moves", name, how) for name in MOVES for how in HOW),
]


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("kind", "name", "how"), CASES)
def test_a_server(
    clouds: Callable[[str], World], tmp_path: Path, kind: str, name: str, how: str
) -> None:
    cloud = clouds(kind)
    title = f"{kind}-{name}-{how}".replace(" ", "-")
    if name == "create":
        with HOW[how](cloud) as full:
            built(cloud, tmp_path, title, full)
        return
    scenario = ACTIONS[name]
    row = prepared(cloud, name, title)
    known, before = len(operations(cloud, row.uuid)), len(cloud.faults(row.uuid))
    with HOW[how](cloud) as full:
        ask(cloud, row.uuid, name)
        operation = rested(cloud, row.uuid, known)
        assert operation.state != "done" or name not in COPY
        if operation.state != "done":
            fault = cloud.faults(row.uuid)[before:][-1]
            assert fault.category == "storage_full", fault
            follow(cloud, tmp_path, fault.remedy, full)
    if operation.state != "done":
        cloud.until(lambda: not cloud.open_operations())
        now = cloud.server(row.uuid)
        if operations(cloud, row.uuid)[known:][-1].state == "failed":
            assert now.vm_state in {scenario.was, "error"}, cloud.progress()
            ask(cloud, row.uuid, name)
            cloud.until(lambda: not cloud.open_operations())
    faults = [(one.category, one.message) for one in cloud.faults(row.uuid)[before:]]
    assert cloud.server(row.uuid).vm_state == scenario.becomes, faults
    delete_images(cloud, row.uuid)
    cloud.delete(row.uuid)
    cloud.until(lambda: not cloud.differences(), 20)


def built(cloud: World, folder: Path, title: str, full: Full) -> None:
    """A build fails on every host, or is refused by what is known of them, and leaves nothing; the
    next one succeeds."""
    row = cloud.built(title)
    assert row.vm_state == "error"
    cloud.until(lambda: not cloud.open_operations())
    *_, last = cloud.faults(row.uuid)
    assert last.category in ("storage_full", "no_valid_host")
    failed = [one for one in cloud.faults(row.uuid) if one.category == "storage_full"]
    if failed:
        follow(cloud, folder, failed[-1].remedy, full)
    else:
        assert re.search(REFUSED, last.message), last.message
        full.free()
    cloud.delete(row.uuid)
    assert cloud.until(lambda: not cloud.differences(), 20)
    cloud.look()
    again = cloud.built(f"{title}-again")
    assert again.vm_state == "active", [one.message for one in cloud.faults(again.uuid)]
    cloud.delete(again.uuid)
