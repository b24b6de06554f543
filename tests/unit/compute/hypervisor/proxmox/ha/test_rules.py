"""Rules and groups of high availability, as the API lists them."""

from __future__ import annotations

from typing import Any

from common.messages.facts import HaRule
from compute.hypervisor.proxmox.ha import rules
from compute.hypervisor.proxmox.ha.rules import NodeAffinity


def a_rule(name: str, **more: Any) -> dict[str, Any]:
    values = {"rule": name, "type": "node-affinity", "resources": "vm:100", "nodes": "pve1"}
    return {**values, "order": 1, "digest": "d", **more}


def test_rules() -> None:
    listed = [
        a_rule("gold", strict=1, nodes="pve1:2,pve2", resources="ct:9,vm:101,vm:100"),
        a_rule("ha-group-old", strict="0"),
        a_rule("off", disable=1),
        a_rule("against", strict=1, errors={"resources": ["already used"]}),
        a_rule("apart", type="resource-affinity", affinity="negative"),
    ]
    assert rules.of_rules(listed) == (
        NodeAffinity("against", True, {"pve1": 0}, ()),
        NodeAffinity("gold", True, {"pve1": 2, "pve2": 0}, (100, 101)),
        NodeAffinity("old", False, {"pve1": 0}, (100,)),
    )


def test_groups() -> None:
    groups = [
        {"group": "gold", "type": "group", "nodes": "pve1,pve2:3", "restricted": 1},
        {"group": "wish", "type": "group", "nodes": "pve1"},
    ]
    resources = [{"sid": "vm:100", "type": "vm", "group": "gold"}, {"sid": "vm:101", "type": "vm"}]
    assert rules.of_groups(groups, resources) == (
        NodeAffinity("gold", True, {"pve1": 0, "pve2": 3}, (100,)),
        NodeAffinity("wish", False, {"pve1": 0}, ()),
    )


def test_how_a_node_stands_to_a_rule() -> None:
    strict = NodeAffinity("gold", True, {"pve1": 2, "pve2": 0}, (100,))
    assert strict.at("pve1") == HaRule("gold", True, 2, 2)
    assert strict.at("pve3") == HaRule("gold", True, 2, None, (100,))
    wish = NodeAffinity("wish", False, {"pve1": 0}, (100,))
    assert wish.at("pve3") == HaRule("wish", False, 1, None)
