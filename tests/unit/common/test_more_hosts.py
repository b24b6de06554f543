"""How many more hosts would take all that wait."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.more_hosts import Host, Kind, Wanted, kinds, more

FAST = frozenset({"CUSTOM_FAST"})
SMALL = Kind("pve1", "az1", {"VCPU": 8, "MEMORY_MB": 1024}, 3)


def wanted(vcpus: int, memory: int = 0, zone: str | None = None) -> Wanted:
    return Wanted({"VCPU": vcpus, "MEMORY_MB": memory}, zone)


def test_hosts_that_offer_the_same_are_of_a_kind() -> None:
    hosts = [
        Host("pve2", "az1", {"VCPU": 8, "MEMORY_MB": 1024}),
        Host("pve1", "az1", {"MEMORY_MB": 1024, "VCPU": 8}, FAST),
        Host("pve3", "az2", {"VCPU": 8, "MEMORY_MB": 1024}, FAST),
    ]
    assert [(one.like, one.zone, one.hosts) for one in kinds(hosts)] == [
        ("pve1", "az1", 2),
        ("pve3", "az2", 1),
    ]


def test_a_trait_makes_a_difference_where_somebody_asks_for_it() -> None:
    capacity = {"VCPU": 8}
    hosts = [Host("pve1", "az1", capacity, FAST), Host("pve2", "az1", capacity)]
    fast, slow = kinds(hosts, FAST)
    assert (fast.like, fast.traits, slow.like) == ("pve1", FAST, "pve2")
    waiting = [
        Wanted({"VCPU": 4}, None, required=FAST),
        Wanted({"VCPU": 4}, None, forbidden=FAST),
        Wanted({"VCPU": 4}, None),
    ]
    assert [(one.hosts, one.takes) for one in (more(fast, waiting), more(slow, waiting))] == [
        (1, 2),
        (1, 2),
    ]
    assert more(slow, waiting[:1]).takes == 0


def test_one_server_has_no_more_than_the_node_has() -> None:
    """However much may be allocated."""
    [four_times] = kinds([Host("pve1", "az1", {"VCPU": 32}, largest={"VCPU": 8})])
    assert more(four_times, [wanted(8), wanted(9)]).takes == 1


@pytest.mark.parametrize(
    ("waiting", "hosts", "takes"),
    [
        ([], 0, 0),
        ([wanted(8)], 1, 1),
        ([wanted(4), wanted(4)], 1, 2),
        ([wanted(5), wanted(4), wanted(3)], 2, 3),
        ([wanted(5), wanted(3), wanted(5), wanted(3)], 2, 4),
        ([wanted(2)] * 9, 3, 9),
        ([wanted(1, 1000), wanted(1, 1000)], 2, 2),
        # Never fit: too large, of another zone, of a class that these hosts don't have.
        ([wanted(9), wanted(1)], 1, 1),
        ([wanted(1, zone="az2"), wanted(1, zone="az1")], 1, 1),
        ([Wanted({"CUSTOM_GPU": 1}, None)], 0, 0),
        ([Wanted({}, None), Wanted({"VCPU": 0}, None)], 1, 2),
    ],
)
def test_how_many(waiting: list[Wanted], hosts: int, takes: int) -> None:
    found = more(SMALL, waiting)
    assert (found.hosts, found.takes) == (hosts, takes)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 8), st.integers(0, 1024)), max_size=40))
def test_it_is_enough_and_not_absurd(sizes: list[tuple[int, int]]) -> None:
    found = more(SMALL, [wanted(*one) for one in sizes])
    assert found.takes == len(sizes)
    vcpus, memory = sum(one for one, _ in sizes), sum(one for _, one in sizes)
    least = max(-(-vcpus // 8), -(-memory // 1024))
    assert least <= found.hosts <= max(1, 2 * (vcpus / 8 + memory / 1024)) if sizes else True
