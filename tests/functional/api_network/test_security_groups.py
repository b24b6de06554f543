"""Security groups and their rules, over HTTP: Neutron's answers, and its refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from api.network.app import make_app
from common import ids
from common.resources import networks
from conductor.endpoints.networks.ports import PortEndpoint
from conductor.endpoints.networks.security_groups import SecurityGroupEndpoint
from db import engine, schema
from tests.fixtures import auth
from tests.fixtures.listings import a_conf, counted, mounted, served
from tests.functional.conductor.harness import World

VMBR0 = ids.named("network", "vmbr0")
NOBODY = ids.named("group", "nobody's")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


@pytest.fixture
def url(world: World) -> Iterator[str]:
    """Where nothing is filtered."""
    yield from _served(world, filtered=False)


@pytest.fixture
def filtered_url(world: World) -> Iterator[str]:
    """Where ports are filtered; the test itself configures the conductor so."""
    yield from _served(world, filtered=True)


def _served(world: World, *, filtered: bool) -> Iterator[str]:
    cloud = world.conductor.cloud
    ports = PortEndpoint(cloud, world.conductor.runner)
    groups = SecurityGroupEndpoint(cloud, lambda: None)
    methods = {
        name: getattr(endpoint, name)
        for endpoint in (ports, groups)
        for name in dir(endpoint)
        if not name.startswith("_")
    }
    conductor: Any = SimpleNamespace(**methods)
    reader, conf = engine.reader(world.url), a_conf()
    networks.register(conf)
    conf.set_override("firewall", "on" if filtered else "off", group="networks")
    app = make_app(conf, reader, auth.header_auth, conductor)
    with served(mounted(app, "/network")) as root:
        yield f"{root}/network/v2.0"
    reader.dispose()


def call(
    url: str, method: str = "GET", body: Any = None, token: str = auth.MEMBER
) -> requests.Response:
    return requests.request(method, url, json=body, headers={"X-Auth-Token": token}, timeout=60)


def refusal(answer: requests.Response) -> tuple[int, str]:
    """Return the status and Neutron's type of an error."""
    return answer.status_code, answer.json()["NeutronError"]["type"]


def group(url: str, token: str = auth.MEMBER, **asked: Any) -> dict[str, Any]:
    answer = call(f"{url}/security-groups", "POST", {"security_group": asked}, token)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()["security_group"]
    return made


def rule(url: str, group_id: str, token: str = auth.MEMBER, **asked: Any) -> requests.Response:
    values = {"security_group_id": group_id, "direction": "ingress", **asked}
    return call(f"{url}/security-group-rules", "POST", {"security_group_rule": values}, token)


def port(url: str, token: str = auth.MEMBER, **asked: Any) -> requests.Response:
    return call(f"{url}/ports", "POST", {"port": {"network_id": VMBR0, **asked}}, token)


def default(url: str, token: str = auth.MEMBER) -> dict[str, Any]:
    listed = call(f"{url}/security-groups?name=default", token=token).json()["security_groups"]
    (one,) = listed
    return dict(one)


