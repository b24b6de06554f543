"""What new security groups begin with, over HTTP: an administrator's to choose."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fixtures import auth
from tests.functional.api_network.test_revisions import call, fault, make, url, world

__all__ = ["url", "world"]
PATH = "default-security-group-rules"
KIND = "default_security_group_rule"


def post(url: str, token: str = auth.ADMIN, **asked: Any) -> Any:
    return call(f"{url}/{PATH}", "POST", {KIND: asked}, token)


def listed(url: str, query: str = "") -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = call(f"{url}/{PATH}{query}", token=auth.READER).json()[
        f"{KIND}s"
    ]
    return rules


def said(rules: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    parts = ("direction", "ethertype", "protocol", "port_range_min", "remote_group_id")
    return sorted((tuple(one[part] for part in parts) for one in rules), key=str)


OUT = [("egress", family, None, None, None) for family in ("IPv4", "IPv6")]


def test_groups_begin_with_neutron_s_rules(url: str) -> None:
    inside = [("ingress", family, None, None, "PARENT") for family in ("IPv4", "IPv6")]
    assert said(listed(url)) == [*OUT, *inside]
    assert said(listed(url, "?used_in_non_default_sg=true")) == OUT
    assert said(make(url, "security_group", name="g")["security_group_rules"]) == OUT


def test_new_groups_begin_with_what_administrators_choose(url: str) -> None:
    before = make(url, "security_group", name="before")
    answer = post(url, direction="ingress", protocol="tcp", port_range_min=22, port_range_max=22)
    assert answer.status_code == 201
    made = answer.json()[KIND]
    assert (made["used_in_default_sg"], made["used_in_non_default_sg"]) == (False, True)
    assert call(f"{url}/{PATH}/{made['id']}", token=auth.READER).json()[KIND] == made
    again = post(url, direction="ingress", protocol="tcp", port_range_min=22, port_range_max=22)
    assert fault(again) == (409, "DefaultSecurityGroupRuleExists")
    ssh = ("ingress", "IPv4", "tcp", 22, None)
    group = make(url, "security_group", name="g")
    assert said(group["security_group_rules"]) == [*OUT, ssh]
    for one in listed(url, "?direction=egress"):
        answer = call(f"{url}/{PATH}/{one['id']}", "DELETE", token=auth.ADMIN)
        assert answer.status_code == 204
    asked = {"direction": "ingress", "protocol": "udp", "remote_group_id": "PARENT"}
    flags = {"used_in_default_sg": True, "used_in_non_default_sg": True}
    assert post(url, **asked, **flags).status_code == 201
    group = make(url, "security_group", name="h")
    own = ("ingress", "IPv4", "udp", None, group["id"])
    assert said(group["security_group_rules"]) == sorted([ssh, own], key=str)
    # The project's own default group was there before; that of another is new.
    query = f"{url}/security-groups?name=default&project_id=other"
    (default,) = call(query, token=auth.ADMIN).json()["security_groups"]
    own = ("ingress", "IPv4", "udp", None, default["id"])
    assert own in said(default["security_group_rules"])
    now = call(f"{url}/security-groups/{before['id']}").json()["security_group"]
    assert said(now["security_group_rules"]) == OUT
    gone = call(f"{url}/{PATH}/{made['id']}", "DELETE", token=auth.ADMIN)
    assert gone.status_code == 204
    answer = call(f"{url}/{PATH}/{made['id']}", token=auth.ADMIN)
    assert fault(answer) == (404, "DefaultSecurityGroupRuleNotFound")


def test_a_group_may_begin_without_a_rule(url: str) -> None:
    for one in listed(url):
        call(f"{url}/{PATH}/{one['id']}", "DELETE", token=auth.ADMIN)
    assert make(url, "security_group", name="g")["security_group_rules"] == []


@pytest.mark.parametrize("token", [auth.MEMBER, auth.READER])
def test_only_administrators_choose(url: str, token: str) -> None:
    assert fault(post(url, token, direction="ingress"))[0] == 403
    one = listed(url)[0]["id"]
    assert fault(call(f"{url}/{PATH}/{one}", "DELETE", token=token))[0] == 403
    assert len(listed(url)) == 4


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"direction": "sideways"},
        {"direction": "ingress", "remote_group_id": "x"},
        {"direction": "ingress", "port_range_min": 5},
        {"direction": "ingress", "colour": "red"},
        {"direction": "ingress", "used_in_default_sg": "perhaps"},
    ],
)
def test_what_is_no_rule_is_refused(url: str, asked: dict[str, Any]) -> None:
    assert post(url, **asked).status_code == 400
    assert len(listed(url)) == 4
