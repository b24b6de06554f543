"""Servers that wait for room: who is woken, in which order, how it ends, and what is shown."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from common.story.summary import summary
from conductor.service import ConductorService
from tests.fixtures.auth import ADMIN, MEMBER, OTHER
from tests.functional.test_costs import HOSTS, Cloud, image_id, look, read_state
from tests.functional.waiting import eventually

#: each host has room for one of the large ones, or for four small ones
LARGE, SMALL = "8", "2"
OPTIONS = (
    ("null", "vcpus", 8),
    ("compute", "cpu_allocation_ratio", 1.0),
    (
        "seed",
        "flavors",
        ["1:m1.tiny:1:512:1", f"{LARGE}:large:8:2048:1", f"{SMALL}:small:2:512:1"],
    ),
    ("quota", "instances", 40),
    ("quota", "cores", -1),
    ("conductor", "scan_seconds", 0.2),
    ("conductor", "waiting_of_project", 6),
)


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    with running(tmp_path) as made:
        yield made


@contextlib.contextmanager
def running(folder: Path, *options: tuple[str, str, Any]) -> Iterator[Cloud]:
    made = Cloud(folder, options=(*OPTIONS, *options))
    made.start()
    try:
        eventually(made.ready)
        yield made
        assert eventually(made.audit)["clean"]
    finally:
        made.stop()


@pytest.fixture
def create(cloud: Cloud, tmp_path: Path) -> Callable[..., str]:
    return creating(cloud, tmp_path)


def creating(cloud: Cloud, folder: Path) -> Callable[..., str]:
    image = image_id(folder)

    def made(
        name: str,
        flavor: str = LARGE,
        wait: Any = 600,
        group: str | None = None,
        wait_all: str | None = None,
        **more: Any,
    ) -> str:
        server = {"name": name, "flavorRef": flavor, "imageRef": image, "networks": "none"} | more
        body: dict[str, Any] = {"server": server}
        asked = {"micronova:wait": wait, "micronova:wait_all": wait_all, "group": group}
        hints = {name: value for name, value in asked.items() if value is not None}
        if hints:
            body["os:scheduler_hints"] = hints
        return str(cloud.call("POST", "/v2.1/servers", json=body)["server"]["id"])

    return made


@pytest.fixture
def full(cloud: Cloud, create: Callable[..., str], tmp_path: Path) -> list[str]:
    """Servers that fill every host."""
    uuids = [create(f"full-{n}", wait=None) for n in range(HOSTS)]
    eventually(lambda: all(read_state(tmp_path, one) == "active" for one in uuids))
    return uuids


def delete(cloud: Cloud, uuid: str) -> None:
    cloud.call("DELETE", f"/v2.1/servers/{uuid}")


def waits(folder: Path, uuid: str) -> bool:
    query = (
        "SELECT count(*) FROM waiting_builds w JOIN operations o ON o.id = w.operation_id "
        "WHERE w.server_uuid = ? AND w.woken_at IS NULL AND o.state = 'queued' "
        "AND o.lease_owner IS NULL"
    )
    return bool(look(folder, query, uuid))


def states(folder: Path, *uuids: str) -> list[str]:
    return [read_state(folder, uuid) for uuid in uuids]


def test_one_waits_and_is_built_once_there_is_room(
    cloud: Cloud, create: Callable[..., str], full: list[str], tmp_path: Path
) -> None:
    uuid = create("patient")
    eventually(lambda: waits(tmp_path, uuid))
    server = cloud.call("GET", f"/v2.1/servers/{uuid}")["server"]
    assert (server["status"], server["OS-EXT-STS:task_state"]) == ("BUILD", "scheduling")
    assert cloud.placement.allocations_of(uuid).by_provider == {}
    assert look(tmp_path, "SELECT count(*) FROM vmids WHERE server_uuid = ?", uuid) == 0
    delete(cloud, full[0])
    eventually(lambda: read_state(tmp_path, uuid) == "active")
    # What a build may take counts from when it has a host, not from when it was asked for.
    left = "SELECT count(*) FROM waiting_builds"
    eventually(lambda: look(tmp_path, left) == 0)
    for one in (uuid, *full[1:]):
        delete(cloud, one)


def test_without_the_hint_nobody_waits(
    cloud: Cloud, create: Callable[..., str], full: list[str], tmp_path: Path
) -> None:
    uuid = create("hasty", wait=None)
    eventually(lambda: read_state(tmp_path, uuid) == "error")
    assert look(tmp_path, "SELECT count(*) FROM waiting_builds") == 0
    for one in (uuid, *full):
        delete(cloud, one)


def test_they_get_room_in_the_order_of_their_arrival(
    cloud: Cloud, create: Callable[..., str], full: list[str], tmp_path: Path
) -> None:
    waiting = []
    for number in range(3):
        waiting.append(create(f"waits-{number}"))
        eventually(lambda: waits(tmp_path, waiting[-1]))
    for number in range(3):
        delete(cloud, full[number])
        eventually(lambda number=number: read_state(tmp_path, waiting[number]) == "active")
        assert states(tmp_path, *waiting[number + 1 :]) == ["building"] * (2 - number)
    for one in waiting:
        delete(cloud, one)


def test_it_ends_in_error_after_its_time(
    cloud: Cloud, create: Callable[..., str], full: list[str], tmp_path: Path
) -> None:
    uuid = create("impatient", wait="2")
    eventually(lambda: waits(tmp_path, uuid))
    eventually(lambda: read_state(tmp_path, uuid) == "error")
    fault = cloud.call("GET", f"/v2.1/servers/{uuid}")["server"]["fault"]["message"]
    assert "It waited" in fault
    assert "No valid host" in fault
    for one in (uuid, *full):
        delete(cloud, one)


def test_one_that_is_deleted_leaves_nothing(
    cloud: Cloud, create: Callable[..., str], full: list[str], tmp_path: Path
) -> None:
    uuid = create("gone")
    eventually(lambda: waits(tmp_path, uuid))
    delete(cloud, uuid)
    eventually(lambda: read_state(tmp_path, uuid) == "deleted")
    later = create("later")
    eventually(lambda: waits(tmp_path, later))
    delete(cloud, full[0])
    eventually(lambda: read_state(tmp_path, later) == "active")
    for one in (later, *full[1:]):
        delete(cloud, one)


def test_no_more_wait_than_a_project_may_have(
    cloud: Cloud, create: Callable[..., str], full: list[str], tmp_path: Path
) -> None:
    waiting = [create(f"waits-{number}") for number in range(6)]
    eventually(lambda: all(waits(tmp_path, one) for one in waiting))
    more = create("one-more")
    eventually(lambda: read_state(tmp_path, more) == "error")
    fault = cloud.call("GET", f"/v2.1/servers/{more}")["server"]["fault"]["message"]
    assert "6 servers of the project do already" in fault
    for one in (*waiting, more, *full):
        delete(cloud, one)


@pytest.mark.parametrize(
    "asked", [{"min_count": 2, "max_count": 2}, {"max_count": 2, "wait_all": "true"}]
)
def test_the_servers_of_a_request_wait_for_room_for_all(
    cloud: Cloud,
    create: Callable[..., str],
    full: list[str],
    tmp_path: Path,
    asked: dict[str, Any],
) -> None:
    create("gang", **asked)
    gang = "SELECT count(*) FROM servers WHERE name LIKE 'gang%' AND vm_state = ?"
    together = "SELECT count(*) FROM waiting_builds WHERE gang IS NOT NULL AND woken_at IS NULL"
    eventually(lambda: look(tmp_path, together) == 2)
    delete(cloud, full[0])
    eventually(lambda: read_state(tmp_path, full[0]) == "deleted")
    small = create("small", flavor=SMALL)
    eventually(lambda: read_state(tmp_path, small) == "active")
    assert look(tmp_path, gang, "building") == 2
    delete(cloud, small)
    delete(cloud, full[1])
    eventually(lambda: look(tmp_path, gang, "active") == 2)
    uuids = rows(tmp_path, "SELECT uuid FROM servers WHERE name LIKE 'gang%'")
    for one in (*uuids, full[2]):
        delete(cloud, one)


def test_a_conductor_that_starts_again_knows_the_order(
    cloud: Cloud, create: Callable[..., str], full: list[str], tmp_path: Path
) -> None:
    waiting = []
    for number in range(3):
        waiting.append(create(f"waits-{number}"))
        eventually(lambda: waits(tmp_path, waiting[-1]))
    cloud.conductor.stop()
    for one in full[:2]:
        # What ends while no conductor runs is seen by the next one.
        cloud.placement.release(one)
    cloud.conductor = ConductorService(cloud.conductor._conf, cloud.transport, cloud.placement)
    cloud.services[0] = cloud.conductor
    cloud.conductor.start()
    eventually(lambda: states(tmp_path, *waiting) == ["active", "active", "building"])
    for one in (*waiting, *full):
        delete(cloud, one)


def test_a_host_that_is_enabled_wakes_them(
    cloud: Cloud, create: Callable[..., str], full: list[str], tmp_path: Path
) -> None:
    host = str(look(tmp_path, "SELECT host FROM servers WHERE uuid = ?", full[0]))
    service = service_of(cloud, host)
    cloud.call("PUT", f"/v2.1/os-services/{service}", ADMIN, json={"status": "disabled"})
    delete(cloud, full[0])
    eventually(lambda: read_state(tmp_path, full[0]) == "deleted")
    uuid = create("patient")
    eventually(lambda: waits(tmp_path, uuid))
    cloud.call("PUT", f"/v2.1/os-services/{service}", ADMIN, json={"status": "enabled"})
    eventually(lambda: read_state(tmp_path, uuid) == "active")
    for one in (uuid, *full[1:]):
        delete(cloud, one)


def service_of(cloud: Cloud, host: str) -> str:
    found = cloud.call("GET", f"/v2.1/os-services?host={host}", ADMIN)["services"]
    return str(next(one["id"] for one in found if one["binary"] == "nova-compute"))


def test_a_place_in_a_group_that_is_freed_wakes_them(
    cloud: Cloud, create: Callable[..., str], tmp_path: Path
) -> None:
    body = {"server_group": {"name": "apart", "policy": "anti-affinity"}}
    group = cloud.call("POST", "/v2.1/os-server-groups", json=body)["server_group"]["id"]
    members = [create(f"member-{n}", SMALL, group=group) for n in range(HOSTS)]
    eventually(lambda: states(tmp_path, *members) == ["active"] * HOSTS)
    more = create("one-more", SMALL, group=group)
    eventually(lambda: waits(tmp_path, more))
    delete(cloud, members[0])
    eventually(lambda: read_state(tmp_path, more) == "active")
    for one in (more, *members[1:]):
        delete(cloud, one)
    eventually(lambda: set(states(tmp_path, more, *members)) == {"deleted"})
    cloud.call("DELETE", f"/v2.1/os-server-groups/{group}")


def test_an_extra_spec_has_them_wait_too(
    cloud: Cloud, create: Callable[..., str], full: list[str], tmp_path: Path
) -> None:
    path = f"/v2.1/flavors/{LARGE}/os-extra_specs"
    cloud.call("POST", path, ADMIN, json={"extra_specs": {"micronova:wait": "300"}})
    uuid = create("by-flavor", wait=None)
    eventually(lambda: waits(tmp_path, uuid))
    for one in (uuid, *full):
        delete(cloud, one)


def test_one_that_needs_what_no_host_has_waits_too(
    cloud: Cloud, create: Callable[..., str], tmp_path: Path
) -> None:
    specs = {"micronova:wait": "300", "resources:CUSTOM_LICENSE": "1"}
    path = f"/v2.1/flavors/{SMALL}/os-extra_specs"
    cloud.call("POST", path, ADMIN, json={"extra_specs": specs})
    uuid = create("licensed", flavor=SMALL, wait=None)
    eventually(lambda: waits(tmp_path, uuid))
    [one] = cloud.call("GET", "/v2.1/waiting")["waiting"]
    assert one["needs"]["CUSTOM_LICENSE"] == 1
    host = cloud.placement.providers()[0].uuid
    cloud.placement.ensure_resource_class("CUSTOM_LICENSE")
    mine = cloud.placement.inventories(host) | {"CUSTOM_LICENSE": {"total": 1}}
    cloud.placement.set_inventory(host, mine)
    eventually(lambda: read_state(tmp_path, uuid) == "active")
    delete(cloud, uuid)


_NO_NUMBERS = ["soon", "-1", "1.5", [1, 2], {"a": 1}, "9" * 30, True, ""]
_NO_TRUTHS = ["perhaps", "2", [True, True], {}, ""]


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        *(("micronova:wait", one) for one in _NO_NUMBERS),
        *(("micronova:wait_all", one) for one in _NO_TRUTHS),
    ],
)
def test_a_hint_that_says_nothing_is_refused(
    cloud: Cloud, tmp_path: Path, hint: str, value: Any
) -> None:
    body = {
        "server": {"name": "s", "flavorRef": "1", "imageRef": image_id(tmp_path)},
        "os:scheduler_hints": {hint: value},
    }
    answer = cloud.api.simulate_post("/v2.1/servers", json=body, headers={"X-Auth-Token": MEMBER})
    assert answer.status_code == 400
    assert hint in answer.text


def test_what_is_shown_of_those_that_wait(
    cloud: Cloud, create: Callable[..., str], full: list[str], tmp_path: Path
) -> None:
    first, second = create("first"), ""
    eventually(lambda: waits(tmp_path, first))
    second = create("second", flavor=SMALL)
    eventually(lambda: waits(tmp_path, second))
    mine = cloud.call("GET", "/v2.1/waiting")["waiting"]
    assert [(one["server_id"], one["place"], one["of"]) for one in mine] == [
        (first, 1, 2),
        (second, 2, 2),
    ]
    assert mine[1]["needs"] == {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 1}
    assert "kept_host" not in mine[0]
    assert "kept_host" in cloud.call("GET", "/v2.1/waiting", ADMIN)["waiting"][0]
    page = cloud.call("GET", "/v2.1/waiting?limit=1")
    assert [one["server_id"] for one in page["waiting"]] == [first]
    assert "marker=1" in page["waiting_links"][0]["href"]
    rest = cloud.call("GET", "/v2.1/waiting?marker=1")["waiting"]
    assert [one["server_id"] for one in rest] == [second]
    assert cloud.call("GET", "/v2.1/waiting", OTHER)["waiting"] == []
    for token in (MEMBER, ADMIN):
        answer = cloud.call("GET", f"/v2.1/explanations/{first}", token)["explanation"]
        [operation] = answer["operations"]
        assert (operation["waiting"]["place"], operation["waiting"]["of"]) == (1, 2)
        assert operation["waiting"]["would_do"] in full
        assert "It waits for room: No valid host was found" in operation["message"]
        words = str(summary(answer))
        assert "waits for room on a host since" in words
        assert "as number 1 of 2" in words
        assert "would make room" in words
    for one in (first, second, *full):
        delete(cloud, one)


def test_how_many_more_hosts_would_take_them(
    cloud: Cloud, create: Callable[..., str], full: list[str], tmp_path: Path
) -> None:
    path = "/v2.1/waiting/hosts"
    kind = {
        "like_host": "null0001",
        "availability_zone": "nova",
        "capacity": {"VCPU": 8, "MEMORY_MB": 262144, "DISK_GB": 4096},
        "traits": [],
        "hosts_now": HOSTS,
    }
    nobody = {"waiting": 0, "kinds": [kind | {"more_hosts": 0, "takes": 0}]}
    assert cloud.call("GET", path, ADMIN) == nobody
    mine = [create("a"), create("b"), create("c", SMALL)]
    eventually(lambda: all(waits(tmp_path, one) for one in mine))
    found = cloud.call("GET", path, ADMIN)
    assert found == {"waiting": 3, "kinds": [kind | {"more_hosts": 3, "takes": 3}]}
    headers = {"X-Auth-Token": MEMBER}
    assert cloud.api.simulate_get(path, headers=headers).status_code == 403
    for one in (*mine, *full):
        delete(cloud, one)


@pytest.mark.parametrize("marker", ["x", "-1", "9" * 12])
def test_a_marker_that_is_no_place_is_refused(cloud: Cloud, marker: str) -> None:
    answer = cloud.api.simulate_get(
        f"/v2.1/waiting?marker={marker}", headers={"X-Auth-Token": MEMBER}
    )
    assert answer.status_code == 400


def rows(folder: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(folder / "cloud.sqlite")
    try:
        return [row[0] for row in connection.execute(query)]
    finally:
        connection.close()
