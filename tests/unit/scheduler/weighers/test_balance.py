"""The score of a cloud, the mode that follows it, and the plan that improves it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import config
from common.messages.facts import HaRule, StorageFacts
from common.resources.server_groups import GroupFacts
from scheduler import config as scheduler_config
from scheduler.decide.choose import Filter, Weigher, choose
from scheduler.decide.rebalance import LOOKED_AT, plan
from scheduler.decide.whatif import place
from scheduler.filters.hints import same_host
from scheduler.filters.resources import resources, wanted
from scheduler.filters.server_groups import server_group_anti_affinity
from scheduler.filters.service import node_healthy
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host import Host
from scheduler.messages import Movable, Rebalancing
from scheduler.service import load_weighers
from scheduler.weighers import balance
from scheduler.weighers.capacity import ram
from scheduler.weighers.cluster import cluster_score, cluster_spread
from tests.unit.scheduler.decide.test_choose import a_host, a_request

FILTERS: dict[str, Filter] = {
    "node_healthy": node_healthy,
    "resources": resources,
    "anti_affinity": server_group_anti_affinity,
}
SCORE: dict[str, tuple[Weigher, float]] = {"cluster_score": (cluster_score, 1.0)}
SHARED = (StorageFacts("local", "nfs", True, True, 100, 90),)


def filled(name: str, used_mib: int, used_vcpus: int, **changes: Any) -> Host:
    """A host with 8 GiB and 16 processors, or another `capacity`; so much of it is promised."""
    capacity = changes.pop("capacity", {"VCPU": 16, "MEMORY_MB": 8192, "DISK_GB": 100})
    used = {"VCPU": used_vcpus, "MEMORY_MB": used_mib, "DISK_GB": 0}
    return dataclasses.replace(a_host(name, **changes), capacity=capacity, used=used)


def movable(uuid: str, host: str, **asked: Any) -> Movable:
    return Movable(a_request(server_uuid=uuid, **asked), f"web-{uuid}", host)


def moves(found: Rebalancing) -> list[tuple[str, str, str]]:
    return [(move.server_uuid, move.source, move.target) for move in found.moves]


def test_the_score_is_the_variance_of_the_shares() -> None:
    assert balance.score(HostColumns.of([])) == 0
    even = [filled("a", 4096, 8), filled("b", 4096, 8)]
    assert balance.score(HostColumns.of(even)) == 0
    # memory: shares 0 and 1, processors: 0.5 and 0.5
    uneven = [filled("a", 8192, 8), filled("b", 0, 8)]
    assert balance.score(HostColumns.of(uneven)) == pytest.approx(0.25 / 2)


sizes = st.tuples(st.integers(0, 8192), st.integers(0, 16), st.integers(1, 4))


@given(
    st.lists(sizes, min_size=1, max_size=5),
    st.integers(1, 4096),
    st.integers(1, 4),
)
def test_the_host_wins_that_leaves_the_best_score(
    found: list[tuple[int, int, int]], memory_mib: int, vcpus: int
) -> None:
    hosts = [
        filled(
            f"h{number}",
            used,
            promised,
            capacity={"VCPU": 16 * size, "MEMORY_MB": 8192 * size, "DISK_GB": 100},
        )
        for number, (used, promised, size) in enumerate(found)
    ]
    request = a_request(memory_mib=memory_mib, vcpus=vcpus, disk_gib=0)
    ranked = choose(hosts, request, FILTERS, SCORE).ranked

    def after(name: str) -> float:
        world = HostColumns.of(hosts).draft()
        [(_, position)] = world.positions([name])
        world.take(position, wanted(request))
        return balance.score(world)

    if ranked:
        scores = {weighed.host.name: after(weighed.host.name) for weighed in ranked}
        assert scores[ranked[0].host.name] == pytest.approx(min(scores.values()), abs=1e-9)


def test_each_server_of_a_batch_sees_the_whole_fleet_again() -> None:
    hosts = [filled("a", 2048, 0), filled("b", 0, 0), filled("c", 0, 0)]
    requests = [a_request(server_uuid=str(number), memory_mib=1024) for number in range(5)]
    fresh = []
    tried = place(hosts, requests, FILTERS, SCORE)
    for request, one in zip(requests, tried, strict=True):
        choice, alone = one.choice, choose(one.hosts, request, FILTERS, SCORE)
        assert choice.ranked[0].host.name == alone.ranked[0].host.name
        fresh.append(choice.ranked[0].host.name)
    assert sorted(fresh[:4]) == ["b", "b", "c", "c"]


def test_modes_are_presets_of_the_multipliers() -> None:
    asked = {"ram": 1.0, "cpu": 0.5, "build_failure": 10.0}
    assert scheduler_config.in_mode("spread", asked) == asked
    assert scheduler_config.in_mode("pack", asked) == {
        "ram": -1.0,
        "cpu": -0.5,
        "build_failure": 10.0,
    }
    assert scheduler_config.in_mode("cluster-score", asked) == {
        "cluster_score": 1.5,
        "build_failure": 10.0,
    }


def test_packing_goes_where_least_is_free() -> None:
    conf = config.load([scheduler_config.register])
    hosts = [filled("full", 4096, 8), filled("empty", 0, 0)]
    for mode, winner in (("spread", "empty"), ("pack", "full")):
        conf.set_override("mode", mode, "scheduler")
        ranked = choose(hosts, a_request(), FILTERS, load_weighers(conf)).ranked
        assert ranked[0].host.name == winner


def test_clusters_share_what_is_asked() -> None:
    hosts = [
        filled("a1", 0, 0, cluster="a"),
        filled("a2", 8192, 0, cluster="a"),
        filled("b1", 2048, 0, cluster="b"),
        filled("b2", 2048, 0, cluster="b"),
    ]
    spread: dict[str, tuple[Weigher, float]] = {
        "cluster_spread": (cluster_spread, 5.0),
        "ram": (ram, 1.0),
    }
    ranked = choose(hosts, a_request(), FILTERS, spread).ranked
    assert [weighed.host.name for weighed in ranked][:2] != ["a1", "a2"]
    assert ranked[0].host.name in {"b1", "b2"}


# --- the plan


def test_the_fullest_host_is_relieved_and_each_move_gains() -> None:
    hosts = HostColumns.of([filled("a", 8192, 4), filled("b", 0, 0)])
    servers = [movable(str(number), "a") for number in range(4)]
    found = plan(hosts, servers, FILTERS, 10)
    assert [move[1:] for move in moves(found)] == [("a", "b")] * 2
    assert found.score_after == 0
    assert found.score_before - sum(move.gain for move in found.moves) == pytest.approx(0)
    # What it looked at is as it was.
    assert balance.score(hosts) == found.score_before


def test_what_is_bounded_even_or_impossible_is_left() -> None:
    servers = [movable(str(number), "a") for number in range(4)]
    hosts = HostColumns.of([filled("a", 8192, 4), filled("b", 0, 0)])
    assert len(plan(hosts, servers, FILTERS, 1).moves) == 1
    even = HostColumns.of([filled("a", 4096, 4), filled("b", 4096, 4)])
    assert plan(even, servers, FILTERS, 10).moves == ()
    for changes in ({"healthy": False, "health": "offline"}, {"cluster": "other"}):
        lost = HostColumns.of([filled("a", 8192, 4), filled("b", 0, 0, **changes)])
        assert plan(lost, servers, FILTERS, 10).moves == ()
    assert plan(hosts, [], FILTERS, 10).moves == ()
    assert plan(hosts, [movable("1", "gone")], FILTERS, 10).moves == ()


def test_a_group_stays_apart_also_after_a_move() -> None:
    group = GroupFacts("g", "anti-affinity", 1, {})
    hosts = HostColumns.of([filled("a", 8192, 4), filled("b", 0, 0)])
    servers = [movable(str(number), "a", group=group) for number in range(4)]
    assert len(plan(hosts, servers, FILTERS, 10).moves) == 1


@pytest.mark.parametrize(
    ("policy", "others", "moved"),
    [
        ("soft-affinity", {"a": 3}, False),
        ("soft-affinity", {"a": 1, "b": 1}, True),
        ("soft-affinity", {"b": 3}, True),
        ("soft-anti-affinity", {"b": 1}, False),
        ("soft-anti-affinity", {"a": 1, "b": 1}, True),
        ("soft-anti-affinity", {"a": 3}, True),
    ],
)
def test_a_wish_is_not_given_up_for_evenness(
    policy: str, others: dict[str, int], moved: bool
) -> None:
    hosts = HostColumns.of([filled("a", 8192, 4), filled("b", 0, 0)])
    server = movable("1", "a", group=GroupFacts("g", policy, 1, others))
    assert moves(plan(hosts, [server], FILTERS, 10)) == [("1", "a", "b")] * moved


def test_servers_that_wish_to_be_together_stay_so_and_those_apart_part() -> None:
    hosts = HostColumns.of([filled("a", 8192, 4), filled("b", 0, 0)])
    for policy, found in (("soft-affinity", 0), ("soft-anti-affinity", 2)):
        group = GroupFacts("g", policy, 1, {"a": 3})
        servers = [movable(str(number), "a", group=group) for number in range(4)]
        assert len(plan(hosts, servers, FILTERS, 10).moves) == found


def test_no_server_leaves_the_nodes_that_its_rule_prefers() -> None:
    rule = HaRule("r", strict=False, nodes=1, priority=1)
    hosts = HostColumns.of([filled("a", 8192, 4, ha_rules=(rule,)), filled("b", 0, 0)])
    named = movable("1", "a", extra_specs={"ha:rule": "r"})
    assert plan(hosts, [named], FILTERS, 10).moves == ()


def test_what_is_cheap_to_move_moves() -> None:
    shared = HostColumns.of(
        [filled("a", 8192, 4, storages=SHARED), filled("b", 0, 0, storages=SHARED)]
    )
    local = HostColumns.of([filled("a", 8192, 4), filled("b", 0, 0)])
    servers = [movable("large", "a", disk_gib=40), movable("small", "a", disk_gib=2)]
    [first] = plan(local, servers, FILTERS, 1).moves
    assert (first.server_uuid, first.memory_mib, first.disk_gib) == ("small", 2048, 2)
    assert [move.disk_gib for move in plan(shared, servers, FILTERS, 1).moves] == [0]


def test_a_host_that_is_full_has_no_numbers_and_is_relieved() -> None:
    full = dataclasses.replace(a_host("a"), capacity={}, used={})
    hosts = HostColumns.of([full, filled("b", 0, 0)])
    servers = [movable(str(number), "a") for number in range(4)]
    found = plan(hosts, servers, FILTERS, 10)
    assert [move[1:] for move in moves(found)] == [("a", "b")] * 2


def test_a_server_keeps_the_company_that_its_hints_ask_for() -> None:
    from scheduler.filters.hints import different_host

    hosts = HostColumns.of([filled("a", 8192, 4), filled("b", 0, 0), filled("c", 8192, 16)])
    servers = [
        movable(
            one, "a", hints={"different_host": [other]}, server_hosts={other: "a"}, disk_gib=disk
        )
        for one, other, disk in (("1", "2", 1), ("2", "1", 2))
    ]
    found = plan(hosts, servers, {**FILTERS, "different_host": different_host}, 10)
    assert moves(found) == [("1", "a", "b")]


def test_among_many_hosts_one_move_is_worth_while_too() -> None:
    hosts = HostColumns.of([filled(f"h{number}", 8192 * (number % 2), 4) for number in range(400)])
    servers = [movable(str(number), "h1") for number in range(4)]
    assert [move[1] for move in moves(plan(hosts, servers, FILTERS, 1))] == ["h1"]


def test_those_that_cannot_move_hide_nobody() -> None:
    hosts = HostColumns.of([filled("a", 8192, 16), filled("b", 0, 0)])
    small = {"vcpus": 1, "disk_gib": 1, "memory_mib": 200}
    free = [movable(f"z{number}", "a", **small) for number in range(10)]
    pinned = [
        movable(
            f"p{number:02d}",
            "a",
            **{**small, "memory_mib": 300},
            hints={"same_host": "x"},
            server_hosts={"x": "a"},
        )
        for number in range(2 * LOOKED_AT)
    ]
    filters = {**FILTERS, "same_host": same_host}
    assert plan(hosts, [*pinned, *free], filters, 10).moves == plan(hosts, free, filters, 10).moves
    assert len(plan(hosts, free, filters, 10).moves) > 3


def test_servers_with_devices_of_their_node_stay() -> None:
    hosts = HostColumns.of([filled("a", 8192, 16, devices={"gpu": 4}), filled("b", 0, 0)])
    for alias in ("gpu:1", "gpu:none"):
        bound = [
            movable(str(number), "a", extra_specs={"pci_passthrough:alias": alias})
            for number in range(4)
        ]
        assert plan(hosts, bound, {}, 10).moves == ()


def test_servers_that_their_node_keeps_stay_and_are_named() -> None:
    why = "its disk is a linked clone on the node's own storage local"
    hosts = HostColumns.of([filled("a", 8192, 16, pinned={"100001": why}), filled("b", 0, 0)])
    kept = movable("1", "a", vm=("sim1", 100_001))
    free = movable("2", "a", vm=("sim1", 100_002))
    found = plan(hosts, [kept, free], FILTERS, 10)
    assert found.considered == 2
    assert moves(found) == [("2", "a", "b")]
    assert [(one.server_uuid, one.host, one.reason) for one in found.pinned] == [
        (kept.request.server_uuid, "a", why)
    ]
    assert kept.request.server_uuid not in [move.server_uuid for move in found.moves]
