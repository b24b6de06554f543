"""Claims around a decision: late ones, and those that are in the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from common import clock, config
from common.errors import GenerationConflict, Unavailable
from common.messages.facts import Heartbeat
from common.messages.scheduling import LEFT, Alternate, Decision
from common.resources.server_groups import GroupFacts
from placement.client import PlacementClient
from placement.messages import Allocations, Candidates, First, NewClaim, Usage
from scheduler import config as scheduler_config
from scheduler.decide.choose import Filter, Weighers
from scheduler.filters.resources import resources
from scheduler.filters.server_groups import (
    server_group_affinity,
    server_group_anti_affinity,
)
from scheduler.hosts.reported import HostTable
from scheduler.select import Decider
from scheduler.view import View
from scheduler.weighers.capacity import ram
from tests.unit.scheduler.decide.test_choose import a_host, a_request

HOSTS = ("pve1", "pve2")


class FakePlacement(PlacementClient):
    """Offers every host; refuses claims as a test says."""

    def __init__(self) -> None:
        self.claims: list[str] = []
        self.named: list[list[str]] = []
        self.full: set[str] = set()
        self.together: list[list[str]] = []
        self.conflicts = 0
        self.retried = 0
        self.there: dict[str, dict[str, int]] = {}

    def candidates(
        self, resources: Any, *_: Any, in_tree: str | None = None, **__: Any
    ) -> Candidates:
        there = [f"uuid-{name}" for name in HOSTS if in_tree in (None, f"uuid-{name}")]
        room = Usage([9999] * len(there), [0] * len(there))
        return Candidates(there, dict.fromkeys(resources, room), [frozenset()] * len(there))

    def claim_first(self, consumer_uuid: str, provider_uuids: Sequence[str], *_: Any) -> First:
        self.named.append(list(provider_uuids))
        if self.there:
            raise GenerationConflict
        if self.conflicts:
            self.conflicts -= 1
            return First(None, self.retried)
        there = next((one for one in provider_uuids if one not in self.full), None)
        if there is not None:
            self.claims.append(there)
        return First(there, self.retried)

    def claim_many(self, claims: Sequence[NewClaim]) -> bool:
        if self.conflicts:
            self.conflicts -= 1
            return False
        self.together.append([claim.provider_uuid for claim in claims])
        return True

    def allocations_of(self, consumer_uuid: str) -> Allocations:
        return Allocations(self.there)


def a_decider(
    placement: FakePlacement,
    filters: dict[str, Filter] | None = None,
    weighers: Weighers | None = None,
) -> Decider:
    table = HostTable()
    now = clock.utcnow()
    facts = tuple(a_host(name).facts for name in HOSTS)
    table.update(Heartbeat("w", now, HOSTS, facts))
    conf = config.load([scheduler_config.register])
    view = View(placement, table, 1000)
    return Decider(
        conf,
        placement,
        view,
        filters or {},
        weighers or {"ram": (ram, 1.0)},
    )


def decide(
    placement: FakePlacement, alternates: tuple[Alternate, ...] = (), **asked: Any
) -> Decision:
    return a_decider(placement).decide(a_request(**asked), alternates)


def test_who_asked_in_vain_gets_no_claim() -> None:
    placement = FakePlacement()
    with pytest.raises(Unavailable):
        decide(placement, until=clock.after(-1))
    assert placement.claims == []
    assert decide(placement, until=clock.after(30)).host in HOSTS


def test_an_earlier_claim_in_the_way_is_no_lack_of_hosts() -> None:
    placement = FakePlacement()
    placement.there = {"uuid-pve9": {"VCPU": 1}}
    with pytest.raises(Unavailable):
        decide(placement)


def test_the_first_host_with_room_is_claimed() -> None:
    placement = FakePlacement()
    first = decide(placement).host
    placement.full, placement.named = {f"uuid-{first}"}, []
    decision = decide(placement)
    assert placement.named == [[f"uuid-{first}", f"uuid-{decision.host}"]]
    assert [(one["host"], one["result"]) for one in decision.claims] == [
        (first, "had no room left"),
        (decision.host, "claimed"),
    ]
    assert decision.alternates == ()


def test_a_claim_that_no_host_has_room_for_counts_once() -> None:
    placement = FakePlacement()
    placement.conflicts = 1
    results = [claim["result"] for claim in decide(placement).claims]
    assert results == ["taken by another", "had no room left", "claimed"]


def test_a_claim_in_the_way_that_is_gone_is_tried_again() -> None:
    class Passing(FakePlacement):
        def claim_first(self, consumer_uuid: str, provider_uuids: Sequence[str], *_: Any) -> First:
            if not self.named:
                self.named.append(list(provider_uuids))
                raise GenerationConflict
            return super().claim_first(consumer_uuid, provider_uuids)

    placement = Passing()
    results = [claim["result"] for claim in decide(placement).claims]
    assert results == ["changed by others each time", "claimed"]


def test_how_often_a_claim_was_repeated_is_reported() -> None:
    placement = FakePlacement()
    placement.retried = 3
    [claim] = decide(placement).claims
    assert claim == {"host": claim["host"], "result": "claimed", "generation_retries": 3}
    [claim] = a_decider(placement).decide_many(many(2))[0].claims
    assert (claim["result"], claim["generation_retries"]) == ("claimed", 0)


def test_an_alternate_is_taken_before_anything_new() -> None:
    placement = FakePlacement()
    gone = Alternate("pve9", "uuid-pve9", 1.0)
    there = Alternate("pve2", "uuid-pve2", 0.5)
    decision = decide(placement, (gone, there, gone))
    assert (decision.host, decision.alternates) == ("pve2", (gone,))
    assert placement.claims == ["uuid-pve2"]


def test_hosts_that_others_always_take_are_tried_again_later() -> None:
    placement = FakePlacement()
    placement.conflicts = 99
    with pytest.raises(Unavailable, match="Other requests took the room"):
        decide(placement)
    placement.conflicts = 1
    assert decide(placement).host in HOSTS


def many(count: int, **asked: Any) -> list[Any]:
    return [a_request(server_uuid=f"s{number}", **asked) for number in range(count)]


def test_the_servers_of_a_request_are_spread_and_claimed_together() -> None:
    placement = FakePlacement()
    decisions = a_decider(placement).decide_many(many(4))
    assert [decision.server_uuid for decision in decisions] == ["s0", "s1", "s2", "s3"]
    assert sorted(str(decision.host) for decision in decisions) == [*["pve1"] * 2, *["pve2"] * 2]
    assert placement.claims == []
    [together] = placement.together
    assert together == [decision.uuid for decision in decisions]


def test_where_somebody_was_faster_each_is_decided_alone() -> None:
    placement = FakePlacement()
    placement.conflicts = 1
    decisions = a_decider(placement).decide_many(many(2))
    assert placement.together == []
    assert placement.claims == [decision.uuid for decision in decisions]
    for decision in decisions:
        results = [claim["result"] for claim in decision.claims]
        assert results == ["not to be had for all at once", "claimed"]


@pytest.mark.parametrize(("least", "claimed"), [(2, 2), (3, 0)])
def test_nothing_is_claimed_for_fewer_than_asked_for(least: int, claimed: int) -> None:
    """Else others would find no room until it is given back."""
    placement = FakePlacement()
    filters: dict[str, Filter] = {"resources": resources}
    asked = many(3, memory_mib=8000, disk_gib=0, least=least)
    decisions = a_decider(placement, filters).decide_many(asked)
    assert sum(map(len, placement.together)) + len(placement.claims) == claimed
    assert [one.found for one in decisions] == [True, True, False]
    assert [one.host is None for one in decisions] == [not claimed, not claimed, True]
    if not claimed:
        assert [one["result"] for one in decisions[0].claims] == [LEFT]


APART = GroupFacts("g", "anti-affinity")
STRICT: dict[str, Filter] = {"server_group_anti_affinity": server_group_anti_affinity}


@pytest.mark.parametrize("conflicts", [0, 1])
def test_a_batch_over_the_room_of_its_group(conflicts: int) -> None:
    placement = FakePlacement()
    placement.conflicts = conflicts  # 1: somebody was faster, and each is decided alone
    decisions = a_decider(placement, STRICT).decide_many(many(4, group=APART))
    assert sorted(str(one.host) for one in decisions) == ["None", "None", *HOSTS]
    for lost in decisions:
        if lost.host is None:
            assert lost.counts == {"server_group_anti_affinity": 2}
            assert "1 server of its anti-affinity group is here, 1 allowed" in str(lost.reason)


def test_a_batch_that_must_stay_together_does_where_each_is_decided_alone() -> None:
    placement = FakePlacement()
    placement.conflicts = 1
    together = GroupFacts("g", "affinity")
    filters: dict[str, Filter] = {"server_group_affinity": server_group_affinity}
    decisions = a_decider(placement, filters).decide_many(many(4, group=together))
    assert len({one.host for one in decisions}) == 1


def test_those_that_find_no_host_say_why_and_the_others_go_on() -> None:
    placement = FakePlacement()
    decisions = a_decider(placement, {"resources": resources}).decide_many(
        many(3, memory_mib=8000, disk_gib=0)
    )
    assert [decision.host is None for decision in decisions] == [False, False, True]
    assert len(placement.together[0]) == 2
    late = a_decider(placement).decide_many
    with pytest.raises(Unavailable):
        late(many(2, until=clock.after(-1)))
