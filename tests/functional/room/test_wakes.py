"""Whatever makes room wakes those whom it may serve, and nobody else."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.auth import ADMIN, MEMBER
from tests.functional.test_costs import HOSTS, Cloud, look, read_state
from tests.functional.test_waiting_for_room import (
    LARGE,
    SMALL,
    creating,
    delete,
    rows,
    running,
    service_of,
    states,
    waits,
)
from tests.functional.waiting import eventually

MEDIUM, HUGE = "4", "9"
OPTIONS = (
    ("compute", "heartbeat_seconds", 1),
    ("compute", "observe_seconds", 1),
    (
        "seed",
        "flavors",
        [
            f"{LARGE}:large:8:2048:1",
            f"{SMALL}:small:2:512:1",
            f"{MEDIUM}:medium:4:512:1",
            f"{HUGE}:huge:9:512:1",
        ],
    ),
)
OTHER_ZONE = "null0003"
NOVA = {"availability_zone": "nova"}
#: a quarter of how long a wake may take
SOON = 10


class Stage:
    """A full cloud: two hosts in one zone, a third one in another, and three servers that wait."""

    def __init__(self, cloud: Cloud, folder: Path) -> None:
        self.cloud, self.folder, self.create = cloud, folder, creating(cloud, folder)
        self.hypervisor: Any = cloud.hypervisors[0]
        self.other_zone = self.zone("z2", OTHER_ZONE)
        self.mediums = self.fill(MEDIUM, 3)
        self.smalls = self.fill(SMALL, 2)
        self.other = self.fill(LARGE, 1, availability_zone="z2")[0]

    def fill(self, flavor: str, count: int, **more: Any) -> list[str]:
        asked = NOVA | more
        where = {name: value for name, value in asked.items() if value is not None}
        uuids = [self.create(f"full-{n}", flavor, wait=None, **where) for n in range(count)]
        eventually(lambda: set(states(self.folder, *uuids)) == {"active"}, SOON)
        return uuids

    def zone(self, name: str, host: str) -> str:
        body = {"aggregate": {"name": name, "availability_zone": name}}
        made = self.cloud.call("POST", "/v2.1/os-aggregates", ADMIN, json=body)["aggregate"]["id"]
        self.aggregate(made, add_host={"host": host})
        return str(made)

    def aggregate(self, number: str, **action: Any) -> None:
        self.cloud.call("POST", f"/v2.1/os-aggregates/{number}/action", ADMIN, json=action)

    def act(self, uuid: str, **action: Any) -> None:
        self.cloud.call("POST", f"/v2.1/servers/{uuid}/action", ADMIN, json=action)

    def wait(self, name: str, flavor: str, **more: Any) -> str:
        uuid = self.create(name, flavor, **more)
        eventually(lambda: waits(self.folder, uuid), SOON)
        return uuid

    def end(self, uuid: str) -> None:
        delete(self.cloud, uuid)
        eventually(lambda: read_state(self.folder, uuid) == "deleted", SOON)

    def service(self, host: str, **body: Any) -> None:
        path = f"/v2.1/os-services/{service_of(self.cloud, host)}"
        self.cloud.call("PUT", path, ADMIN, json=body)

    def host_of(self, uuid: str) -> str:
        return str(look(self.folder, "SELECT host FROM servers WHERE uuid = ?", uuid))

    def tried(self) -> Mapping[str, str]:
        """Return when each that waits was decided on."""
        found = rows(self.folder, "SELECT server_uuid || ' ' || tried_at FROM waiting_builds")
        return dict(one.split(" ", 1) for one in found)

    def report(self, **changes: Mapping[str, Any]) -> None:
        """Have hosts reported otherwise, by name."""
        self.hypervisor._hosts = tuple(
            dataclasses.replace(one, **changes.get(one.host, {})) for one in self.hypervisor._hosts
        )


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with running(tmp_path, *OPTIONS) as cloud:
        made = Stage(cloud, tmp_path)
        yield made
        for uuid in rows(tmp_path, "SELECT uuid FROM servers WHERE deleted_at IS NULL"):
            delete(cloud, uuid)


def _delete(stage: Stage) -> Callable[[], None]:
    return lambda: delete(stage.cloud, stage.smalls[0])


def _resize(stage: Stage) -> Callable[[], None]:
    one = stage.mediums[0]

    def smaller() -> None:
        stage.act(one, resize={"flavorRef": SMALL})
        eventually(lambda: read_state(stage.folder, one) == "resized", SOON)
        stage.act(one, confirmResize=None)

    return smaller


def _move(stage: Stage) -> Callable[[], None]:
    """To a host of another zone, which is no place for those that wait."""
    stage.end(stage.mediums[0])
    [movable] = stage.fill(MEDIUM, 1, availability_zone=None)
    stage.end(stage.other)

    def move() -> None:
        stage.act(movable, migrate={"host": OTHER_ZONE})
        eventually(lambda: read_state(stage.folder, movable) == "resized", SOON)
        stage.act(movable, confirmResize=None)

    return move


def _enabled(stage: Stage) -> Callable[[], None]:
    host = stage.host_of(stage.smalls[0])
    stage.service(host, status="disabled")
    stage.end(stage.smalls[0])
    return lambda: stage.service(host, status="enabled")


def _up(stage: Stage) -> Callable[[], None]:
    host = stage.host_of(stage.smalls[0])
    stage.end(stage.smalls[0])
    stage.service(host, forced_down=True)
    return lambda: stage.service(host, forced_down=False)


def _node_back(stage: Stage) -> Callable[[], None]:
    """Room was free there when those that wait were refused."""
    return _sick(stage, {"online": False, "healthy": False, "health": "The node is offline."})


def _node_well(stage: Stage) -> Callable[[], None]:
    return _sick(stage, {"healthy": False, "health": "It has no quorum."})


def _sick(stage: Stage, how: dict[str, Any]) -> Callable[[], None]:
    host = stage.host_of(stage.smalls[0])
    stage.end(stage.smalls[0])
    well = next(one for one in stage.hypervisor._hosts if one.host == host)
    stage.report(**{host: how})
    query = "SELECT count(*) FROM hosts WHERE host = ? AND json_extract(facts, '$.healthy') = 0"
    eventually(lambda: look(stage.folder, query, host), SOON)
    before = {name: getattr(well, name) for name in ("online", "healthy", "health")}
    return lambda: stage.report(**{host: before})


def _added(stage: Stage) -> Callable[[], None]:
    """A host that has room for a small one only."""

    def add() -> None:
        new = dataclasses.replace(stage.hypervisor._host(HOSTS), vcpus=2)
        stage.hypervisor._hosts = (*stage.hypervisor._hosts, new)

    return add


def _ratio(stage: Stage) -> Callable[[], None]:
    body = {"aggregate": {"name": "denser"}}
    made = stage.cloud.call("POST", "/v2.1/os-aggregates", ADMIN, json=body)["aggregate"]["id"]
    stage.aggregate(made, add_host={"host": "null0001"})
    metadata = {"cpu_allocation_ratio": "1.25"}
    return lambda: stage.aggregate(made, set_metadata={"metadata": metadata})


EVENTS = {
    "delete": _delete,
    "resize": _resize,
    "move": _move,
    "host enabled": _enabled,
    "host up": _up,
    "node back": _node_back,
    "node well": _node_well,
    "host added": _added,
    "ratio": _ratio,
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("event", EVENTS)
def test_who_may_fit_is_woken_and_nobody_else(stage: Stage, event: str) -> None:
    """Room for a small one in one zone: not for a larger one, nor for another zone's."""
    make_room = EVENTS[event](stage)
    large = stage.wait("large", LARGE, **NOVA)
    small = stage.wait("small", SMALL, **NOVA)
    elsewhere = stage.wait("elsewhere", SMALL, availability_zone="z2") if event != "move" else ""
    before = stage.tried()
    make_room()
    eventually(lambda: read_state(stage.folder, small) == "active", SOON)
    others = {one for one in (large, elsewhere) if one}
    assert {uuid: stage.tried()[uuid] for uuid in others} == {
        uuid: before[uuid] for uuid in others
    }
    assert all(waits(stage.folder, one) for one in others)


