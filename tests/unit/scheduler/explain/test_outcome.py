"""What is kept of a decision: bounded, whatever was refused; the counts are exact."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from common import config
from common.messages.scheduling import Decision
from scheduler import config as scheduler_config
from scheduler.decide.choose import Filter, choose
from scheduler.explain.outcome import BRIEF_BYTES, Outcomes
from scheduler.hosts.columns import HostColumns
from scheduler.service import load_filters, load_weighers
from tests.unit.scheduler.decide.test_choose import a_host, a_request
from tests.unit.scheduler.test_select import HOSTS, FakePlacement, a_decider
from tests.unit.scheduler.weighers.test_balance import filled

CONF = config.load([scheduler_config.register])
FILTERS = load_filters(CONF)
OUTCOMES = Outcomes(CONF, FILTERS)


def size(value: Any) -> int:
    """As it is stored."""
    return len(orjson.dumps(value))


def hosts_kept(decision: Decision) -> int:
    return sum(len(one.hosts) for groups in decision.refused.values() for one in groups)


def cluster(count: int, **changes: Any) -> HostColumns:
    return HostColumns.of(
        filled(f"pve-prod-fra1/pve-node-{n:05d}", 8000 - n, 15, **changes) for n in range(count)
    )


@pytest.mark.parametrize("hosts", [cluster(1500), cluster(1500, bridges=("x" * 9000,))])
def test_a_decision_takes_no_more_than_50_kib(hosts: HostColumns) -> None:
    specs = {"aggregate_instance_extra_specs:x": "y" * 3000}
    for extra_specs in ({}, specs):
        request = a_request(
            vcpus=30, memory_mib=200_000, disk_gib=900, extra_specs=extra_specs, networks=("n",)
        )
        choice = choose(hosts, request, FILTERS, {}, keep=0)
        decision = OUTCOMES.nowhere(request, choice, hosts)
        assert size(decision) < 50 * 1024
        assert sum(decision.counts.values()) == 1500
        assert hosts_kept(decision) > 20
        # Of the rest of the room, what one filter doesn't need is left to the others.
        assert size(decision.refused) > 15_000


def test_hosts_of_one_reason_take_little() -> None:
    hosts = cluster(1200, healthy=False, health="offline")
    request = a_request()
    decision = OUTCOMES.nowhere(request, choose(hosts, request, FILTERS, {}, keep=0), hosts)
    (reason,) = decision.refused["node_healthy"]
    assert reason.text == ("offline",)
    assert len(reason.hosts) == CONF.scheduler.reasons_kept


def test_of_the_servers_of_one_create_the_first_has_the_reasons() -> None:
    hosts = HostColumns.of([*cluster(1000), a_host("roomy", free_mib=8000)])
    request = a_request(memory_mib=7500)
    choice = choose(hosts, request, FILTERS, load_weighers(CONF), keep=1)
    full = OUTCOMES.won(request, choice, 0, 1001)
    brief = OUTCOMES.won(request, choice, 0, 1001, brief=True)
    assert (full.host, full.counts) == (brief.host, brief.counts)
    assert size(full.refused) > 10 * BRIEF_BYTES
    assert 0 < size(brief.refused) <= BRIEF_BYTES + 50
    again = OUTCOMES.again(a_request(server_uuid="2"), full)
    assert (again.server_uuid, again.counts) == ("2", full.counts)
    assert 0 < size(again.refused) <= BRIEF_BYTES + 50


def decided(**asked: Any) -> list[Decision]:
    def refuse(host: Any, request: Any) -> str | None:
        found = "x" * 700 + host.name
        return None if asked.get("works") and host.name == HOSTS[0] else found

    filters: dict[str, Filter] = {"one": refuse, "other": refuse}
    decider = a_decider(FakePlacement(), filters)
    by_itself = asked.get("by_itself", False)
    return decider.decide_many(
        [a_request(server_uuid=str(n), by_itself=by_itself) for n in range(3)]
    )


@pytest.mark.parametrize(("works", "full"), [(True, 1), (False, 2)])
def test_a_create_of_many_keeps_the_reasons_once(works: bool, full: int) -> None:
    found = decided(works=works)
    assert [hosts_kept(one) for one in found] == [full, 1, 1]
    assert [sum(one.counts.values()) for one in found] == [full] * 3


@pytest.mark.parametrize(("works", "full"), [(True, 1), (False, 2)])
def test_of_those_that_were_asked_for_by_themselves_each_has_every_reason(
    works: bool, full: int
) -> None:
    found = decided(works=works, by_itself=True)
    assert [one.server_uuid for one in found] == ["0", "1", "2"]
    assert [hosts_kept(one) for one in found] == [full] * 3


def test_a_reason_that_is_too_long_does_not_hide_the_others() -> None:
    def refuse(host: Any, request: Any) -> str | None:
        return "x" * 2000 if host.name == "a" else "short"

    filters: dict[str, Filter] = {"one": refuse}
    hosts = HostColumns.of([a_host(name) for name in "abc"])
    choice = choose(hosts, a_request(), filters, {}, keep=0)
    full = OUTCOMES.nowhere(a_request(), choice, hosts)
    assert hosts_kept(full) == 3
    (short,) = OUTCOMES.again(a_request(), full).refused["one"]
    assert (short.text, short.hosts) == (("short",), ("b", "c"))
