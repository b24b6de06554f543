"""A host that is kept for a server that waited long: no other server gets its room."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.auth import ADMIN
from tests.functional.test_costs import HOSTS, Cloud, look, read_state
from tests.functional.test_waiting_for_room import (
    SMALL,
    creating,
    delete,
    rows,
    running,
    states,
    waits,
)
from tests.functional.waiting import eventually

#: how many may overtake a large one here
OVERTAKE = 1
#: small servers that a host takes
EACH = 4


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    with running(tmp_path, ("conductor", "overtake_most", OVERTAKE)) as made:
        yield made
        for uuid in rows(tmp_path, "SELECT uuid FROM servers WHERE deleted_at IS NULL"):
            delete(made, uuid)


@pytest.fixture
def create(cloud: Cloud, tmp_path: Path) -> Callable[..., str]:
    return creating(cloud, tmp_path)


@pytest.fixture
def small(cloud: Cloud, create: Callable[..., str], tmp_path: Path) -> list[str]:
    """Small servers that fill every host."""
    uuids = [create(f"small-{n}", SMALL, wait=None) for n in range(EACH * HOSTS)]
    eventually(lambda: set(states(tmp_path, *uuids)) == {"active"})
    return uuids


@pytest.fixture
def kept(cloud: Cloud, create: Callable[..., str], small: list[str], tmp_path: Path) -> str:
    """The name of a host that is kept for the server ``large``, and has room for a small one."""
    large = create("large")
    eventually(lambda: waits(tmp_path, large))
    delete(cloud, (first := small.pop(0)))
    eventually(lambda: read_state(tmp_path, first) == "deleted")
    small.append(create("overtakes", SMALL, wait=None))
    eventually(lambda: read_state(tmp_path, small[-1]) == "active")
    query = "SELECT host FROM hosts WHERE uuid = (SELECT kept FROM waiting_builds)"
    [host] = eventually(lambda: rows(tmp_path, query))
    uuids = on(tmp_path, host)
    if len(uuids) == EACH:
        delete(cloud, uuids[0])
        small.remove(uuids[0])
    eventually(lambda: len(on(tmp_path, host)) < EACH)
    return str(host)


def on(folder: Path, host: str) -> list[Any]:
    return rows(folder, f"SELECT uuid FROM servers WHERE host = '{host}' AND deleted_at IS NULL")


def host_of(folder: Path, uuid: str) -> Any:
    return look(folder, "SELECT host FROM servers WHERE uuid = ?", uuid)


def test_a_steady_stream_of_small_ones_does_not_starve_a_large_one(
    cloud: Cloud, create: Callable[..., str], small: list[str], tmp_path: Path
) -> None:
    """None of them ever waits, and one would always take what is free."""
    large = create("large")
    eventually(lambda: waits(tmp_path, large))
    for number in itertools.count():
        assert number < 3 * EACH * HOSTS, "the large one starves"
        if read_state(tmp_path, large) == "active":
            break
        first = small.pop(0)
        delete(cloud, first)
        eventually(lambda first=first: read_state(tmp_path, first) == "deleted")
        more = create(f"more-{number}", SMALL, wait=None)
        eventually(lambda more=more: read_state(tmp_path, more) in ("active", "error"))
        if read_state(tmp_path, more) == "active":
            small.append(more)


def test_a_server_that_does_not_wait_gets_no_kept_host(
    cloud: Cloud, create: Callable[..., str], small: list[str], kept: str, tmp_path: Path
) -> None:
    hasty = create("hasty", SMALL, wait=None)
    eventually(lambda: read_state(tmp_path, hasty) in ("error", "active"))
    assert host_of(tmp_path, hasty) != kept
    many = [create(f"one-of-{n}", SMALL, wait=None) for n in range(2)]
    eventually(lambda: {"building"}.isdisjoint(states(tmp_path, *many)))
    assert kept not in [host_of(tmp_path, one) for one in many]


def test_nor_do_the_servers_of_one_request(
    cloud: Cloud, create: Callable[..., str], small: list[str], kept: str, tmp_path: Path
) -> None:
    uuids = on(tmp_path, kept)
    delete(cloud, uuids[0])
    eventually(lambda: len(on(tmp_path, kept)) == len(uuids) - 1)
    create("gang", SMALL, wait=None, min_count=2, max_count=2)
    query = "SELECT count(*) FROM servers WHERE name LIKE 'gang%' AND vm_state IN (?, 'active')"
    eventually(lambda: look(tmp_path, query, "error") == 2)
    assert len(on(tmp_path, kept)) == len(uuids) - 1


def test_nor_does_a_move_unless_it_names_the_host(
    cloud: Cloud, create: Callable[..., str], small: list[str], kept: str, tmp_path: Path
) -> None:
    other = next(one for one in small if host_of(tmp_path, one) != kept)
    source = host_of(tmp_path, other)
    migrate = {"migrate": None}
    path = f"/v2.1/servers/{other}/action"
    cloud.call("POST", path, ADMIN, json=migrate)
    idle = "SELECT count(*) FROM servers WHERE uuid = ? AND task_state IS NULL"
    eventually(lambda: look(tmp_path, idle, other))
    found = host_of(tmp_path, other)
    assert found != kept
    if found == source:
        cloud.call("POST", path, ADMIN, json={"migrate": {"host": kept}})
        eventually(lambda: host_of(tmp_path, other) == kept)