def test_a_host_that_comes_to_a_zone_wakes_who_asks_for_that(stage: Stage) -> None:
    host = stage.host_of(stage.smalls[0])
    there = [one for one in (*stage.mediums, *stage.smalls) if stage.host_of(one) == host]
    zoned = stage.wait("zoned", SMALL, availability_zone="z2")
    larger = stage.wait("larger", HUGE, availability_zone="z2")
    before = stage.tried()
    for one in there:
        stage.end(one)
    # Room in another zone is nothing to them.
    assert stage.tried() == before
    stage.aggregate(stage.other_zone, add_host={"host": host})
    eventually(lambda: read_state(stage.folder, zoned) == "active", SOON)
    assert stage.host_of(zoned) == host
    assert stage.tried()[larger] == before[larger]


def test_a_drain_that_waits_is_in_the_queue_and_woken(stage: Stage) -> None:
    cloud = stage.cloud
    host = stage.host_of(stage.smalls[0])
    leaving = [one for one in stage.smalls if stage.host_of(one) == host]
    body = {"drain": {"host": host, "wait_seconds": 600}}
    cloud.call("POST", "/v2.1/bulk-migrations", ADMIN, json={"bulk_migration": body})

    def moves(token: str = ADMIN) -> dict[str, Any]:
        found = cloud.call("GET", "/v2.1/waiting", token).get("moves", ())
        return {one["server_id"]: one for one in found}

    found = eventually(lambda: all(one in moves() for one in leaving) and moves(), SOON)
    one = found[leaving[0]]
    assert (one["action"], one["host"], one["needs"]["VCPU"]) == ("drain", host, 2)
    assert "No valid host" in one["reason"] and one["since"] < one["until"]
    assert moves(MEMBER) == {}
    other = next(one for one in stage.mediums if stage.host_of(one) != host)
    # the room is enough for any of those that leave, not for all
    crowd = [one for one in (*stage.smalls, *stage.mediums) if stage.host_of(one) == host]
    stage.end(other)
    eventually(lambda: any(stage.host_of(one) not in (host, "None") for one in crowd), SOON)
