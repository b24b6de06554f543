"""What a weigher's number is worth: decay, numbers that are none, hosts that are no candidates."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import pytest

from common import config
from common.errors import ConfigurationError
from common.messages.scheduling import RequestSpec
from common.resources.aggregates import AggregateFacts
from placement.messages import Candidates, Usage
from scheduler import config as scheduler_config
from scheduler.columnar.forms import weighing_together
from scheduler.decide.choose import Weigher, choose
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host import Host
from scheduler.hosts.host_states import Floats
from scheduler.hosts.memberships import Memberships
from scheduler.service import load_filters, load_weighers
from scheduler.weighers.capacity import ram
from scheduler.weighers.cluster import cluster_spread
from scheduler.weighers.history import build_failure
from tests.unit.scheduler.decide.test_choose import a_host, a_request
from tests.unit.scheduler.test_select import FakePlacement, a_decider
from tests.unit.scheduler.weighers.test_balance import filled

CONF = config.load([scheduler_config.register])
FILTERS = load_filters(CONF)
WEIGHERS = load_weighers(CONF)


def first(hosts: list[Host], weighers: dict[str, tuple[Weigher, float]] | None = None) -> str:
    return choose(hosts, a_request(), FILTERS, weighers or WEIGHERS).ranked[0].host.name


@pytest.mark.parametrize(
    ("failures", "winner"), [(1.0, "full"), (0.25, "full"), (1 / 64, "empty"), (1e-10, "empty")]
)
def test_a_failure_counts_less_the_longer_it_is_ago(failures: float, winner: str) -> None:
    hosts = [filled("empty", 0, 0, failures=failures), filled("full", 6000, 10)]
    assert first(hosts) == winner


def test_an_old_failure_counts_nothing_at_all() -> None:
    hosts = [a_host("a", failures=1e-9), a_host("b"), a_host("c", failures=0.0009)]
    [*scores] = choose(hosts, a_request(), {}, {"f": (build_failure, 10.0)}).ranked
    assert [one.total for one in scores] == [0, 0, 0]
    assert -1 <= build_failure(a_host(failures=1000.0), a_request()) < -0.999


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e309", "1e300"])
def test_a_multiplier_that_is_no_number_is_not_understood(text: str) -> None:
    aggregate = AggregateFacts("u", "n", {"ram_weight_multiplier": text})
    member = Memberships((aggregate,))
    hosts = [dataclasses.replace(a_host("a", free_mib=3000), memberships=member)]
    hosts += [a_host("b", free_mib=4000)]
    assert member.multipliers == {}
    assert first(hosts) == "b"
    conf = config.load([scheduler_config.register])
    conf.set_override("weighers", {"ram": text}, "scheduler")
    with pytest.raises(ConfigurationError, match="weigher ram is no number"):
        load_weighers(conf)


def giving(scores: dict[str, float]) -> Weigher:
    def weigh(host: Host, request: RequestSpec) -> float:
        return scores[host.name]

    return weigh


@pytest.mark.parametrize("strange", [math.nan, math.inf, -math.inf, 1.7e308, -1.7e308])
def test_a_score_that_is_no_number_is_the_least(strange: float) -> None:
    hosts = [a_host("a"), a_host("b"), a_host("c")]
    weighers = {"w": (giving({"a": strange, "b": 1.0, "c": 3.0}), 2.0)}
    ranked = choose(hosts, a_request(), FILTERS, weighers).ranked
    assert ranked[0].host.name == "c"
    assert {one.host.name: one.total for one in ranked} == {"a": 0.0, "b": 0.0, "c": 2.0}
    only = choose(hosts[:1], a_request(), FILTERS, weighers).ranked
    assert [one.total for one in only] == [0.0]


def test_a_load_that_is_no_number_harms_nobody() -> None:
    hosts = [a_host("a", cpu_load=math.nan), a_host("b", cpu_load=0.9), a_host("c", cpu_load=0.1)]
    assert first(hosts) == "c"


# --- clusters

SPREAD: dict[str, tuple[Weigher, float]] = {
    "cluster_spread": (cluster_spread, 5.0),
    "ram": (ram, 1.0),
}
HOSTS = [
    filled("a0", 0, 0, cluster="a"),
    *(filled(f"a{number}", 8192, 16, cluster="a") for number in range(1, 5)),
    filled("b0", 2000, 2, cluster="b"),
]


def numberless(host: Host) -> Host:
    return dataclasses.replace(host, capacity={}, used={})


@pytest.mark.parametrize("shown", [lambda host: host, numberless], ids=["full", "numberless"])
def test_a_cluster_is_all_its_hosts_not_the_candidates_only(shown: Callable[[Host], Host]) -> None:
    candidates = HostColumns.of([HOSTS[0], HOSTS[-1]])
    whole = HostColumns.of([HOSTS[0], *map(shown, HOSTS[1:-1]), HOSTS[-1]])
    for columns in (candidates.beside(whole), candidates.beside(whole).draft(), whole):
        ranked = choose(columns, a_request(), FILTERS, SPREAD).ranked
        assert [one.host.name for one in ranked] == ["b0", "a0"]
    assert cluster_spread.weighed(candidates.beside(whole), a_request()) == pytest.approx(
        [0.2, 6192 / 8192]
    )


def test_what_a_pass_has_promised_already_counts() -> None:
    draft = HostColumns.of([HOSTS[0], HOSTS[-1]]).beside(HostColumns.of(HOSTS)).draft()
    draft.take(0, {"MEMORY_MB": 4096})
    found = cluster_spread.weighed(draft, a_request())
    assert found is not None
    assert found[0] == pytest.approx(0.1)


class OneIsOffered(FakePlacement):
    """Offers one of two hosts; the other is nearly full."""

    def candidates(
        self, resources: Any, *_: Any, in_tree: str | None = None, **options: Any
    ) -> Candidates:
        offered = Candidates(
            ["uuid-pve1", "uuid-pve2"],
            {name: Usage([8192, 8192], [0, 8000]) for name in resources},
            [frozenset(), frozenset()],
        )
        if options.get("limit") is None:
            return offered
        usages = {name: Usage([8192], [0]) for name in resources}
        return Candidates(offered.uuids[:1], usages, offered.traits[:1])


def test_a_decision_shows_weighers_the_hosts_that_are_no_candidates() -> None:
    seen: list[float] = []

    def looking(columns: HostColumns, request: RequestSpec) -> Floats:
        found = cluster_spread.weighed(columns, request)
        assert found is not None
        seen.extend(found.tolist())
        return found

    weigher = weighing_together(looking, counting=("MEMORY_MB",))
    a_decider(OneIsOffered(), weighers={"look": (weigher, 1.0)}).decide(a_request(), ())
    assert seen == [pytest.approx(8384 / 16384)]
