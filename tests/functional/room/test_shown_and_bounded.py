"""What would make room for a server that waits, and how many may wait, for how long."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from common.story.summary import summary
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


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    bounds = (("conductor", "waiting_most", 2), ("conductor", "wait_most_seconds", 900))
    with running(tmp_path, *bounds) as made:
        yield made
        for uuid in rows(tmp_path, "SELECT uuid FROM servers WHERE deleted_at IS NULL"):
            delete(made, uuid)


def test_the_nearest_host_and_what_is_free_beside_a_server(cloud: Cloud, tmp_path: Path) -> None:
    """The end of a small server makes room for a large one where the rest is free."""
    create = creating(cloud, tmp_path)
    full = [create(f"full-{n}", wait=None) for n in range(HOSTS - 1)]
    eventually(lambda: set(states(tmp_path, *full)) == {"active"})
    small = create("small", SMALL, wait=None)
    eventually(lambda: read_state(tmp_path, small) == "active")
    host = look(tmp_path, "SELECT host FROM servers WHERE uuid = ?", small)
    mine = create("mine")
    eventually(lambda: waits(tmp_path, mine))
    near = {"nearest": {"host": host, "lacks": {"VCPU": 2}}, "one_more_host_like": "null0001"}
    path = f"/v2.1/explanations/{mine}"
    explained = cloud.call("GET", path, ADMIN)["explanation"]
    for shown in (
        explained["operations"][0]["waiting"],
        cloud.call("GET", "/v2.1/waiting", ADMIN)["waiting"][0],
    ):
        assert shown.items() >= ({"would_do": small} | near).items()
    assert (
        f"The nearest: {host} lacks 2 of 8 VCPU. One more host like null0001, or the end of "
        f"server {small} would make room."
    ) in str(summary(explained))
    for owned in (
        cloud.call("GET", path)["explanation"]["operations"][0]["waiting"],
        cloud.call("GET", "/v2.1/waiting")["waiting"][0],
    ):
        assert owned["would_do"] == small
        assert near.keys().isdisjoint(owned)


def test_one_that_is_larger_than_every_host_is_explained(cloud: Cloud, tmp_path: Path) -> None:
    flavor = {"id": "9", "name": "huge", "vcpus": 9, "ram": 512, "disk": 1}
    cloud.call("POST", "/v2.1/flavors", ADMIN, json={"flavor": flavor})
    mine = creating(cloud, tmp_path)("mine", "9")
    eventually(lambda: waits(tmp_path, mine))
    explained = cloud.call("GET", f"/v2.1/explanations/{mine}", ADMIN)["explanation"]
    assert "No host that takes servers could take it, even if it were empty" in str(
        summary(explained)
    )
    assert "could take it" not in str(summary(cloud.call("GET", f"/v2.1/explanations/{mine}")))


def test_what_would_make_room_and_how_many_may_wait(cloud: Cloud, tmp_path: Path) -> None:
    """The end of a server of another zone would not do."""
    create = creating(cloud, tmp_path)
    body = {"aggregate": {"name": "two", "availability_zone": "z2"}}
    aggregate = cloud.call("POST", "/v2.1/os-aggregates", ADMIN, json=body)["aggregate"]["id"]
    action = {"add_host": {"host": "null0003"}}
    cloud.call("POST", f"/v2.1/os-aggregates/{aggregate}/action", ADMIN, json=action)
    full = [create(f"full-{n}", wait=None, availability_zone="nova") for n in range(HOSTS - 1)]
    there = create("there", wait=None, availability_zone="z2")
    eventually(lambda: set(states(tmp_path, *full, there)) == {"active"})
    mine = create("mine", wait=86_400, availability_zone="z2")
    eventually(lambda: waits(tmp_path, mine))
    answer = cloud.call("GET", f"/v2.1/explanations/{mine}")["explanation"]
    assert answer["operations"][0]["waiting"]["would_do"] == there

    # However long a request asks to wait, and however many do in all.
    query = "SELECT round((julianday(until) - julianday(since)) * 86400) FROM waiting_builds"
    assert look(tmp_path, query) == 900
    second = create("second")
    eventually(lambda: waits(tmp_path, second))
    third = create("third")
    eventually(lambda: read_state(tmp_path, third) == "error")
    fault = cloud.call("GET", f"/v2.1/servers/{third}")["server"]["fault"]["message"]
    assert "too many others do already" in fault

    # Room in one zone wakes nobody of another one, not even the first.
    delete(cloud, full[0])
    eventually(lambda: read_state(tmp_path, second) == "active")
    assert waits(tmp_path, mine)
