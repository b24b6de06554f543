"""What-if decides as a real decision does, on a snapshot that fills up."""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from common.messages.facts import StorageFacts
from scheduler.choose import Filter, Weigher, choose
from scheduler.filters.resources import resources
from scheduler.filters.service import node_healthy
from scheduler.filters.storage import storage_room
from scheduler.messages import Fit
from scheduler.weighers.capacity import ram
from scheduler.whatif import capacity, place
from tests.unit.scheduler.test_choose import a_host, a_request

FILTERS: dict[str, Filter] = {
    "node_healthy": node_healthy,
    "resources": resources,
    "storage_room": storage_room,
}
WEIGHERS: dict[str, tuple[Weigher, float]] = {"ram": (ram, 1.0)}


def winners(hosts: list[Any], requests: list[Any]) -> list[str | None]:
    return [
        one.choice.ranked[0].host.name if one.choice.ranked else None
        for one in place(hosts, requests, FILTERS, WEIGHERS)
    ]


def test_each_server_takes_its_room() -> None:
    hosts = [a_host("a", free_mib=4096), a_host("b", free_mib=3000)]
    four = [a_request(server_uuid=str(n), memory_mib=2000) for n in range(4)]
    assert winners(hosts, four) == ["a", "b", "a", None]
    assert hosts[0].used["MEMORY_MB"] == 4096  # the caller's world is as it was


def test_capacity_tells_the_scarcest() -> None:
    small = (StorageFacts("local", "dir", False, True, 100, 45),)
    hosts = [
        a_host("memory", free_mib=4096),
        a_host("sick", healthy=False, health="node is offline"),
        a_host("storage", free_mib=8192, storages=small),
    ]
    found = capacity(hosts, a_request(memory_mib=2048, disk_gib=20), FILTERS)
    assert found.fits == (
        Fit("memory", "nova", 2, "MEMORY_MB"),
        Fit("storage", "nova", 2, "room on storage local"),
        Fit("sick", "nova", 0, "node is offline"),
    )
    assert found.total == 4


@given(
    st.lists(st.integers(0, 8192), max_size=4),
    st.integers(1, 9000),
    st.integers(1, 16),
)
def test_as_many_as_fit_find_a_host_and_not_one_more(
    free: list[int], memory_mib: int, vcpus: int
) -> None:
    hosts = [a_host(f"pve{n}", free_mib=mib) for n, mib in enumerate(free)]
    request = a_request(memory_mib=memory_mib, vcpus=vcpus, disk_gib=0)
    total = capacity(hosts, request, FILTERS).total
    requests = [dataclasses.replace(request, server_uuid=str(n)) for n in range(total + 1)]
    found = winners(hosts, requests)
    assert found[total] is None
    assert None not in found[:total]


@given(
    st.lists(st.tuples(st.integers(0, 8192), st.booleans()), max_size=5),
    st.lists(st.sampled_from([500, 2000, 3000]), max_size=8),
    st.integers(1, 3),
)
def test_as_if_each_had_been_decided_anew(
    world: list[tuple[int, bool]], sizes: list[int], keep: int
) -> None:
    hosts = [a_host(f"pve{n}", free_mib=mib, healthy=ok) for n, (mib, ok) in enumerate(world)]
    requests = [
        a_request(server_uuid=str(n), memory_mib=mib, disk_gib=0) for n, mib in enumerate(sizes)
    ]
    for request, one in zip(
        requests, place(hosts, requests, FILTERS, WEIGHERS, keep), strict=True
    ):
        choice, anew = one.choice, choose(one.hosts, request, FILTERS, WEIGHERS)
        assert choice.refused == anew.refused
        assert choice.passed == len(anew.ranked)
        assert choice.ranked == anew.ranked[:keep]
