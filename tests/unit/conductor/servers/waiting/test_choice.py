"""Who waits for room and is tried again: order, fairness, bounds, hosts kept for the large."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import hypothesis
import hypothesis.strategies as st

from conductor.servers.waiting import choice
from conductor.servers.waiting.choice import MOST, choose, lacks_host, last_served
from conductor.store.servers.waiting import DECIDES_SECONDS, Waiting

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
OVERTAKE = 100


def ago(seconds: float) -> datetime.datetime:
    return NOW - datetime.timedelta(seconds=seconds)


def waiting(number: int, vcpus: int = 1, **more: Any) -> Waiting:
    """One of project p that has waited for a short time, in the order of the numbers."""
    values: dict[str, Any] = {
        "operation_id": number,
        "server_uuid": f"server-{number}",
        "project_id": "p",
        "gang": None,
        "needs": {"VCPU": vcpus},
        "zone": None,
        "since": ago(10 - number / 100),
        "until": NOW + datetime.timedelta(seconds=3600),
        "refused": {},
        "tried_at": ago(1),
    }
    return Waiting(**(values | more))


def room(*free: int) -> dict[str, dict[str, int]]:
    return {f"host-{n}": {"VCPU": amount} for n, amount in enumerate(free)}


def woken(found: list[Waiting], *free: int) -> list[int]:
    return choose(found, room(*free), NOW, OVERTAKE, again=True).woken


def test_as_many_as_fit_are_woken_in_order_of_arrival() -> None:
    assert woken([waiting(n, 2) for n in range(5)], 4, 1) == [0, 1]


def test_later_ones_that_fit_overtake_a_large_one() -> None:
    found = [waiting(0, 8), waiting(1), waiting(2)]
    made = choose(found, room(2), NOW, OVERTAKE, again=True)
    assert made.woken == [1, 2]
    assert made.overtaken == {0: 2}


def test_projects_take_turns() -> None:
    many = [waiting(n, project_id="many") for n in range(4)]
    found = [*many, waiting(9, project_id="few")]
    assert woken(found, 2) == [0, 9]


def test_so_many_are_decided_on_at_a_time() -> None:
    found = [waiting(n) for n in range(40)]
    assert woken(found, 40) == list(range(MOST))
    deciding = [dataclasses.replace(one, woken_at=ago(1)) for one in found[:MOST]]
    assert woken([*deciding, *found[MOST:]], 40) == []


def test_a_decision_that_never_ended_counts_no_more() -> None:
    found = [waiting(0, woken_at=ago(DECIDES_SECONDS + 1))]
    assert woken(found, 1) == [0]


def test_the_room_of_those_that_are_decided_on_is_not_given_twice() -> None:
    found = [waiting(0, 2, woken_at=ago(1)), waiting(1, 2)]
    assert woken(found, 3) == []
    assert woken(found, 3, 2) == [1]


def test_a_host_that_refused_is_asked_again_once_it_has_more_room() -> None:
    found = [waiting(0, 2, refused={"host-0": {"VCPU": 3}})]
    assert woken(found, 3) == []
    assert woken(found, 4) == [0]
    assert woken(found, 3, 2) == [0]


def test_the_oldest_are_tried_now_and_then_all_the_same() -> None:
    found = [waiting(n, 2, tried_at=ago(61)) for n in range(20)]
    assert woken(found) == list(range(MOST))
    assert woken([waiting(0, 2, tried_at=ago(59))]) == []


def test_they_are_tried_again_only_while_nobody_else_is() -> None:
    """Else a later request might get the room of a woken one."""
    found = [waiting(n, 2, tried_at=ago(61)) for n in range(3)]
    assert woken(found, 2) == [0]
    busy = dataclasses.replace(found[0], woken_at=ago(1))
    assert woken([busy, *found[1:]]) == []
    assert choose(found, room(), NOW, OVERTAKE, again=False).woken == []


def test_the_longest_untried_are_tried_first() -> None:
    found = [waiting(n, 2, tried_at=ago(200 - n)) for n in range(40)]
    later = [
        dataclasses.replace(one, tried_at=NOW) if one.operation_id < MOST else one for one in found
    ]
    assert woken(found) == list(range(MOST))
    assert woken(later) == list(range(MOST, 2 * MOST))


def test_room_that_comes_one_place_at_a_time_is_shared_by_the_projects() -> None:
    """However many requests of a project are earlier than another one's first."""
    asleep = [waiting(n, project_id="many") for n in range(20)]
    asleep += [waiting(20 + n, project_id="few") for n in range(3)]
    served: dict[str, datetime.datetime] = {}
    order = []
    for place in range(6):
        [number] = choose(asleep, room(1), NOW, OVERTAKE, again=False, served=served).woken
        one = next(one for one in asleep if one.operation_id == number)
        asleep.remove(one)
        served[one.project_id] = ago(100 - place)
        order.append(one.project_id)
    assert order == ["many", "few"] * 3