def test_the_default_group_is_made_on_first_look(url: str, world: World) -> None:
    assert call(f"{url}/security-group-rules?direction=ingress", token=auth.READER).json() != {
        "security_group_rules": []
    }
    one = default(url)
    assert default(url) == one
    assert (one["name"], one["description"]) == ("default", "Default security group")
    assert (one["project_id"], one["tenant_id"], one["stateful"]) == ("demo", "demo", True)
    assert (one["tags"], one["shared"]) == ([], False)
    said = [
        (each["direction"], each["ethertype"], each["remote_group_id"])
        for each in one["security_group_rules"]
    ]
    assert sorted(said, key=str) == sorted(
        [
            *(("egress", "IPv4", None), ("egress", "IPv6", None)),
            *(("ingress", "IPv4", one["id"]), ("ingress", "IPv6", one["id"])),
        ],
        key=str,
    )
    assert default(url, auth.OTHER)["id"] != one["id"]
    door = f"{url}/security-groups/{one['id']}"
    assert refusal(call(door, "DELETE")) == (409, "SecurityGroupCannotRemoveDefault")
    renamed = call(door, "PUT", {"security_group": {"name": "mine"}})
    assert refusal(renamed) == (409, "SecurityGroupCannotUpdateDefault")
    for method, path in (("POST", f"{url}/security-groups"), ("PUT", door)):
        again = call(path, method, {"security_group": {"name": "Default"}})
        assert refusal(again) == (409, "SecurityGroupDefaultAlreadyExists")
    described = call(door, "PUT", {"security_group": {"description": "ours"}})
    assert described.json()["security_group"]["description"] == "ours"
    # An administrator looks at another project, who need not be one of its.
    call(f"{url}/security-groups?project_id=third", token=auth.ADMIN)
    call(f"{url}/security-groups?project_id=fourth", token=auth.MEMBER)
    call(f"{url}/security-groups?project_id={'x' * 300}", token=auth.ADMIN)
    projects = {row.project_id for row in world.rows(schema.security_groups)}
    assert projects == {"demo", "other", "third"}


def test_a_group_comes_changes_and_goes(url: str, world: World) -> None:
    one = group(url, name="web", description="of the web", stateful=True)
    door = f"{url}/security-groups/{one['id']}"
    assert call(door).json()["security_group"] == one
    said = [(each["direction"], each["ethertype"]) for each in one["security_group_rules"]]
    assert sorted(said) == [("egress", "IPv4"), ("egress", "IPv6")]
    other = group(url, name="db")
    made = rule(url, other["id"], remote_group_id=one["id"]).json()["security_group_rule"]
    changed = call(door, "PUT", {"security_group": {"name": "front"}}).json()["security_group"]
    assert (changed["name"], changed["description"]) == ("front", "of the web")
    assert call(f"{door}/tags", "PUT", {"tags": ["a", "b"]}).json() == {"tags": ["a", "b"]}
    listed = call(f"{url}/security-groups?tags=a&fields=name").json()["security_groups"]
    assert listed == [{"name": "front"}]
    assert call(door, "DELETE").status_code == 204
    assert refusal(call(door)) == (404, "SecurityGroupNotFound")
    # The rules that name it go with it.
    gone = call(f"{url}/security-group-rules/{made['id']}")
    assert refusal(gone) == (404, "SecurityGroupRuleNotFound")
    answer = call(f"{url}/security-groups", "POST", {"security_groups": [{}, {"name": "x"}]})
    assert [each["name"] for each in answer.json()["security_groups"]] == ["", "x"]
    asked: list[Any] = [{"stateful": "x"}, {"name": None}, {"description": 3}, {"id": NOBODY}]
    for body in (*asked, {"colour": "red"}, {"name": "x" * 256}, {"project_id": "other"}):
        answer = call(f"{url}/security-groups", "POST", {"security_group": body})
        assert answer.status_code == 400, body
    assert (
        call(f"{url}/security-groups", "POST", {"security_group": {}}, auth.READER).status_code
        == 403
    )
    assert len(world.rows(schema.security_groups)) == 4


def test_lists_have_filters_an_order_and_pages(url: str) -> None:
    for name in ("c", "a", "b"):
        group(url, name=name)
    base = f"{url}/security-groups?sort_key=name&sort_dir=desc"
    names = [each["name"] for each in call(base).json()["security_groups"]]
    assert names == ["default", "c", "b", "a"]
    page = call(f"{base}&limit=2").json()
    assert [each["name"] for each in page["security_groups"]] == ["default", "c"]
    following = call(page["security_groups_links"][0]["href"]).json()["security_groups"]
    assert [each["name"] for each in following] == ["b", "a"]
    assert call(f"{url}/security-groups?shared=true").json() == {"security_groups": []}
    assert len(call(f"{url}/security-groups?shared=false").json()["security_groups"]) == 4
    assert call(f"{url}/security-groups?colour=red").status_code == 400
    for order in ("protocol", "port_range_min", "remote_group_id", "normalized_cidr"):
        query = f"{url}/security-group-rules?sort_key={order}&sort_dir=asc&limit=2"
        assert len(call(query).json()["security_group_rules"]) == 2
    ingress = call(f"{url}/security-group-rules?direction=ingress&ethertype=IPv6").json()
    assert len(ingress["security_group_rules"]) == 1
    own = call(f"{url}/security-group-rules?remote_group_id={default(url)['id']}").json()
    assert len(own["security_group_rules"]) == 2
    absent = call(f"{url}/security-groups?limit=1&marker={NOBODY}")
    assert refusal(absent) == (404, "SecurityGroupNotFound")


