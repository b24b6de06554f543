"""What clusters have of server groups, against the record."""

from __future__ import annotations

from typing import Any

import pytest

from common.messages.commands import StrictGroup
from common.messages.inventory import ClusterInventory, SeenAffinity
from conductor.audit.affinity import affinity
from conductor.audit.facts import Facts, ServerFacts
from tests.unit.conductor.audit.test_differences import NOW, a_server

GROUP = StrictGroup("g", apart=True)
BOTH = (100_001, 100_002)


def members(**changes: Any) -> dict[str, ServerFacts]:
    made = [a_server(f"s{vmid}", vmid=vmid, server_group_uuid="g", **changes) for vmid in BOTH]
    return {one.uuid: one for one in made}


def inventories_of(*seen: SeenAffinity, writes: bool = True, whole: bool = True) -> Any:
    return {
        "c1": ClusterInventory("c1", affinity=seen, writes_affinity=writes, affinity_seen=whole)
    }


def found(*seen: SeenAffinity, writes: bool = True, whole: bool = True, **facts: Any) -> list[str]:
    values = {"servers": members(), "groups": {"g": GROUP}, "cloud": "me", **facts}
    inventories = inventories_of(*seen, writes=writes, whole=whole)
    return [one.kind for one in affinity(Facts(NOW, inventories=inventories, **values))]


WHOLE = SeenAffinity("me", "g", BOTH, BOTH, rule=True)


def test_what_agrees() -> None:
    assert found(WHOLE) == []
    # Somebody of theirs added a guest to our rule.
    assert found(SeenAffinity("me", "g", BOTH, (*BOTH, 7), rule=True)) == []
    assert found(SeenAffinity("", "g", BOTH), cloud="") == []
    assert found(WHOLE, SeenAffinity("another", "x", (1, 2), (1, 2), rule=True)) == []


@pytest.mark.parametrize(
    "facts",
    [
        {"groups": {}},
        {"writes": False},
        {"servers": {}},
        {"groups": {"g": StrictGroup("g", apart=True, max_per_host=2)}},
    ],
)
def test_what_is_left(facts: Any) -> None:
    assert found(WHOLE, **facts) == ["affinity_rule_left"]
    assert found(SeenAffinity("me", "g", BOTH), **facts) == ["affinity_rule_left"]
    assert found(**facts) == []
    assert found(WHOLE, whole=False, **facts) == []


def test_a_rule_alone_is_left_too() -> None:
    assert found(SeenAffinity("me", "g", (), (7, 8), rule=True), groups={}) == [
        "affinity_rule_left"
    ]


def test_what_is_missing() -> None:
    assert found() == ["affinity_rule_incomplete"]
    assert found(SeenAffinity("me", "g", BOTH)) == ["affinity_rule_incomplete"]
    assert found(SeenAffinity("me", "g", BOTH, BOTH[:1], rule=True)) == [
        "affinity_rule_incomplete"
    ]
    alone = dict(list(members().items())[:1])
    assert found(servers=alone) == []


@pytest.mark.parametrize("busy", [True, False])
def test_what_is_in_flux_is_left_alone(busy: bool) -> None:
    servers = members() if busy else members(vm_state="building")
    facts = {"servers": servers, "busy": frozenset(servers if busy else ())}
    assert found(**facts) == []
    assert found(WHOLE, **facts) == []
    assert found(WHOLE, groups={}, **facts) == []
