"""Members are spread over zones again when one of these is back: one at a time."""

from __future__ import annotations

import dataclasses
from typing import Any

from common.resources.groups import Deletion, Health, MemberState, Options
from conductor.servers.groups import decide, spread
from conductor.servers.groups.seen import Facts, Round
from db.reads.groups.groups import Member
from tests.unit.conductor.servers.groups.test_decide import GROUP, NOW, after, leaving, member

BOTH = Options(zones=("a", "b"))


def there(*zones: str) -> list[Member]:
    return [member(number, pinned_zone=zone) for number, zone in enumerate(zones, 1)]


def look(*members: Member, usable: tuple[str, ...] = ("a", "b"), **more: Any) -> Round:
    given = {"options": BOTH, "usable": frozenset(usable), **more}
    return after(*members, **given)


def test_zones_that_differ_by_two_are_evened_out() -> None:
    assert look(*there("a", "a", "a")).added == 1
    assert look(*there("a", "a", "b")).added == 0
    assert look(*there("a", "a", "a", "b"), group={"desired": 4}).added == 1


def test_one_more_is_created_before_one_leaves() -> None:
    new = member(4, None)
    made = look(*there("a", "a", "a"), new)
    assert (made.creates, leaving(made), made.removed) == (["m4"], [], [])
    building = member(4, "building", pinned_zone="b")
    made = look(*there("a", "a", "a"), building)
    assert (made.added, leaving(made), made.over) == (0, [], False)
    made = look(*there("a", "a", "a", "b"), group={"desired": 3})
    assert leaving(made) == ["m1"]
    assert made.changed["m1"]["reason"] == "Its zone has more servers than others."
    # The next one begins once that one is gone.
    gone = member(9, state=MemberState.LEAVING, pinned_zone="a", task_state="deleting")
    made = look(*there("a", "a", "a", "b"), gone, group={"desired": 4})
    assert made.added == 0


def test_it_begins_nothing_while_anything_else_is_under_way() -> None:
    zones = there("a", "a")
    for other in (
        member(3, "building"),
        member(3, "error"),
        member(3, "stopped"),
        member(3, None),
    ):
        assert look(*zones, other).added == 0
    rolling = {"profile_id": "b", "rolling": True, "paused": True}
    assert look(*there("a", "a", "a"), group=rolling).added == 0
    # A zone that does not work has too few for a reason.
    assert look(*there("a", "a", "a"), usable=("a",)).added == 0
    assert look(*there("a", "a", "a"), options=Options()).added == 0
    in_place = Options(zones=("a", "b"), max_surge=0, max_unavailable=1)
    assert look(*there("a", "a", "a"), options=in_place).added == 0


def test_a_creation_that_failed_ends_it() -> None:
    failed = member(4, "error", launched_at=None, reason="No room.")
    made = look(*there("a", "a", "a"), failed)
    assert made.group["failures"] == 1
    left = member(4, None)
    made = look(*there("a", "a", "a"), left, group={"failures": 1})
    assert (made.removed, made.creates, made.over) == (["m4"], [], True)
    made = look(*there("a", "a", "a"), left, group={"refusals": 1})
    assert made.removed == ["m4"]
    assert look(*there("a", "a", "a"), group={"failures": 1}).added == 0


def test_it_ends() -> None:
    """However they were spread, each step brings them nearer, and there are never two more."""
    members = there(*"aaaaaaa")
    names = iter(range(100, 200))
    for _ in range(40):
        made = look(*members, group={"desired": 7, "next_index": 200})
        if not made.added and not leaving(made):
            break
        assert made.added <= 1
        gone = leaving(made)
        members = [one for one in members if one.id not in gone]
        for _ in range(made.added):
            zone = spread.fewest(("a", "b"), ("a", "b"), members, spread.by_zone)
            members.append(member(next(names), pinned_zone=zone))
        assert len(members) <= 8
    counted = spread.counts(("a", "b"), members, spread.by_zone)
    assert sorted(counted.values()) == [3, 4]
    assert len(members) == 7


def test_the_surge_counts_where_a_server_is_created() -> None:
    members = [*there("a", "a", "a"), member(4, None)]
    facts = Facts(GROUP, members, BOTH, Deletion(), Health(), NOW, usable=frozenset({"a", "b"}))
    assert decide.may_create(facts)
    assert not decide.may_create(dataclasses.replace(facts, usable=frozenset({"a"})))


CLUSTERS = Options(clusters=("x", "y"))
WORKS = frozenset({("nova", "x"), ("nova", "y")})


def spread_over(*clusters: str, **values: Any) -> list[Member]:
    return [member(number, cluster=one, **values) for number, one in enumerate(clusters, 1)]


def look_over(*members: Member, **more: Any) -> Round:
    given = {"options": CLUSTERS, "clusters": WORKS, **more}
    return after(*members, **given)


def test_clusters_that_differ_by_two_are_evened_out() -> None:
    assert look_over(*spread_over("x", "x", "x")).added == 1
    assert look_over(*spread_over("x", "x", "y")).added == 0
    group = {"desired": 3, "config": {"micronova.clusters": "x,y"}}
    made = look_over(*spread_over("x", "y", "x", "x"), group=group)
    assert leaving(made) == ["m1"]
    assert made.changed["m1"]["reason"] == "Its cluster has more servers than others."


def test_a_cluster_that_does_not_work_has_too_few_for_a_reason() -> None:
    some = frozenset({("nova", "x")})
    assert look_over(*spread_over("x", "x", "x"), clusters=some).added == 0
    # Its hosts are in another zone than the members have to be in.
    other = frozenset({("nova", "x"), ("b", "y")})
    pinned = spread_over("x", "x", "x", pinned_zone="nova")
    assert look_over(*pinned, clusters=other).added == 0
    assert look_over(*spread_over("x", "x", "x"), clusters=other).added == 1


def test_zones_are_evened_out_before_clusters() -> None:
    both = Options(zones=("a", "b"), clusters=("x", "y"))
    works = frozenset({("a", "x"), ("b", "x"), ("b", "y")})
    given = {"options": both, "usable": frozenset({"a", "b"}), "clusters": works}
    uneven = [
        member(number, pinned_zone=zone, cluster="x") for number, zone in enumerate("abab", 1)
    ]
    assert look_over(*uneven, group={"desired": 4}, **given).added == 0


def test_clusters_in_zones() -> None:
    works = {("a", "x"), ("b", "x"), ("b", "y")}
    assert spread.clusters_in(works, {"a"}) == {"x"}
    assert spread.clusters_in(works, {"b"}) == {"x", "y"}
    assert spread.clusters_in(works, {"a", "b"}) == {"x"}
    assert spread.clusters_in(works, {None}) == {"x", "y"}
