"""Aggregates and server groups, as the scheduler uses them."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import pytest

from common.context import RequestContext
from common.errors import Unavailable
from common.messages.facts import Heartbeat
from common.resources.aggregates import AggregateFacts, AllAggregates
from common.resources.server_groups import GroupFacts
from scheduler.decide.choose import choose
from scheduler.decide.whatif import place
from scheduler.filters.aggregates import (
    aggregate_image_properties_isolation,
    aggregate_instance_extra_specs,
    aggregate_multitenancy_isolation,
)
from scheduler.filters.placement import availability_zone
from scheduler.filters.server_groups import server_group_affinity, server_group_anti_affinity
from scheduler.hosts.host import Host
from scheduler.hosts.memberships import Memberships, by_host
from scheduler.hosts.reported import HostTable
from scheduler.manager import HostFactsManager, SchedulerManager
from scheduler.weighers.capacity import cpu, ram
from scheduler.weighers.server_groups import soft_affinity, soft_anti_affinity
from tests.unit.scheduler.decide.test_choose import NOW, a_host, a_request

SCOPE = "aggregate_instance_extra_specs:"


def in_aggregates(*metadata: dict[str, str], host: Host | None = None) -> Host:
    found = tuple(
        AggregateFacts(f"uuid-{n}", f"a{n}", one, ("pve1",)) for n, one in enumerate(metadata)
    )
    return dataclasses.replace(host or a_host(), memberships=Memberships(found))


def a_group(policy: str, max_per_host: int = 1, **members: int) -> GroupFacts:
    return GroupFacts("g", policy, max_per_host, members)


def test_the_zone_is_an_aggregate_s_before_the_host_s_own() -> None:
    assert a_host().zone == "nova"
    host = in_aggregates({"ssd": "true"}, {"availability_zone": "az2"})
    assert host.zone == "az2"
    assert availability_zone(host, a_request(availability_zone="az2")) is None
    reason = availability_zone(host, a_request(availability_zone="nova"))
    assert reason == "in zone az2, nova asked"


@pytest.mark.parametrize(
    ("value", "wanted", "fits"),
    [
        ("true", "true", True),
        ("false", "true", False),
        ("a,b", "b", True),
        ("8", ">= 4", True),
        ("2", ">= 4", False),
        ("4", "= 4", True),
        ("4", "== 4.0", True),
        ("4", "!= 4", False),
        ("4", "<= 3", False),
        ("x", ">= 4", False),
        ("4", ">=", False),
        ("b", "s> a", True),
        ("b", "s== b", True),
        ("b", "s!= b", False),
        ("12345", "<in> 34", True),
        ("ab", "<all-in> a b", True),
        ("ab", "<all-in> a c", False),
        ("b", "<or> a <or> b", True),
        ("c", "<or> a <or> b", False),
        ("", "", True),
    ],
)
def test_extra_specs_ask_of_aggregates(value: str, wanted: str, fits: bool) -> None:
    request = a_request(extra_specs={f"{SCOPE}class": wanted})
    reason = aggregate_instance_extra_specs(in_aggregates({"class": value}), request)
    assert (reason is None) == fits, reason


def test_extra_specs_of_others_ask_nothing() -> None:
    request = a_request(extra_specs={"hw:cpu_policy": "shared", "class": "x"})
    assert aggregate_instance_extra_specs(a_host(), request) is None
    request = a_request(extra_specs={f"{SCOPE}ssd": "true"})
    assert aggregate_instance_extra_specs(a_host(), request) == (
        "its aggregates say nothing of ssd, the flavor asks true"
    )
    host = in_aggregates({"ssd": "false"}, {"ssd": "no"})
    assert aggregate_instance_extra_specs(host, request) == (
        "its aggregates say false, no of ssd, the flavor asks true"
    )
    assert (
        aggregate_instance_extra_specs(in_aggregates({"ssd": "false"}, {"ssd": "true"}), request)
        is None
    )


def test_hosts_that_are_kept_for_images() -> None:
    host = in_aggregates({"os_distro": "windows, debian", "own": "x", "availability_zone": "a"})
    accept = aggregate_image_properties_isolation
    for properties in ({}, {"os_distro": "debian"}, {"own": "y", "availability_zone": "b"}):
        assert accept(host, a_request(image_properties=properties)) is None
        assert accept(a_host(), a_request(image_properties=properties)) is None
    refused = accept(host, a_request(image_properties={"os_distro": "fedora"}))
    assert refused == (
        "its aggregates take images with os_distro debian, windows, this one has fedora"
    )


def test_hosts_that_are_kept_for_projects() -> None:
    accept = aggregate_multitenancy_isolation
    kept = in_aggregates({"filter_tenant_id": "q"}, {"filter_tenant_id2": "r,s"})
    assert accept(kept, a_request()) == "kept for other projects by an aggregate"
    for project in "qrs":
        assert accept(kept, a_request(project_id=project)) is None
    for free in (a_host(), in_aggregates({"ssd": "true"})):
        assert accept(free, a_request()) is None


def test_anti_affinity() -> None:
    accept = server_group_anti_affinity
    assert accept(a_host(), a_request()) is None
    assert accept(a_host(), a_request(group=a_group("anti-affinity"))) is None
    assert accept(a_host(), a_request(group=a_group("affinity", pve1=1))) is None
    full = a_request(group=a_group("anti-affinity", pve1=1))
    assert accept(a_host(), full) == ("1 server of its anti-affinity group is here, 1 allowed")
    assert accept(a_host("pve2"), full) is None
    assert accept(a_host(), a_request(group=a_group("anti-affinity", 2, pve1=1))) is None


def test_affinity() -> None:
    accept = server_group_affinity
    assert accept(a_host(), a_request()) is None
    assert accept(a_host(), a_request(group=a_group("affinity"))) is None
    there = a_request(group=a_group("affinity", pve1=1))
    assert accept(a_host(), there) is None
    assert accept(a_host("pve2"), there) == (
        "the servers of its affinity group are on another host"
    )


def best(policy: str) -> str:
    """Of two hosts, pve1 with a server of the group and less room."""
    hosts = [a_host("pve1", free_mib=3000), a_host("pve2", free_mib=8000)]
    weighers: dict[str, Any] = {
        "ram": (ram, 1.0),
        "cpu": (cpu, 1.0),
        "soft_affinity": (soft_affinity, 5.0),
        "soft_anti_affinity": (soft_anti_affinity, 5.0),
    }
    request = a_request(group=a_group(policy, pve1=1) if policy else None)
    return choose(hosts, request, {}, weighers).ranked[0].host.name


def test_soft_policies_weigh_more_than_room() -> None:
    assert best("") == best("affinity") == "pve2"
    assert best("soft-affinity") == "pve1"
    assert best("soft-anti-affinity") == "pve2"


def test_what_is_reported_of_aggregates_may_come_in_any_order() -> None:
    table = HostTable()
    table.update(Heartbeat("w", NOW, ("pve1",), (a_host().facts,)))
    manager = HostFactsManager(table)

    def zone_after(version: int, zone: str) -> str:
        one = AggregateFacts("u", "a", {"availability_zone": zone}, ("pve1",))
        manager.update_aggregates(RequestContext(), AllAggregates(version, (one,)))
        return next(iter(table.all(NOW))).zone

    assert not table.knows_aggregates
    assert zone_after(3, "az3") == "az3"
    assert zone_after(2, "az2") == "az3"
    assert zone_after(4, "az4") == "az4"
    manager.update_aggregates(RequestContext(), AllAggregates(5, ()))
    assert next(iter(table.all(NOW + datetime.timedelta(seconds=1)))).zone == "nova"


def test_who_knows_no_aggregates_decides_nothing() -> None:
    asked: list[RequestContext] = []
    manager = SchedulerManager(None, None, HostTable(), asked.append)  # type: ignore[arg-type]
    with pytest.raises(Unavailable):
        manager.select(RequestContext(), a_request(), ())
    assert len(asked) == 1


def test_what_if_counts_the_servers_before() -> None:
    hosts = [a_host("pve1"), a_host("pve2")]
    filters = {"a": server_group_affinity, "b": server_group_anti_affinity}
    for policy, found in (("anti-affinity", 2), ("affinity", 3)):
        requests = [a_request(server_uuid=str(n), group=a_group(policy)) for n in range(3)]
        choices = [one.choice for one in place(hosts, requests, filters, {})]
        assert [bool(choice.ranked) for choice in choices] == [n < found for n in range(3)]
    names = {choice.ranked[0].host.name for choice in choices}
    assert len(names) == 1


def test_a_group_without_a_host() -> None:
    group = a_group("affinity", pve1=2, pve2=1)
    assert group.without("pve1").members == {"pve2": 1}
    assert group.with_members({"pve2": 1, "pve3": 1}).members == {"pve1": 2, "pve2": 2, "pve3": 1}


def test_hosts_of_the_same_aggregates_share_what_is_worked_out() -> None:
    one = AggregateFacts("u1", "a", {}, ("pve1", "pve2", "pve3"))
    two = AggregateFacts("u2", "b", {}, ("pve3",))
    found = by_host((one, two))
    assert found["pve1"] is found["pve2"]
    assert found["pve3"].aggregates == (one, two)
