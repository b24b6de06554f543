"""More hosts than candidates: what is asked is narrowed, and nothing is overlooked."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pytest

from common import clock, config
from common.messages.facts import Heartbeat
from common.messages.scheduling import RequestSpec
from common.resources.aggregates import AggregateFacts, AllAggregates
from common.resources.server_groups import GroupFacts
from placement.client import PlacementClient
from placement.messages import Candidates, First, NewClaim, Usage
from scheduler import config as scheduler_config
from scheduler.dry_run import DryRun
from scheduler.filters.resources import resources
from scheduler.hosts.host import Host
from scheduler.hosts.reported import HostTable
from scheduler.select import Decider
from scheduler.service import load_filters, load_weighers
from scheduler.view import View
from tests.unit.scheduler.decide.test_choose import a_host, a_request

NAMES = [f"h{number:02d}" for number in range(30)]
LIMIT = 10
ZONE = AggregateFacts("agg", "agg", {"availability_zone": "B"}, ("h28", "h29"))
FIRST = tuple(NAMES[:20])


class Placement(PlacementClient):
    """Offers hosts oldest first, so many as it is asked for."""

    def __init__(self, aggregates: Mapping[str, Collection[str]]) -> None:
        self.aggregates = aggregates
        self.asked: list[dict[str, Any]] = []
        self.claims: list[str] = []

    def candidates(
        self,
        resources: Mapping[str, int],
        required: Collection[str] = (),
        forbidden: Collection[str] = (),
        member_of: Iterable[str | Collection[str]] = (),
        in_tree: str | None = None,
        limit: int | None = None,
    ) -> Candidates:
        self.asked.append({"member_of": member_of, "in_tree": in_tree, "limit": limit})
        there = [
            f"uuid-{name}"
            for name in NAMES
            if in_tree in (None, f"uuid-{name}")
            and all(any(name in self.aggregates.get(a, ()) for a in one) for one in member_of)
        ][:limit]
        room = Usage([64] * len(there), [0] * len(there))
        return Candidates(there, dict.fromkeys(resources, room), [frozenset()] * len(there))

    def claim_first(self, consumer_uuid: str, provider_uuids: Sequence[str], *_: Any) -> First:
        self.claims.append(provider_uuids[0])
        return First(provider_uuids[0])

    def claim_many(self, claims: Sequence[NewClaim]) -> bool:
        self.claims += [one.provider_uuid for one in claims]
        return True


class Site:
    """A scheduler that asks for fewer candidates than there are hosts."""

    def __init__(
        self,
        *aggregates: AggregateFacts,
        mirrored: bool = True,
        silent: Collection[str] = (),
        sick: Collection[str] = (),
    ) -> None:
        hosts = {one.uuid: one.hosts for one in aggregates} if mirrored else {}
        self.placement = Placement(hosts)
        table, now = HostTable(), clock.utcnow()
        facts = tuple(self.host(name, healthy=name not in sick).facts for name in NAMES)
        beating = tuple(name for name in NAMES if name not in silent)
        table.update(Heartbeat("w", now, beating, facts))
        table.update_aggregates(AllAggregates(1, aggregates))
        conf = config.load([scheduler_config.register])
        view = View(self.placement, table, LIMIT)
        how = (load_filters(conf), load_weighers(conf))
        self.decider = Decider(conf, self.placement, view, *how)
        self.dry_run = DryRun(conf, view, *how)

    @staticmethod
    def host(name: str, **changes: Any) -> Host:
        return a_host(name, vcpus=64, memory_mib=64, **changes)


def asked(**changes: Any) -> RequestSpec:
    return a_request(**{"vcpus": 1, "memory_mib": 1, "disk_gib": 1, **changes})


OTHERS = AggregateFacts("o", "o", {"filter_tenant_id": "other"}, FIRST)
REQUESTS: dict[str, tuple[tuple[AggregateFacts, ...], dict[str, Any], set[str]]] = {
    "forced": ((), {"force_host": "h29"}, {"h29"}),
    "zone": ((ZONE,), {"availability_zone": "B"}, {"h28", "h29"}),
    "kept for others": ((OTHERS,), {}, set(NAMES[20:])),
    "same_host": ((), {"hints": {"same_host": "X"}, "server_hosts": {"X": "h29"}}, {"h29"}),
    "affinity": ((), {"group": GroupFacts("g", "affinity", 1, {"h29": 1})}, {"h29"}),
    "one of two": (
        (),
        {
            "hints": {"same_host": ["X", "Y"]},
            "server_hosts": {"X": "h28", "Y": "h29"},
        },
        {"h28", "h29"},
    ),
}


@pytest.mark.parametrize("mirrored", [True, False])
@pytest.mark.parametrize("kind", REQUESTS)
def test_what_is_not_among_the_first_is_found(kind: str, mirrored: bool) -> None:
    aggregates, changes, right = REQUESTS[kind]
    site = Site(*aggregates, mirrored=mirrored)
    assert site.decider.decide(asked(**changes), ()).host in right
    many = [asked(server_uuid=f"s{number}", **changes) for number in range(3)]
    assert {one.host for one in site.decider.decide_many(many)} <= right
    assert len(site.placement.claims) == 4


@pytest.mark.parametrize("kind", ["forced", "zone", "same_host", "affinity"])
def test_what_placement_understands_is_asked_of_it(kind: str) -> None:
    aggregates, changes, right = REQUESTS[kind]
    site = Site(*aggregates)
    decision = site.decider.decide(asked(**changes), ())
    assert decision.considered == len(right)
    assert len(site.placement.asked) == 1


def test_a_zone_that_hosts_report_themselves_is_not_narrowed() -> None:
    own = AggregateFacts("a", "a", {"availability_zone": "nova"}, ("h29",))
    site = Site(own)
    assert site.decider.decide(asked(availability_zone="nova"), ()).host in NAMES[:LIMIT]
    assert site.placement.asked[0]["member_of"] == ()


def test_hosts_out_of_service_take_no_candidates_places() -> None:
    site = Site(silent=FIRST[:10], sick=FIRST[10:])
    decision = site.decider.decide(asked(), ())
    assert decision.host in NAMES[20:]
    assert [one["limit"] for one in site.placement.asked] == [LIMIT + 20]


def test_what_no_host_has_is_asked_for_once_as_ever() -> None:
    site = Site()
    decision = site.decider.decide(asked(networks=("vmbr9",)), ())
    assert decision.counts == {"network_reach": len(NAMES)}
    assert [one["limit"] for one in site.placement.asked] == [LIMIT, None, None, None]


@pytest.mark.parametrize("kind", [None, *REQUESTS])
def test_a_dry_run_says_what_would_be(kind: str | None) -> None:
    aggregates, changes, _ = REQUESTS[kind] if kind else ((), {}, set())
    many = [asked(server_uuid=f"s{number}", **changes) for number in range(3)]
    real = Site(*aggregates).decider.decide_many(many)
    tried = Site(*aggregates).dry_run.place(many, ())
    assert [one.host for one in tried] == [one.host for one in real]
    alone = Site(*aggregates).decider.decide(many[0], ())
    assert (alone.host, alone.host) == (tried[0].host, real[0].host)


def test_servers_of_several_kinds_are_tried_among_all_hosts() -> None:
    site = Site()
    forced = dataclasses.replace(asked(server_uuid="t"), force_host="h29")
    assert [one.host is None for one in site.dry_run.place([asked(), forced], ())] == [
        False,
        False,
    ]
    assert {one["limit"] for one in site.placement.asked} == {None}


def test_full_hosts_are_reported_with_what_they_have_in_all() -> None:
    class Full(PlacementClient):
        def __init__(self) -> None: ...

        def candidates(self, *_: Any, **__: Any) -> Candidates:
            return Candidates((), {}, ())

    site = Site()
    table, now = HostTable(), clock.utcnow()
    facts = site.host(
        "h00", reserved_memory_mib=14, ram_allocation_ratio=1.5, devices={"gpu": 2}
    ).facts
    table.update(Heartbeat("w", now, ("h00",), (facts,)))
    view = View(Full(), table, LIMIT)
    [host] = view.everything(["VCPU", "MEMORY_MB", "CUSTOM_PCI_GPU", "CUSTOM_ELSE"])
    request = asked(extra_specs={"pci_passthrough:alias": "gpu:1", "resources:CUSTOM_ELSE": "1"})
    assert resources(host, dataclasses.replace(request, disk_gib=0)) == (
        "0 of 64 VCPU free, 1 asked; 0 of 75 MiB RAM free, 1 asked; "
        "0 of 2 CUSTOM_PCI_GPU free, 1 asked; 0 of 0 CUSTOM_ELSE free, 1 asked"
    )
