"""Security groups of servers: those of their ports, named at the create, added and removed."""

from __future__ import annotations

from typing import Any

import pytest

from common import ids
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import NETWORK, ComputeApi, a_full_server, uuid_of
from tests.fixtures.listings import NOW, Row
from tests.functional.api_compute.conftest import MakeApi
from tests.functional.api_compute.test_interfaces import a_network, a_port, a_subnet

pytestmark = pytest.mark.database

SERVER = f"/servers/{uuid_of(1)}"
GROUPS = f"{SERVER}/os-security-groups"


def a_group(name: str, number: int = 1, project: str = "demo", **more: Any) -> Row:
    values = {"id": ids.named("group", f"{name}{number}"), "project_id": project, "name": name}
    return schema.security_groups, {
        **values,
        "description": "",
        "created_at": NOW,
        "updated_at": NOW,
        **more,
    }


def a_rule(group: Row, number: int, **values: Any) -> Row:
    base = {"id": ids.named("rule", str(number)), "security_group_id": group[1]["id"]}
    base |= {"project_id": "demo", "direction": "ingress", "ethertype": "IPv4"}
    return schema.security_group_rules, {
        **base,
        "description": "",
        "meaning": str(number),
        "created_at": NOW,
        **values,
    }


WEB, OTHER, FOREIGN = a_group("web"), a_group("db"), a_group("web", 2, "other")
TWINS = (a_group("twin"), a_group("twin", 2))
RULES = (
    a_rule(WEB, 1, protocol="tcp", port_range_min=80, port_range_max=81),
    a_rule(WEB, 2, remote_group_id=OTHER[1]["id"]),
    a_rule(WEB, 3, direction="egress"),
    a_rule(WEB, 4, protocol="udp", remote_ip_prefix="10.0.0.0/8"),
)


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    ports = (a_port(), a_port(2, "10.20.0.3", position=1))
    bound = (
        schema.port_security_groups,
        {
            "port_id": ports[0][1]["id"],
            "security_group_id": OTHER[1]["id"],
        },
    )
    groups = (WEB, OTHER, FOREIGN, *TWINS, *RULES)
    server = a_full_server(1)
    return make(a_network(), a_subnet(), server, *ports, *groups, bound)


def names(api: ComputeApi) -> list[str]:
    shown = api.get(SERVER).json["server"].get("security_groups", [])
    return [one["name"] for one in shown]


def act(api: ComputeApi, action: str, name: Any, **more: Any) -> Any:
    body = {f"{action}SecurityGroup": {"name": name}}
    return api.request("POST", f"{SERVER}/action", body, **more)


def test_they_are_those_of_its_ports(api: ComputeApi) -> None:
    assert names(api) == ["db"]
    for _ in range(2):
        assert act(api, "add", "web").status_code == 202
        assert names(api) == ["db", "web"]
    with api.reader.connect() as connection:
        assert len(connection.execute(schema.port_security_groups.select()).all()) == 3
    [db, web] = api.get(GROUPS).json["security_groups"]
    assert (db["name"], db["rules"], db["tenant_id"]) == ("db", [], "demo")
    ports, group, prefix = web["rules"]
    assert (ports["ip_protocol"], ports["from_port"], ports["to_port"]) == ("tcp", 80, 81)
    assert (ports["ip_range"], ports["group"]) == ({"cidr": "0.0.0.0/0"}, {})
    assert (group["group"], group["ip_range"]) == ({"name": "db", "tenant_id": "demo"}, {})
    assert (prefix["from_port"], prefix["to_port"]) == (1, 65535)
    assert prefix["ip_range"] == {"cidr": "10.0.0.0/8"}
    assert act(api, "remove", WEB[1]["id"]).status_code == 202
    assert names(api) == ["db"]
    assert act(api, "remove", "db").status_code == 202
    assert names(api) == []


@pytest.mark.parametrize(
    ("action", "name", "status"),
    [
        ("add", "nobody's", 404),
        ("add", FOREIGN[1]["id"], 404),
        ("add", "twin", 409),
        ("add", " ", 400),
        ("add", "", 400),
        ("add", 7, 400),
        ("remove", "web", 404),
        ("remove", "nobody's", 404),
    ],
)
def test_refusals_change_nothing(api: ComputeApi, action: str, name: Any, status: int) -> None:
    assert act(api, action, name).status_code == status
    assert names(api) == ["db"]


def test_a_port_without_security_is_in_none(make: MakeApi) -> None:
    port = a_port(port_security=False)
    api = make(a_network(), a_subnet(), a_full_server(1), port, WEB)
    answer = act(api, "add", "web")
    assert answer.status_code == 400
    assert "port_security_enabled" in answer.json["badRequest"]["message"]


def test_who_may(api: ComputeApi) -> None:
    assert act(api, "add", "web", token=auth.READER).status_code == 403
    assert api.get(GROUPS, token=auth.READER).status_code == 200
    assert api.get(GROUPS, token=auth.OTHER).status_code == 404
    assert act(api, "add", "web", token=auth.OTHER).status_code == 404


@pytest.mark.parametrize(
    ("groups", "status", "stored"),
    [
        ([{"name": "web"}, {"name": OTHER[1]["id"]}], 202, [WEB[1]["id"], OTHER[1]["id"]]),
        ([{"name": "default"}], 202, ["default"]),
        ([{"name": "nobody's"}], 400, None),
        ([{"name": FOREIGN[1]["id"]}], 400, None),
        ([{"name": "twin"}], 409, None),
    ],
)
def test_a_create_names_groups(
    api: ComputeApi, groups: list[dict[str, str]], status: int, stored: list[str] | None
) -> None:
    asked = {"name": "one", "flavorRef": "m1.small", "imageRef": ids.named("image", "debian-12")}
    body = {"server": {**asked, "networks": [{"uuid": NETWORK}], "security_groups": groups}}
    answer = api.request("POST", "/servers", body)
    assert answer.status_code == status, answer.text
    made = [one for name, one in api.conductor.asked if name == "create_servers"]
    assert [list(one.security_groups) for one in made] == ([stored] if stored else [])
