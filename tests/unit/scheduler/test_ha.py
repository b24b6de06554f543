"""Rules of high availability: which nodes a flavor's rule leaves, and where a bound VM may go."""

from __future__ import annotations

import pytest

from common.messages.facts import HaRule
from common.messages.scheduling import Change
from scheduler.decide.choose import choose
from scheduler.explain.nearest import nearest
from scheduler.filters.ha import ha_rule
from scheduler.weighers.ha import ha_priority
from tests.unit.scheduler.decide.test_choose import a_host, a_request

GOLD = a_request(extra_specs={"ha:rule": "gold"})
MEMBER = HaRule("gold", True, 2, 0)
OUTSIDE = HaRule("gold", True, 2, None)
PREFERRED = HaRule("gold", False, 2, None)


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ((MEMBER,), None),
        ((OUTSIDE,), "the strict HA rule gold has 2 nodes, not this one"),
        ((PREFERRED,), None),
        ((HaRule("lead", True, 1, 0),), "its cluster has 1 HA rule, none called gold"),
        ((), "its cluster has 0 HA rules, none called gold"),
    ],
)
def test_a_rule_that_the_flavor_names(rules: tuple[HaRule, ...], reason: str | None) -> None:
    host = a_host(ha_rules=rules)
    assert ha_rule(host, GOLD) == reason
    assert ha_rule(host, a_request()) is None


def test_a_strict_rule_binds_the_vm_of_a_server_that_is_somewhere() -> None:
    away = a_host(ha_rules=(HaRule("gold", True, 2, None, (100_007,)),))
    bound = "the strict HA rule gold binds VM 100007 to 2 other nodes"
    assert ha_rule(away, a_request(vm=("sim1", 100_007))) == bound
    assert ha_rule(away, a_request(vm=("sim1", 100_008))) is None
    assert ha_rule(away, a_request(vm=("sim2", 100_007))) is None
    assert ha_rule(a_host(ha_rules=(MEMBER,)), a_request(vm=("sim1", 100_007))) is None


def test_the_nodes_of_highest_priority_are_preferred() -> None:
    hosts = [
        a_host("few", ha_rules=(HaRule("gold", False, 2, 1),)),
        a_host("best", ha_rules=(HaRule("gold", False, 2, 2),)),
        a_host("other", ha_rules=(PREFERRED,)),
    ]
    assert [ha_priority(host, GOLD) for host in hosts] == [1.0, 2.0, -1.0]
    chosen = choose(hosts, GOLD, {"ha_rule": ha_rule}, {"ha_priority": (ha_priority, 5.0)})
    assert [one.host.name for one in chosen.ranked] == ["best", "few", "other"]


def test_leaving_the_rule_out_is_suggested() -> None:
    found = nearest([a_host(ha_rules=(OUTSIDE,))], GOLD, {"ha_rule": ha_rule})
    assert found is not None
    assert found.changes == (Change("extra_specs", {"ha:rule": "gold"}, {}),)
