"""Which host is the nearest to have room for a server, and whose end would make it."""

from __future__ import annotations

from typing import Any

import pytest

from common.more_hosts import Wanted
from common.near_room import Ending, HostRoom, Near, nearest, one_more, would_make_room

EMPTY = {"VCPU": 16, "MEMORY_MB": 4096}


def a_host(name: str, vcpus: int, memory: int = 4096, **changes: Any) -> HostRoom:
    values: dict[str, Any] = {"zone": "z1", "capacity": EMPTY, "traits": frozenset()}
    return HostRoom(name, free={"VCPU": vcpus, "MEMORY_MB": memory}, **(values | changes))


def asks(zone: str | None = None, **traits: frozenset[str]) -> Wanted:
    return Wanted({"VCPU": 8, "MEMORY_MB": 2048}, zone, **traits)


FAST, SLOW = frozenset({"CUSTOM_FAST"}), frozenset({"CUSTOM_SLOW"})


@pytest.mark.parametrize(
    ("asked", "hosts", "found"),
    [
        (asks(), [a_host("b", 4), a_host("c", 6)], Near("c", {"VCPU": 2})),
        (asks(), [a_host("c", 6), a_host("b", 6)], Near("b", {"VCPU": 2})),
        (asks(), [a_host("b", 6, 0), a_host("c", 1)], Near("c", {"VCPU": 7})),
        (asks(), [a_host("b", 6, 1024)], Near("b", {"VCPU": 2, "MEMORY_MB": 1024})),
        (asks("z2"), [a_host("b", 6), a_host("c", 0, zone="z2")], Near("c", {"VCPU": 8})),
        (asks(), [a_host("b", 6, capacity={"VCPU": 6, "MEMORY_MB": 4096})], None),
        (asks(), [a_host("b", 8)], None),
        (
            asks(required=FAST),
            [a_host("b", 6), a_host("c", 1, traits=FAST)],
            Near("c", {"VCPU": 7}),
        ),
        (asks(forbidden=SLOW), [a_host("b", 6, traits=SLOW)], None),
        (asks(), [], None),
    ],
)
def test_the_nearest_host(asked: Wanted, hosts: list[HostRoom], found: Near | None) -> None:
    assert nearest(asked, hosts) == found


def test_a_server_larger_than_the_node_finds_none() -> None:
    small = a_host("b", 6, largest={"VCPU": 4})
    assert nearest(asks(), [small]) is None
    assert one_more(asks(), [small]) is None
    assert one_more(asks(), [a_host("c", 6, largest={"VCPU": 8})]) == "c"


def test_a_class_that_records_do_not_count_is_never_lacking() -> None:
    asked = Wanted({"VCPU": 8, "CUSTOM_GPU": 1}, None)
    full = a_host("b", 6, capacity=EMPTY | {"CUSTOM_GPU": 1})
    assert nearest(asked, [full, a_host("c", 7)]) == Near("b", {"VCPU": 2})


def test_what_is_free_beside_a_server_counts_with_it() -> None:
    small, large = {"VCPU": 2, "MEMORY_MB": 512}, {"VCPU": 8, "MEMORY_MB": 2048}
    hosts = [a_host("b", 6), a_host("c", 0), a_host("d", 6, zone="z2")]
    endings = [
        Ending("small-b", "b", small),
        Ending("small-c", "c", small),
        Ending("small-d", "d", small),
        Ending("large-c", "c", large),
        Ending("elsewhere", "x", large),
    ]
    assert list(would_make_room(asks("z1"), hosts, endings)) == ["small-b", "large-c"]


def test_one_more_host_of_the_most_frequent_kind_that_would_do() -> None:
    tiny = [a_host(name, 4, capacity={"VCPU": 4, "MEMORY_MB": 4096}) for name in "abc"]
    hosts = [*tiny, a_host("f", 0), a_host("e", 0), a_host("d", 0, zone="z2")]
    assert one_more(asks(), hosts) == "e"
    assert one_more(asks("z2"), hosts) == "d"
    assert one_more(asks(required=FAST), hosts) is None
