"""Reasons by group: each sentence once, its numbers as columns, and nothing left out by that."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import codec
from common.messages.scheduling import Refused, RequestSpec
from scheduler.columnar.reasons import Group, joined, split
from scheduler.decide.choose import Filter, choose
from scheduler.explain.outcome import Outcomes
from scheduler.filters.placement import availability_zone
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host import Host
from tests.unit.scheduler.decide.test_choose import a_host, a_request
from tests.unit.scheduler.explain.test_outcome import CONF

FLEET = HostColumns.of([a_host(name) for name in "abcd"])
ALL = np.arange(4)


def test_numbers_that_are_the_same_of_all_are_kept_once() -> None:
    free, capacity = np.array([1, 2, 3, 4]), np.array([9, 9, 9, 9])
    group = Group(ALL, lambda: ("", " of ", " MiB free"), (free, capacity))
    kept = group.refused(FLEET)
    assert kept == Refused(("", " of 9 MiB free"), ("a", "b", "c", "d"), ((1, 2, 3, 4),))
    assert dict(kept.reasons())["c"] == "3 of 9 MiB free"
    assert group.refused(FLEET, 1) == Refused(("1 of 9 MiB free",), ("a",))


def test_what_is_written_in_a_reason_is_only_text() -> None:
    """Names that operators and users give things are in it."""
    text = ("{} of {0.__class__} %s is ", ' "}{')
    kept = Group(ALL[:2], lambda: text, (np.array([5, 6]),)).refused(FLEET)
    stored = codec.load(Refused, json.loads(codec.dumps(kept)))
    assert dict(stored.reasons()) == {
        "a": '{} of {0.__class__} %s is 5 "}{',
        "b": '{} of {0.__class__} %s is 6 "}{',
    }


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 2)), max_size=9))
def test_hosts_that_are_alike_are_found(pairs: list[tuple[int, int]]) -> None:
    columns = [np.array(column, np.int64) for column in zip(*pairs, strict=True)]
    found = [rows.tolist() for rows in split(joined(columns, len(pairs)))]
    assert sorted(row for rows in found for row in rows) == list(range(len(pairs)))
    assert sorted({pairs[row] for row in rows} for rows in found) == [
        {pair} for pair in sorted(set(pairs))
    ]
    assert len(list(split(joined(columns, len(pairs)), 1))) == min(len(pairs), 1)


def asked_one_by_one(host: Host, request: RequestSpec) -> str | None:
    """As an operator writes it: a plain function, with numbers in its text."""
    if host.name == "b":
        return None
    return "of Monday" if host.name in "cd" else f"{host.free('MEMORY_MB')} is not enough"


def test_a_plain_function_is_kept_by_its_text() -> None:
    filters: dict[str, Filter] = {"mine": asked_one_by_one}
    choice = choose(FLEET, a_request(), filters, {})
    decision = Outcomes(CONF, filters).won(a_request(), choice, 0, 4)
    assert decision.host == "b"
    number = FLEET.host(0).free("MEMORY_MB")
    assert set(decision.refused["mine"]) == {
        Refused(("of Monday",), ("c", "d")),
        Refused((f"{number} is not enough",), ("a",)),
    }


@pytest.mark.parametrize("few", [1, 30])
def test_what_few_hosts_are_refused_for_is_not_lost_among_thousands(few: int) -> None:
    hosts = [a_host(f"p{n:05}", availability_zone="far") for n in range(3000)]
    hosts[2000 : 2000 + few] = [
        a_host(f"q{n:05}", availability_zone=f"near{n}") for n in range(few)
    ]
    filters: dict[str, Filter] = {"availability_zone": availability_zone}
    request = a_request(availability_zone="mine")
    choice = choose(hosts, request, filters, {}, keep=0)
    decision = Outcomes(CONF, filters).nowhere(request, choice, HostColumns.of(hosts))
    kept = dict(pair for one in decision.refused["availability_zone"] for pair in one.reasons())
    assert len(kept) == CONF.scheduler.reasons_kept
    assert {f"in zone near{n}, mine asked" for n in range(few)} < set(kept.values())
