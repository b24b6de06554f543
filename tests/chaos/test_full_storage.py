"""A storage is full, of each type with its own words, when something needs room on it.

What fails ends as its table says and leaves nothing; the fault names the storage's want of room,
and how to see which storage it is. Once there is room the same succeeds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import ids
from conductor.rpc.volumes.snapshots import NewVolumeSnapshot
from conductor.rpc.volumes.volumes import NewVolume
from db import schema
from simulator.state.seed import add_storage
from tests.chaos.actions import ACTIONS, MOVABLE, ask, delete_images
from tests.chaos.cloud import IMAGE
from tests.chaos.test_locked_vms import operations, prepared, rested, shell
from tests.chaos.world import World, world

KINDS = ("dir", "btrfs", "lvmthin", "zfspool", "rbd")
#: those that may need room; "create" is a build
SERVER_ACTIONS = (
    *("create", "rebuild", "rescue", "suspend", "createImage", "createBackup", "resize"),
    *("shelve", "unshelve", "attach_interface", "start", "reboot-hard"),
)
MOVES = tuple(name for name, one in ACTIONS.items() if one.options and "CD" not in name)
REMEDY = re.compile(
    r"as root on (\S+): pvesm status; free space on the storage that is full, then: "
)
BIG = "big"


@pytest.fixture(scope="module")
def clouds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], World]]:
    """A cloud whose servers are on a storage of this type, or move; the last one asked for."""
    running: dict[str, Any] = {}

    def close() -> None:
        for one, _ in running.values():
            one.__exit__(None, None, None)
        running.clear()

    def get(kind: str) -> World:
        if kind not in running:
            close()
            options = MOVABLE if kind == "moves" else {"vm_storage": BIG, "linked_clones": "never"}
            made = world(tmp_path_factory.mktemp("cloud") / "world", {"proxmox:sim1": options})
            opened = made.__enter__()
            running[kind] = (made, opened)
            if kind != "moves":
                cluster = opened.simulator.cluster()
                with cluster.turn():
                    add_storage(cluster, BIG, kind, shared=kind == "rbd")
            opened.look()
        return running[kind][1]

    yield get
    close()


class Full:
    """Every storage is full until it is freed."""

    def __init__(self, cloud: World) -> None:
        self._cloud = cloud
        names = list(cloud.simulator.cluster().storages)
        self._orders = [
            cloud.simulator.fault(action="storage-full", storage=name) for name in names
        ]

    def free(self) -> None:
        """Make room."""
        while self._orders:
            self._cloud.simulator.take_back(self._orders.pop())
        self._cloud.look()


@pytest.fixture
def fill() -> Iterator[Callable[[World], Full]]:
    """Fills a cloud's storages, at the end of the test at the latest freed."""
    made: list[Full] = []

    def of(cloud: World) -> Full:
        made.append(Full(cloud))
        return made[-1]

    yield of
    for one in made:
        one.free()


def follow(cloud: World, folder: Path, remedy: str, full: Full) -> None:
    """Do what the fault says: see which storage is full, and free space there."""
    found = REMEDY.match(remedy)
    assert found, remedy
    assert found[1] in cloud.simulator.cluster().nodes
    listed = shell(cloud, folder).run(f"as root on {found[1]}: pvesm status")
    assert re.search(r'"avail": 0\b', listed), listed
    full.free()


SERVER_CASES = [
    *((kind, name) for kind in KINDS for name in SERVER_ACTIONS),
    *(("moves", name) for name in MOVES),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("kind", "name"), SERVER_CASES)
