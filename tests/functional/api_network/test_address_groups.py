"""Address groups, over HTTP: Neutron's answers, and its refusals."""

from __future__ import annotations

from typing import Any

import pytest

from common import ids
from db import schema
from tests.fixtures import auth
from tests.functional.api_network.test_revisions import call, fault, make, put, url, world
from tests.functional.conductor.harness import World

__all__ = ["url", "world"]
NOBODY = ids.named("address_group", "none")


def test_a_group_comes_changes_and_goes(url: str, world: World) -> None:
    made = make(url, "address_group", name="a", addresses=["10.0.0.5", "10.1.2.3/16", "fd00::/64"])
    door = f"{url}/address-groups/{made['id']}"
    assert made["addresses"] == ["10.0.0.5/32", "10.1.0.0/16", "fd00::/64"]
    assert (made["name"], made["description"], made["project_id"]) == ("a", "", "demo")
    assert call(door).json()["address_group"] == made
    changed = put(url, "address_group", made["id"], name="b", description="x")
    assert (changed["name"], changed["revision_number"]) == ("b", 1)
    more = call(f"{door}/add_addresses", "PUT", {"addresses": ["10.9.0.0/24"]})
    assert more.status_code == 200
    assert "10.9.0.0/24" in more.json()["address_group"]["addresses"]
    again = call(f"{door}/add_addresses", "PUT", {"address_group": {"addresses": ["10.0.0.5"]}})
    assert fault(again) == (409, "AddressesAlreadyExist")
    gone = call(f"{door}/remove_addresses", "PUT", {"addresses": ["10.0.0.5", "10.9.0.0/24"]})
    assert gone.json()["address_group"]["addresses"] == ["10.1.0.0/16", "fd00::/64"]
    again = call(f"{door}/remove_addresses", "PUT", {"addresses": ["10.0.0.5"]})
    assert fault(again) == (404, "AddressesNotFound")
    listed = call(f"{url}/address-groups?name=b&fields=name").json()["address_groups"]
    assert listed == [{"name": "b"}]
    group = make(url, "security_group", name="g")["id"]
    asked = {"security_group_id": group, "direction": "ingress"}
    rule = make(url, "security_group_rule", **asked, remote_address_group_id=made["id"])
    assert rule["remote_address_group_id"] == made["id"]
    twice = {**asked, "remote_address_group_id": made["id"]}
    answer = call(f"{url}/security-group-rules", "POST", {"security_group_rule": twice})
    assert fault(answer) == (409, "SecurityGroupRuleExists")
    assert fault(call(door, "DELETE")) == (409, "AddressGroupInUse")
    call(f"{url}/security-group-rules/{rule['id']}", "DELETE")
    assert call(door, "DELETE").status_code == 204
    assert fault(call(door)) == (404, "AddressGroupNotFound")
    assert world.rows(schema.address_groups) == []


@pytest.mark.parametrize(
    "asked",
    [
        {"addresses": "10.0.0.0/8"},
        {"addresses": ["x"]},
        {"addresses": [3]},
        {"addresses": ["10.0.0.1", "10.0.0.1/32"]},
        {"name": None},
        {"name": "x" * 256},
        {"colour": "red"},
        {"project_id": "other"},
        {"id": NOBODY},
    ],
)
def test_what_is_no_group_is_refused(url: str, world: World, asked: dict[str, Any]) -> None:
    answer = call(f"{url}/address-groups", "POST", {"address_group": asked})
    assert answer.status_code == 400
    assert world.rows(schema.address_groups) == []


def test_groups_are_a_project_s_own(url: str, world: World) -> None:
    other = make(url, "address_group", auth.ADMIN, project_id="other", addresses=["10.0.0.0/8"])
    door = f"{url}/address-groups/{other['id']}"
    assert call(f"{url}/address-groups").json() == {"address_groups": []}
    assert fault(call(door)) == (404, "AddressGroupNotFound")
    body = {"address_group": {"name": "mine"}}
    assert fault(call(door, "PUT", body))[0] == 404
    assert fault(call(door, "DELETE"))[0] == 404
    for action in ("add_addresses", "remove_addresses"):
        answer = call(f"{door}/{action}", "PUT", {"addresses": ["10.0.0.0/8"]})
        assert fault(answer)[0] == 404
    group = make(url, "security_group", name="g")["id"]
    asked = {"security_group_id": group, "direction": "ingress"}
    asked |= {"remote_address_group_id": other["id"]}
    answer = call(f"{url}/security-group-rules", "POST", {"security_group_rule": asked})
    assert fault(answer) == (404, "AddressGroupNotFound")
    mine = make(url, "address_group", addresses=["10.0.0.0/8"])["id"]
    for method, path, body in (
        ("POST", "", {"address_group": {}}),
        ("PUT", f"/{mine}", {"address_group": {"name": "x"}}),
        ("PUT", f"/{mine}/add_addresses", {"addresses": ["10.1.0.0/16"]}),
        ("DELETE", f"/{mine}", None),
    ):
        answer = call(f"{url}/address-groups{path}", method, body, auth.READER)
        assert fault(answer)[0] == 403
    assert len(world.rows(schema.address_groups)) == 2


def test_a_rule_names_one_remote(url: str) -> None:
    prefixes = make(url, "address_group", addresses=["10.0.0.0/8"])["id"]
    group = make(url, "security_group", name="g")["id"]
    asked = {"security_group_id": group, "direction": "ingress"}
    asked |= {"remote_address_group_id": prefixes, "remote_ip_prefix": "10.0.0.0/8"}
    answer = call(f"{url}/security-group-rules", "POST", {"security_group_rule": asked})
    assert fault(answer) == (400, "SecurityGroupMultipleRemoteEntites")
