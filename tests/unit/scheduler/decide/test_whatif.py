"""What-if decides as a real decision does, on a snapshot that fills up."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.messages.facts import StorageFacts
from common.messages.scheduling import RequestSpec
from common.resources.server_groups import GroupFacts
from scheduler.decide.choose import Filter, Weigher, choose
from scheduler.decide.whatif import capacity, place
from scheduler.filters.resources import resources
from scheduler.filters.server_groups import server_group_affinity, server_group_anti_affinity
from scheduler.filters.service import node_healthy
from scheduler.filters.storage import storage_room
from scheduler.hosts.host import Host
from scheduler.messages import Fit
from scheduler.weighers.capacity import ram
from tests.unit.scheduler.decide.test_choose import a_host, a_request

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


def test_capacity_names_the_scarcest() -> None:
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
def test_as_if_each_had_been_decided_again(
    world: list[tuple[int, bool]], sizes: list[int], keep: int
) -> None:
    hosts = [a_host(f"pve{n}", free_mib=mib, healthy=ok) for n, (mib, ok) in enumerate(world)]
    requests = [
        a_request(server_uuid=str(n), memory_mib=mib, disk_gib=0) for n, mib in enumerate(sizes)
    ]
    for request, one in zip(
        requests, place(hosts, requests, FILTERS, WEIGHERS, keep), strict=True
    ):
        choice, alone = one.choice, choose(one.hosts, request, FILTERS, WEIGHERS)
        assert choice.refused == alone.refused
        assert choice.passed == len(alone.ranked)
        assert choice.ranked == alone.ranked[:keep]


# --- what storages really have free


def stored(
    name: str, free_gib: int, *, shared: bool = False, ratio: float = 1.0, **more: Any
) -> Host:
    storages = (StorageFacts("local", "dir", shared, True, 1000, free_gib),)
    return a_host(
        name, free_mib=8192, storages=storages, disk_allocation_ratio=ratio, disk_gib=1000, **more
    )


def small(count: int, disk_gib: int = 20, **more: Any) -> list[RequestSpec]:
    return [
        a_request(server_uuid=str(n), vcpus=1, memory_mib=1, disk_gib=disk_gib, **more)
        for n in range(count)
    ]


def placed(hosts: list[Host], requests: list[RequestSpec]) -> int:
    return sum(name is not None for name in winners(hosts, requests))


@pytest.mark.parametrize(
    ("hosts", "fit"),
    [
        ([stored("a", 25)], 1),
        ([stored("a", 25), stored("b", 45)], 3),
        # Thin: placement alone counts what is promised.
        ([stored("a", 25, ratio=2.0)], 4),
        ([stored("a", 0, ratio=2.0)], 0),
        # One storage, whichever host takes the disk.
        ([stored("a", 45, shared=True), stored("b", 45, shared=True)], 2),
        # Storages of the same name in two clusters.
        ([stored("a", 45, shared=True), stored("b", 45, shared=True, cluster="sim2")], 4),
        ([stored("a", 45, shared=True), stored("b", 25)], 3),
    ],
)
def test_disks_take_what_is_really_free(hosts: list[Host], fit: int) -> None:
    assert placed(hosts, small(6)) == fit
    assert capacity(hosts, small(1)[0], FILTERS).total == fit
    *_, last = place(hosts, small(6), FILTERS, WEIGHERS)
    assert last.choice.refused == choose(last.hosts, last.request, FILTERS, WEIGHERS).refused


def test_a_smaller_disk_still_fits_where_a_larger_does_not() -> None:
    hosts = [stored("a", 45, shared=True), stored("b", 45, shared=True)]
    names = winners(hosts, [*small(3), *small(2, disk_gib=4), *small(1, disk_gib=2)])
    assert [name is not None for name in names] == [True, True, False, True, False, False]


def test_what_moves_within_a_shared_storage_takes_nothing_of_it() -> None:
    hosts = [stored("a", 25, shared=True)]
    assert placed(hosts, small(3, vm=("sim1", 100_007))) == 3
    assert placed(hosts, small(3, vm=("sim2", 100_007))) == 1


def test_it_says_what_is_left() -> None:
    *_, last = place([stored("a", 25)], small(2), FILTERS, WEIGHERS)
    assert dict(last.choice.refused["storage_room"]) == {"a": "5 GiB free on local, 20 GiB asked"}


# --- server groups

GROUPS: dict[str, Filter] = {
    **FILTERS,
    "server_group_affinity": server_group_affinity,
    "server_group_anti_affinity": server_group_anti_affinity,
}


@pytest.mark.parametrize(
    ("group", "fit"),
    [
        (GroupFacts("g", "anti-affinity"), 2),
        (GroupFacts("g", "anti-affinity", 1, {"a": 1}), 1),
        (GroupFacts("g", "anti-affinity", 3, {"a": 1}), 5),
        (GroupFacts("g", "affinity"), 4),
        (GroupFacts("g", "affinity", 1, {"b": 1}), 4),
        (GroupFacts("g", "soft-anti-affinity"), 8),
    ],
)
def test_groups_limit_how_many_fit(group: GroupFacts, fit: int) -> None:
    hosts = [stored(name, 900) for name in "ab"]
    requests = small(10, group=group)
    tried = place(hosts, requests, GROUPS, WEIGHERS)
    assert sum(bool(one.choice.ranked) for one in tried) == fit
    found = capacity(hosts, requests[0], GROUPS)
    assert found.total == fit
    if group.max_per_host == 3:
        assert found.fits[1] == Fit("a", "nova", 2, "places in its anti-affinity group")