def test_who_was_served_last_is_read_from_those_that_have_a_host() -> None:
    placed = [
        waiting(0, project_id="a", woken_at=ago(9)),
        waiting(1, project_id="a", woken_at=ago(5)),
        waiting(2, project_id="b", woken_at=ago(7)),
        waiting(3, project_id="gone", woken_at=ago(3)),
    ]
    deleted = waiting(4, project_id="b", woken_at=ago(1))
    still = [waiting(5, project_id="a"), waiting(6, project_id="b")]
    over = {one.operation_id: one is not deleted for one in (*placed, deleted)}
    assert set(last_served([*placed, deleted, *still], still, over)) == {1, 2}


def test_one_decision_is_made_for_all_builds_of_a_gang() -> None:
    gang = [waiting(n, gang="req") for n in range(30)]
    found = [*gang, *(waiting(30 + n) for n in range(20))]
    made = choose(found, room(100), NOW, OVERTAKE, again=True).woken
    assert made == [*range(30), *range(30, 29 + MOST)]
    late = [dataclasses.replace(one, tried_at=ago(61)) for one in found]
    assert sorted(choose(late, room(), NOW, OVERTAKE, again=True).woken) == made
    deciding = [dataclasses.replace(one, woken_at=ago(1)) for one in gang]
    assert len(choose([*deciding, *found[30:]], room(100), NOW, OVERTAKE, again=True).woken) == 15


def test_room_wakes_nobody_who_could_not_have_it() -> None:
    elsewhere = frozenset({"host-1"})
    found = [waiting(0, able=elsewhere), waiting(1)]
    made = choose(found, room(1), NOW, OVERTAKE, again=False)
    assert (made.woken, made.overtaken) == ([1], {0: 1})
    assert choose(found, room(0, 1), NOW, OVERTAKE, again=False).woken == [0]


def test_one_is_overtaken_by_those_that_never_waited_where_it_could_be() -> None:
    found = [waiting(0, 8), waiting(1, 8, able=frozenset({"host-1"}))]
    taken = {"host-0": 2, "host-1": 1}
    made = choose(found, room(), NOW, OVERTAKE, again=False, taken=taken)
    assert made.overtaken == {0: 3, 1: 1}


def test_only_a_host_that_could_take_it_is_kept() -> None:
    """Not a roomy one of another zone, nor one refused by a filter; a full one if need be."""
    large = waiting(0, 8, overtaken=OVERTAKE, able=frozenset({"host-1", "host-2", "full"}))
    made = choose([large], room(7, 6, 5), NOW, OVERTAKE, again=False)
    assert made.kept == {0: "host-1"}
    refused = dataclasses.replace(large, refused={"host-1": {"VCPU": 8}, "host-2": {"VCPU": 8}})
    assert choose([refused], room(7, 6, 5), NOW, OVERTAKE, again=False).kept == {0: "full"}
    nowhere = dataclasses.replace(large, able=frozenset())
    assert choose([nowhere], room(7, 6, 5), NOW, OVERTAKE, again=False).kept == {}


def test_hosts_are_looked_for_until_each_of_the_first_has_one() -> None:
    first = [waiting(n, kept=f"host-{n}") for n in range(MOST)]
    assert not lacks_host([*first, waiting(MOST)], ())
    assert lacks_host([*first[1:], waiting(MOST)], ())
    assert not lacks_host([], ())


def test_no_host_is_looked_for_where_none_could_be_kept() -> None:
    """A host that refused it is none, nor is a host kept for another: the later one of both may
    lose it."""
    able = frozenset({"host-0", "host-1"})
    one = waiting(1, able=able)
    assert lacks_host([one], {"host-0"})
    assert not lacks_host([one], able)
    assert not lacks_host([dataclasses.replace(one, able=frozenset())], ())
    refused = {"host-0": {"VCPU": 1}}
    assert lacks_host([dataclasses.replace(one, refused=refused)], ())
    assert not lacks_host([dataclasses.replace(one, refused=refused)], {"host-1"})
    other = waiting(0, kept="host-1")
    assert not lacks_host([other, dataclasses.replace(one, refused=refused)], ())
    assert lacks_host([dataclasses.replace(one, refused=refused), other], ())
    nowhere = [waiting(n, able=frozenset()) for n in range(MOST)]
    assert lacks_host([*nowhere, one], ())


def test_an_earlier_one_gets_the_host_that_is_kept_for_a_later_one() -> None:
    """Which has the earlier one's host kept for it instead."""
    first, later = (
        waiting(n, 8, overtaken=OVERTAKE, kept=f"host-{n}", project_id="a") for n in range(2)
    )
    made = choose([first, later], room(0, 8), NOW, OVERTAKE, again=False)
    assert (made.woken, made.kept) == ([0], {0: "host-1", 1: "host-0"})
    made = choose([first, later], room(8, 0), NOW, OVERTAKE, again=False)
    assert (made.woken, made.kept) == ([0], {})
    # A later one gets neither, though it's the turn of its project.
    small = waiting(2, project_id="b")
    served = {"a": ago(1)}
    made = choose([first, later, small], room(1, 1), NOW, OVERTAKE, again=False, served=served)
    assert (made.woken, made.kept) == ([], {})