def test_rules(url: str, world: World) -> None:
    group_id = group(url, name="web")["id"]
    answer = rule(
        url,
        group_id,
        protocol="tcp",
        port_range_min=22,
        port_range_max="22",
        remote_ip_prefix="10.0.0.7/24",
        description="ssh",
        remote_address_group_id=None,
    )
    made = answer.json()["security_group_rule"]
    assert made == {
        "id": made["id"],
        "security_group_id": group_id,
        "project_id": "demo",
        "tenant_id": "demo",
        "direction": "ingress",
        "ethertype": "IPv4",
        "protocol": "tcp",
        "port_range_min": 22,
        "port_range_max": 22,
        "remote_ip_prefix": "10.0.0.7/24",
        "normalized_cidr": "10.0.0.0/24",
        "remote_group_id": None,
        "remote_address_group_id": None,
        "description": "ssh",
        "created_at": made["created_at"],
        "updated_at": made["created_at"],
        "revision_number": 0,
    }
    door = f"{url}/security-group-rules/{made['id']}"
    assert call(door).json()["security_group_rule"] == made
    shown = call(f"{url}/security-groups/{group_id}").json()["security_group"]
    assert made in shown["security_group_rules"]
    same = {**made, "protocol": "6", "description": "again"}
    asked = {name: same[name] for name in ("protocol", "port_range_min", "port_range_max")}
    asked["remote_ip_prefix"] = "10.0.0.7/24"
    again = rule(url, group_id, **asked)
    assert refusal(again) == (409, "SecurityGroupRuleExists")
    assert again.json()["NeutronError"]["message"] == (
        f"Security group rule already exists. Rule id is {made['id']}."
    )
    twice = {"security_group_id": group_id, "direction": "egress", "protocol": "udp"}
    many = f"{url}/security-group-rules"
    answer = call(many, "POST", {"security_group_rules": [twice, twice]})
    assert refusal(answer) == (409, "DuplicateSecurityGroupRuleInPost")
    others = twice | {"security_group_id": default(url)["id"]}
    answer = call(many, "POST", {"security_group_rules": [twice, others]})
    assert refusal(answer) == (400, "SecurityGroupNotSingleGroupRules")
    answer = call(many, "POST", {"security_group_rules": [twice, twice | {"protocol": "gre"}]})
    assert [each["protocol"] for each in answer.json()["security_group_rules"]] == ["udp", "gre"]
    for body in ({"direction": "x"}, {"direction": None}, {"port_range_min": 22}, {"x": 1}):
        assert rule(url, group_id, **body).status_code == 400
    assert rule(url, group_id, remote_group_id="x").status_code == 400
    assert call(door, "PUT", {"security_group_rule": {"protocol": "udp"}}).status_code == 400
    assert call(door, "DELETE").status_code == 204
    assert refusal(call(door, "DELETE")) == (404, "SecurityGroupRuleNotFound")
    assert rule(url, group_id, **asked).status_code == 201
    assert len(world.rows(schema.security_group_rules)) == 4 + 2 + 3


