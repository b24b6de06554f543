"""`/capacity/total`: each number of the cloud once."""

from __future__ import annotations

from typing import Any

import pytest

from common import clock
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, a_host, a_service
from tests.fixtures.listings import counted
from tests.fixtures.volumes import SHARED_STORAGE
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

LOCAL = {**SHARED_STORAGE, "name": "local", "shared": False, "total_gib": 50, "available_gib": 20}
OFF = {**SHARED_STORAGE, "name": "off", "active": False}
ISO = {**SHARED_STORAGE, "name": "iso", "content": ["iso"]}


def shown(api: ComputeApi) -> Any:
    answer = api.get("/capacity/total", token=auth.ADMIN)
    assert answer.status_code == 200, answer.text
    return answer.json["total_capacity"]


def test_a_shared_storage_is_counted_once(make: MakeApi) -> None:
    storages = [SHARED_STORAGE, LOCAL, OFF, ISO]
    up = {"last_seen_at": clock.utcnow()}
    api = make(
        *(row for name in ("n1", "n2") for row in (a_host(name, facts={"storages": storages}),)),
        a_host("b1", cluster="c2", facts={"cluster": "c2", "storages": [SHARED_STORAGE]}),
        # what a node that is off reported last
        a_host("o1", cluster="c3", facts={"storages": [SHARED_STORAGE], "online": False}),
        *(a_service(name, **up) for name in ("n1", "n2", "b1", "o1")),
    )
    found = shown(api)
    assert found["storages"] == 4
    assert found["storage_gib"] == {
        **{"total": 2100, "used": 260, "free": 1840},
        "most_free": {"name": "data of c2", "free": 900},
    }


def test_processors_and_memory_are_those_of_hosts_that_take_servers(make: MakeApi) -> None:
    up = {"last_seen_at": clock.utcnow()}
    twice = {"cpu_allocation_ratio": 2.0, "reserved_vcpus": 1, "reserved_memory_mib": 384}
    api = make(
        a_host("n1", facts=twice),
        a_host("n2"),
        a_host("off", facts={"online": False, "healthy": False, "health": "It is off."}),
        a_host("late"),
        a_host("tired"),
        a_service("n1", **up),
        a_service("n2", **up),
        a_service("off", **up),
        a_service("late", last_seen_at=clock.after(-3600)),
        a_service("tired", **up, disabled=True),
        a_full_server(1, host="n1", vcpus=3, memory_mib=1000),
        a_full_server(2, host="n2", vcpus=20, memory_mib=500),
        a_full_server(3, host="tired", vcpus=4, memory_mib=500),
        a_full_server(4, host="n1", deleted_at=clock.utcnow()),
    )
    found = shown(api)
    counts = {name: found[name] for name in ("hosts_up", "hosts_taking_servers")}
    others = found["hosts"] - 5
    assert counts == {"hosts_up": 3 + others, "hosts_taking_servers": 2 + others}
    vcpus, memory = found["resources"]
    assert (vcpus["resource_class"], memory["resource_class"]) == ("VCPU", "MEMORY_MB")
    assert vcpus["total"] == 14 + 8 + 8 * others
    assert vcpus["used"] == 23
    # twelve too many on one host take nothing from another
    assert vcpus["free"] == 11 + 8 * others
    assert vcpus["most_free"] == {"name": "n1", "free": 11}
    assert memory["used"] == 1500
    assert memory["free"] == 16_000 - 1000 + 16_384 - 500 + 16_384 * others


def test_it_is_two_queries_of_an_administrator(api: ComputeApi) -> None:
    with counted(api.reader) as count:
        shown(api)
        assert count() == 2
    assert api.get("/capacity/total", token=auth.MEMBER).status_code == 403
    assert api.get("/capacity/total?x=1", token=auth.ADMIN).status_code == 400