def test_a_server(
    clouds: Callable[[str], World],
    fill: Callable[[World], Full],
    tmp_path: Path,
    kind: str,
    name: str,
) -> None:
    cloud = clouds(kind)
    title = f"{kind}-{name}".replace(" ", "-")
    if name == "create":
        built(cloud, tmp_path, title, fill(cloud))
        return
    scenario = ACTIONS[name]
    row = prepared(cloud, name, title)
    known, before = len(operations(cloud, row.uuid)), len(cloud.faults(row.uuid))
    full = fill(cloud)
    ask(cloud, row.uuid, name)  # type: ignore[arg-type]
    operation = rested(cloud, row.uuid, known)
    if operation.state == "done":
        full.free()
    else:
        fault = cloud.faults(row.uuid)[before:][-1]
        assert fault.category == "storage_full", fault
        follow(cloud, tmp_path, fault.remedy, full)
        cloud.until(lambda: not cloud.open_operations())
        now = cloud.server(row.uuid)
        if operations(cloud, row.uuid)[known:][-1].state == "failed":
            assert now.vm_state in {scenario.was, "error"}, cloud.tell()
            ask(cloud, row.uuid, name)  # type: ignore[arg-type]
            cloud.until(lambda: not cloud.open_operations())
    faults = [(one.category, one.message) for one in cloud.faults(row.uuid)[before:]]
    assert cloud.server(row.uuid).vm_state == scenario.becomes, faults
    delete_images(cloud, row.uuid)  # type: ignore[arg-type]
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
        assert "no room on the storage" in last.message
        full.free()
    cloud.delete(row.uuid)
    assert cloud.until(lambda: not cloud.differences(), 20)
    cloud.look()
    again = cloud.built(f"{title}-again")
    assert again.vm_state == "active", [one.message for one in cloud.faults(again.uuid)]
    cloud.delete(again.uuid)


def volume(cloud: World, name: str) -> Any:
    """The row of the volume of this name."""
    query = sa.select(schema.volumes).where(schema.volumes.c.name == name)
    return next(iter(cloud.rows(query)), None)


def made(cloud: World, name: str) -> Any:
    """A volume that is there."""
    cloud.client.create_volume(cloud.context(), NewVolume("project", 1, name))
    cloud.until(lambda: not cloud.open_operations())
    row = volume(cloud, name)
    assert row.status == "available", row
    return row


def _create(cloud: World, name: str) -> Callable[[], str]:
    cloud.client.create_volume(cloud.context(), NewVolume("project", 1, name))
    return lambda: str(volume(cloud, name).status)


def _of_image(cloud: World, name: str) -> Callable[[], str]:
    new = NewVolume("project", 1, name, image_id=ids.named("image", IMAGE))
    cloud.client.create_volume(cloud.context(), new)
    return lambda: str(volume(cloud, name).status)


def _copy(cloud: World, name: str) -> Callable[[], str]:
    source = volume(cloud, f"{name.partition('-again')[0]}-source")
    new = NewVolume("project", 1, name, source_volume_id=source.id)
    cloud.client.create_volume(cloud.context(), new)
    return lambda: str(volume(cloud, name).status)


def _snap(cloud: World, name: str) -> Callable[[], str]:
    source = volume(cloud, f"{name.partition('-again')[0]}-source")
    snapshot = NewVolumeSnapshot(source.id, name)
    cloud.client.create_volume_snapshot(cloud.context(), snapshot)
    columns = schema.volume_snapshots.c
    query = sa.select(columns.status).where(columns.name == name)
    return lambda: str(cloud.rows(query)[0].status)


VOLUME_ACTIONS = {"create": _create, "of an image": _of_image, "copy": _copy, "snapshot": _snap}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", VOLUME_ACTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_volume(
    clouds: Callable[[str], World],
    fill: Callable[[World], Full],
    tmp_path: Path,
    kind: str,
    name: str,
) -> None:
    """It is in error, with the reason; the next one is made."""
    cloud, act = clouds(kind), VOLUME_ACTIONS[name]
    title = f"v-{kind}-{name}".replace(" ", "-")
    source = made(cloud, f"{title}-source")
    full = fill(cloud)
    status = act(cloud, title)
    cloud.until(lambda: not cloud.open_operations())
    if status() == "error":
        faults = cloud.rows(sa.select(schema.faults).order_by(schema.faults.c.id))
        assert faults[-1].category in ("storage_full", "no_valid_host"), faults[-1].message
        if faults[-1].category == "storage_full":
            follow(cloud, tmp_path, faults[-1].remedy, full)
    full.free()
    again = act(cloud, f"{title}-again")
    cloud.until(lambda: not cloud.open_operations())
    assert again() == "available"
    for row in cloud.rows(sa.select(schema.volumes)):
        if row.name.startswith(title) and row.id != source.id:
            cloud.client.delete_volume(cloud.context(), row.id, force=True, cascade=True)
    cloud.until(lambda: not cloud.open_operations())
    cloud.client.delete_volume(cloud.context(), source.id, force=True, cascade=True)
    cloud.until(lambda: not cloud.open_operations() and not cloud.differences())