def test_a_kept_host_that_is_full_is_kept_on() -> None:
    large = waiting(0, 8, overtaken=OVERTAKE, able=frozenset({"host-0", "full"}), kept="full")
    assert choose([large], room(7), NOW, OVERTAKE, again=False).kept == {}


def test_the_host_of_one_that_is_decided_on_is_kept_on() -> None:
    deciding = waiting(0, 8, overtaken=OVERTAKE, kept="host-0", woken_at=ago(1))
    other = waiting(1, 6, overtaken=OVERTAKE)
    made = choose([deciding, other, waiting(2)], room(9, 4), NOW, OVERTAKE, again=False)
    assert made.kept == {1: "host-1"}
    assert made.woken == []


def test_a_gang_is_woken_as_a_whole_or_not_at_all() -> None:
    gang = [waiting(n, 2, gang="req") for n in range(3)]
    assert woken([*gang, waiting(3)], 4, 1) == [3]
    assert woken([*gang, waiting(3)], 4, 2, 1) == [0, 1, 2, 3]


def test_a_gang_is_tried_now_and_then_as_a_whole() -> None:
    gang = [waiting(n, 2, gang="req", tried_at=ago(61)) for n in range(3)]
    assert woken(gang) == [0, 1, 2]
    fresh = dataclasses.replace(gang[2], tried_at=ago(1))
    assert woken([*gang[:2], fresh]) == []


def test_a_host_is_kept_for_one_that_was_overtaken_too_often() -> None:
    large = waiting(0, 8, overtaken=OVERTAKE)
    made = choose([large, waiting(1), waiting(2)], room(6, 1), NOW, OVERTAKE, again=True)
    assert made.kept == {0: "host-0"}
    assert made.woken == [1]
    later = dataclasses.replace(large, kept="host-0")
    assert choose([later, waiting(2)], room(8, 0), NOW, OVERTAKE, again=True).woken == [0]


def test_a_host_is_kept_after_a_quarter_of_the_time() -> None:
    large = waiting(0, 8, since=ago(1000), until=NOW + datetime.timedelta(seconds=2000))
    assert choose([large], room(6), NOW, OVERTAKE, again=True).kept == {0: "host-0"}
    patient = dataclasses.replace(large, until=NOW + datetime.timedelta(seconds=9000))
    assert choose([patient], room(6), NOW, OVERTAKE, again=True).kept == {}


def test_the_host_that_is_kept_remains_the_same_while_it_is_there() -> None:
    large = waiting(0, 8, overtaken=OVERTAKE, kept="host-1")
    assert choose([large], room(7, 1), NOW, OVERTAKE, again=True).kept == {}
    assert choose([large], {"host-0": {"VCPU": 7}}, NOW, OVERTAKE, again=True).kept == {
        0: "host-0"
    }


BUILDS = st.lists(
    st.tuples(
        st.integers(1, 8),
        st.sampled_from("abc"),
        st.booleans(),
        st.integers(0, 120),
        st.sampled_from([None, "x", "y"]),
    ),
    max_size=30,
)


@hypothesis.given(BUILDS, st.lists(st.integers(0, 16), max_size=5))
def test_never_more_than_fits_nor_more_than_are_allowed(
    builds: list[tuple[int, str, bool, int, str | None]], free: list[int]
) -> None:
    found = [
        waiting(
            number,
            vcpus,
            project_id=project,
            woken_at=ago(1) if deciding else None,
            overtaken=overtaken,
            gang=gang and f"{gang}-{project}",
        )
        for number, (vcpus, project, deciding, overtaken, gang) in enumerate(builds)
    ]
    made = choose(found, room(*free), NOW, OVERTAKE, again=True)
    by_id = {one.operation_id: one for one in found}
    assert sum(by_id[one].needs["VCPU"] for one in made.woken) <= sum(free)
    assert len(set(made.woken)) == len(made.woken)
    deciding = {one.together for one in found if one.is_deciding(NOW)}
    decisions = {by_id[one].together for one in made.woken}
    assert not made.woken or len(decisions) <= MOST - len(deciding)
    assert not [one for one in made.woken if by_id[one].is_deciding(NOW)]
    gangs = {by_id[one].gang for one in made.woken} - {None}
    for gang in gangs:
        asleep = [o.operation_id for o in found if o.gang == gang and not o.is_deciding(NOW)]
        assert set(asleep) <= set(made.woken)
    kept = [host for host in made.kept.values() if host is not None]
    assert len(set(kept)) == len(kept)
    assert len(kept) <= choice.MOST
