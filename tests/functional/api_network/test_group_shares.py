"""RBAC policies of security groups and address groups: who sees and uses them, and who doesn't."""

from __future__ import annotations

from typing import Any

import pytest

from db import schema
from tests.fixtures import auth
from tests.functional.api_network.test_revisions import VMBR0, call, fault, make, put, url, world
from tests.functional.conductor.harness import World

__all__ = ["url", "world"]


def share(url: str, kind: str, one: str, whom: str, token: str = auth.ADMIN) -> Any:
    asked = {"object_type": kind, "object_id": one, "target_tenant": whom}
    body = {"rbac_policy": {**asked, "action": "access_as_shared"}}
    return call(f"{url}/rbac-policies", "POST", body, token)


@pytest.fixture
def theirs(url: str) -> dict[str, str]:
    """A group of each type that another project has."""
    return {
        kind: make(url, kind, auth.ADMIN, project_id="other", name="theirs")["id"]
        for kind in ("security_group", "address_group")
    }


@pytest.mark.parametrize("kind", ["security_group", "address_group"])
@pytest.mark.parametrize("whom", ["demo", "*"])
def test_who_is_shared_with_sees_and_does_not_change(
    url: str, theirs: dict[str, str], kind: str, whom: str
) -> None:
    path = f"{url}/{kind.replace('_', '-')}s"
    one = theirs[kind]
    assert fault(call(f"{path}/{one}"))[0] == 404
    made = share(url, kind, one, whom)
    assert made.status_code == 201
    policy = made.json()["rbac_policy"]
    assert (policy["object_type"], policy["object_id"]) == (kind, one)
    assert fault(share(url, kind, one, whom)) == (409, "DuplicateRbacPolicy")
    assert call(f"{path}/{one}").json()[kind]["name"] == "theirs"
    assert one in {each["id"] for each in call(path).json()[f"{kind}s"]}
    for method, body in (("PUT", {kind: {"name": "mine"}}), ("DELETE", None)):
        assert call(f"{path}/{one}", method, body).status_code in (403, 404)
    assert call(f"{path}/{one}").json()[kind]["name"] == "theirs"
    listed = call(f"{url}/rbac-policies?object_type={kind}", token=auth.ADMIN).json()
    assert [each["id"] for each in listed["rbac_policies"]] == [policy["id"]]
    assert call(f"{url}/rbac-policies").json() == {"rbac_policies": []}
    # Who only sees it shares it with nobody.
    assert share(url, kind, one, "third", auth.MEMBER).status_code == 400
    assert call(f"{url}/rbac-policies/{policy['id']}", "DELETE").status_code == 404
    door = f"{url}/rbac-policies/{policy['id']}"
    assert call(door, "DELETE", token=auth.ADMIN).status_code == 204
    assert fault(call(f"{path}/{one}"))[0] == 404


def test_a_shared_security_group_is_used(url: str, world: World, theirs: dict[str, str]) -> None:
    group = theirs["security_group"]
    asked = {"network_id": VMBR0, "security_groups": [group]}
    assert fault(call(f"{url}/ports", "POST", {"port": asked})) == (404, "SecurityGroupNotFound")
    policy = share(url, "security_group", group, "demo").json()["rbac_policy"]
    port = make(url, "port", **asked)
    assert port["security_groups"] == [group]
    mine = make(url, "security_group", name="mine")["id"]
    rule = {"security_group_id": mine, "direction": "ingress", "remote_group_id": group}
    made = make(url, "security_group_rule", **rule)
    rules = f"{url}/security-group-rules"
    into = {"security_group_id": group, "direction": "ingress"}
    assert call(rules, "POST", {"security_group_rule": into}).status_code in (403, 404)
    door = f"{url}/rbac-policies/{policy['id']}"
    assert fault(call(door, "DELETE", token=auth.ADMIN)) == (409, "RbacPolicyInUse")
    body = {"rbac_policy": {"target_tenant": "third"}}
    assert fault(call(door, "PUT", body, auth.ADMIN)) == (409, "RbacPolicyInUse")
    put(url, "port", port["id"], security_groups=[])
    call(f"{rules}/{made['id']}", "DELETE")
    changed = call(door, "PUT", body, auth.ADMIN)
    assert changed.json()["rbac_policy"]["target_tenant"] == "third"
    assert fault(call(f"{url}/ports", "POST", {"port": asked})) == (404, "SecurityGroupNotFound")
    groups = f"{url}/security-groups"
    assert call(f"{groups}/{group}", "DELETE", token=auth.ADMIN).status_code == 204
    assert world.rows(schema.group_shares) == []


def test_a_shared_address_group_is_used(url: str, theirs: dict[str, str]) -> None:
    group = theirs["address_group"]
    mine = make(url, "security_group", name="mine")["id"]
    rule = {"security_group_id": mine, "direction": "ingress", "remote_address_group_id": group}
    body = {"security_group_rule": rule}
    rules = f"{url}/security-group-rules"
    assert fault(call(rules, "POST", body)) == (404, "AddressGroupNotFound")
    policy = share(url, "address_group", group, "demo").json()["rbac_policy"]
    made = make(url, "security_group_rule", **rule)
    door = f"{url}/rbac-policies/{policy['id']}"
    assert fault(call(door, "DELETE", token=auth.ADMIN)) == (409, "RbacPolicyInUse")
    for action in ("add_addresses", "remove_addresses"):
        change = {"addresses": ["10.0.0.0/8"]}
        answer = call(f"{url}/address-groups/{group}/{action}", "PUT", change)
        assert answer.status_code in (403, 404)
    call(f"{rules}/{made['id']}", "DELETE")
    assert call(door, "DELETE", token=auth.ADMIN).status_code == 204


def test_members_share_their_own_with_one_project(url: str) -> None:
    mine = make(url, "security_group", name="mine")["id"]
    assert share(url, "security_group", mine, "other", auth.MEMBER).status_code == 201
    assert fault(share(url, "security_group", mine, "*", auth.MEMBER))[0] == 403
    assert share(url, "router", mine, "other", auth.MEMBER).status_code == 400
    details = call(f"{url}/quotas/demo/details").json()["quota"]
    assert details["rbac_policy"]["used"] == 1