def test_a_project_sees_and_uses_its_own_alone(url: str) -> None:
    one = group(url, name="web")
    rule_id = one["security_group_rules"][0]["id"]
    for path in (f"security-groups/{one['id']}", f"security-group-rules/{rule_id}"):
        for method, body in (("GET", None), ("DELETE", None), ("PUT", {"security_group": {}})):
            answer = call(f"{url}/{path}", method, body, auth.OTHER)
            assert answer.status_code == 404, (path, method)
        assert call(f"{url}/{path}", "DELETE", token=auth.READER).status_code == 403
    assert (
        call(f"{url}/security-groups/{one['id']}/tags/x", "PUT", None, auth.OTHER).status_code
        == 404
    )
    names = {
        each["name"]
        for each in call(f"{url}/security-groups", token=auth.OTHER).json()["security_groups"]
    }
    assert names == {"default"}
    assert refusal(rule(url, one["id"], auth.OTHER)) == (404, "SecurityGroupNotFound")
    theirs = default(url, auth.OTHER)["id"]
    named = rule(url, theirs, auth.OTHER, remote_group_id=one["id"])
    assert refusal(named) == (404, "SecurityGroupNotFound")
    answer = port(url, auth.OTHER, security_groups=[one["id"]])
    assert refusal(answer) == (404, "SecurityGroupNotFound")
    made = port(url, auth.OTHER).json()["port"]
    body = {"port": {"security_groups": [one["id"]]}}
    answer = call(f"{url}/ports/{made['id']}", "PUT", body, auth.OTHER)
    assert refusal(answer) == (404, "SecurityGroupNotFound")
    assert call(f"{url}/ports/{made['id']}", token=auth.OTHER).json()["port"] == made
    assert (
        rule(url, one["id"], auth.ADMIN, protocol="tcp").json()["security_group_rule"][
            "project_id"
        ]
        == "demo"
    )


def test_the_groups_of_ports(url: str, world: World) -> None:
    one, other = (group(url, name=name)["id"] for name in ("a", "b"))
    made = port(url).json()["port"]
    assert made["security_groups"] == [default(url)["id"]]
    door = f"{url}/ports/{made['id']}"
    both = call(door, "PUT", {"port": {"security_groups": [other, one]}}).json()["port"]
    assert both["security_groups"] == sorted([one, other])
    found = call(f"{url}/ports?security_groups={one}").json()["ports"]
    assert [each["id"] for each in found] == [made["id"]]
    assert call(f"{url}/ports?sort_key=security_groups&sort_dir=asc").status_code == 400
    used = call(f"{url}/security-groups/{one}", "DELETE")
    assert refusal(used) == (409, "SecurityGroupInUse")
    assert refusal(port(url, security_groups=[NOBODY])) == (404, "SecurityGroupNotFound")
    assert call(door, "PUT", {"port": {"name": "x"}}).json()["port"]["security_groups"] != []
    refused = call(door, "PUT", {"port": {"port_security_enabled": False}})
    assert refusal(refused) == (409, "PortSecurityPortHasSecurityGroup")
    both = {"port_security_enabled": False, "security_groups": [one]}
    assert refusal(port(url, **both)) == (400, "PortSecurityAndIPRequiredForSecurityGroups")
    answer = call(door, "PUT", {"port": {"port_security_enabled": False, "security_groups": []}})
    assert answer.json()["port"]["security_groups"] == []
    assert port(url, port_security_enabled=False).json()["port"]["security_groups"] == []
    assert port(url, security_groups=[]).json()["port"]["security_groups"] == []
    kept = port(url, security_groups=[one]).json()["port"]
    assert call(f"{url}/ports/{kept['id']}", "DELETE").status_code == 204
    assert call(f"{url}/security-groups/{one}", "DELETE").status_code == 204
    assert world.rows(schema.port_security_groups) == []


