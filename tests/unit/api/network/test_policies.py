"""Who sees networks and ports."""

from __future__ import annotations

from typing import Any

import pytest

from api.network.attributes import NETWORK, PORT, SUBNET
from api.network.policies import RULES
from common.context import RequestContext
from tests.fixtures.listings import a_conf
from web.policy import Enforcer

SHARED = {"project_id": "", "network:project_id": "", "shared": True, "router:external": False}
OWN = SHARED | {"project_id": "p"}


@pytest.mark.parametrize(
    ("roles", "rule", "target", "allowed"),
    [
        (["reader"], "get_network", SHARED, True),
        ([], "get_network", SHARED, True),
        (["reader"], "get_network", SHARED | {"shared": False}, False),
        (["reader"], "get_network", OWN | {"shared": False}, True),
        ([], "get_network", SHARED | {"shared": False, "router:external": True}, True),
        (["reader"], "get_subnet", SHARED, True),
        (["reader"], "get_port", SHARED, False),
        (["reader"], "get_port", OWN, True),
        (["member"], "get_port", OWN, False),
        (["service"], "get_port", SHARED, True),
        (["admin"], "get_port", SHARED, True),
        (["reader"], "get_port:binding:host_id", OWN, False),
        (["reader"], "get_quota", OWN, True),
        (["reader"], "get_quota", SHARED, False),
    ],
)
def test_rules(roles: list[str], rule: str, target: dict[str, Any], allowed: bool) -> None:
    who = RequestContext(user_id="u", project_id="p", roles=roles, overwrite=False)
    assert Enforcer(a_conf(), RULES).allows(who, rule, target) is allowed


def test_every_rule_that_an_attribute_names_is_declared() -> None:
    named = {each.rule for each in (*NETWORK, *SUBNET, *PORT) if each.rule}
    assert named <= {rule.name for rule in RULES}