def test_where_ports_are_filtered(url: str, filtered_url: str, world: World) -> None:
    # Made before it was so.
    old = port(url).json()["port"]
    world.conductor.cloud.conf.set_override("firewall", "on", group="networks")
    made = port(filtered_url).json()["port"]
    assert (made["port_security_enabled"], old["port_security_enabled"]) == (True, False)
    network = call(f"{filtered_url}/networks/{VMBR0}").json()["network"]
    assert network["port_security_enabled"] is True
    for value, expected in (("true", made), ("false", old)):
        found = call(f"{filtered_url}/ports?port_security_enabled={value}").json()["ports"]
        assert [each["id"] for each in found] == [expected["id"]]
    assert call(f"{url}/ports/{made['id']}").json()["port"]["port_security_enabled"] is False
    assert port(filtered_url, port_security_enabled=False).status_code == 403
    asked = {"port_security_enabled": False, "project_id": "demo"}
    off = port(filtered_url, auth.ADMIN, **asked).json()["port"]
    assert (off["port_security_enabled"], off["security_groups"]) == (False, [])
    door, groups = f"{filtered_url}/ports/{old['id']}", old["security_groups"]
    body: dict[str, Any] = {"port": {"security_groups": groups}}
    refused = call(door, "PUT", body)
    assert refusal(refused) == (400, "PortSecurityAndIPRequiredForSecurityGroups")
    body["port"]["port_security_enabled"] = True
    on = call(door, "PUT", body, auth.ADMIN).json()["port"]
    assert (on["port_security_enabled"], on["security_groups"]) == (True, groups)


def test_more_addresses_of_ports(url: str) -> None:
    pairs = [{"ip_address": "10.9.0.1"}, {"ip_address": "10.8.0.0/16"}]
    assert port(url, allowed_address_pairs=pairs).status_code == 403
    made = port(url, auth.ADMIN, allowed_address_pairs=pairs).json()["port"]
    mac = made["mac_address"]
    assert made["allowed_address_pairs"] == [{**one, "mac_address": mac} for one in pairs]
    door = f"{url}/ports/{made['id']}"
    for asked, kind in (
        ([{}], "AllowedAddressPairsMissingIP"),
        ([pairs[0], pairs[0]], "DuplicateAddressPairInRequest"),
        ([{"ip_address": f"10.9.0.{n}"} for n in range(11)], "AllowedAddressPairExhausted"),
    ):
        body = {"port": {"allowed_address_pairs": asked}}
        assert refusal(call(door, "PUT", body, auth.ADMIN)) == (400, kind)
    off = {"port_security_enabled": False, "security_groups": []}
    answer = call(door, "PUT", {"port": off}, auth.ADMIN)
    assert refusal(answer) == (409, "AddressPairAndPortSecurityRequired")
    virtual = [{"ip_address": "10.9.0.1", "mac_address": "00:00:5e:00:01:07"}, pairs[1]]
    body = {"port": {"allowed_address_pairs": virtual}}
    shown = call(door, "PUT", body, auth.ADMIN).json()["port"]["allowed_address_pairs"]
    assert shown == [virtual[0], {**pairs[1], "mac_address": mac}]
    body = {"port": {"allowed_address_pairs": []}}
    none = call(door, "PUT", body, auth.ADMIN).json()["port"]
    assert none["allowed_address_pairs"] == []


def test_quotas(url: str, world: World) -> None:
    limits = world.conductor.cloud.conf
    limits.set_override("security_groups", 2, group="quota")
    group(url, name="a")
    over = call(f"{url}/security-groups", "POST", {"security_group": {"name": "b"}})
    assert refusal(over) == (409, "OverQuota")
    details = call(f"{url}/quotas/demo/details", token=auth.READER).json()["quota"]
    assert details["security_group"]["used"] == 2
    assert details["security_group_rule"] == {"limit": 100, "used": 6, "reserved": 0}
    limits.set_override("security_group_rules", 6, group="quota")
    assert refusal(rule(url, default(url)["id"], protocol="tcp")) == (409, "OverQuota")


def test_lists_take_as_few_statements_as_one(url: str, world: World) -> None:
    for name in "abc":
        group(url, name=name)
    reader = engine.reader(world.url)
    unused: Any = SimpleNamespace()
    app = make_app(a_conf(), reader, auth.header_auth, unused)
    with served(app) as root, counted(reader) as statements:
        call(f"{root}/v2.0/security-groups")
        call(f"{root}/v2.0/security-group-rules")
    assert statements() == 5
    reader.dispose()
