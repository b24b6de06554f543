"""Ports that users make, over HTTP: Neutron's answers, and its refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from api.network.app import make_app
from common import ids
from conductor.endpoints.networks.ports import PortEndpoint
from conductor.store.networks import networks
from db import engine, schema
from tests.fixtures import auth
from tests.fixtures.listings import a_conf, mounted, served
from tests.functional.conductor.harness import World
from web.queries import MOST_VALUES

VMBR0, VMBR1 = (ids.named("network", name) for name in ("vmbr0", "vmbr1"))
SUBNET = ids.named("subnet", "vmbr0/10.0.0.0/24")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    subnet = networks.parse_subnet("vmbr0=10.0.0.0/24;pool=10.0.0.10-10.0.0.99")
    made.conductor.store.run(lambda c: networks.ensure_subnet(c, subnet))
    yield made
    made.close()


@pytest.fixture
def url(world: World) -> Iterator[str]:
    conductor: Any = PortEndpoint(world.conductor.cloud, world.conductor.runner)
    reader = engine.reader(world.url)
    app = make_app(a_conf(), reader, auth.header_auth, conductor)
    with served(mounted(app, "/network")) as root:
        yield f"{root}/network/v2.0/ports"
    reader.dispose()


def call(
    url: str, method: str = "GET", body: Any = None, token: str = auth.MEMBER
) -> requests.Response:
    return requests.request(method, url, json=body, headers={"X-Auth-Token": token}, timeout=60)


def made(url: str, token: str = auth.MEMBER, **asked: Any) -> dict[str, Any]:
    answer = call(url, "POST", {"port": {"network_id": VMBR0, **asked}}, token)
    assert answer.status_code == 201, answer.text
    port: dict[str, Any] = answer.json()["port"]
    return port


def test_a_port_comes_changes_and_goes(url: str, world: World) -> None:
    port = made(url, name="front", description="of the web", admin_state_up=True)
    assert port == call(f"{url}/{port['id']}").json()["port"]
    assert (port["name"], port["description"]) == ("front", "of the web")
    assert port["fixed_ips"] == [{"subnet_id": SUBNET, "ip_address": "10.0.0.10"}]
    assert (port["device_id"], port["device_owner"], port["status"]) == ("", "", "DOWN")
    assert (port["project_id"], port["tenant_id"]) == ("demo", "demo")
    changes = {"name": "back", "fixed_ips": [{"ip_address": "10.0.0.20"}]}
    answer = call(f"{url}/{port['id']}", "PUT", {"port": changes})
    assert answer.status_code == 200
    changed = answer.json()["port"]
    assert (changed["name"], changed["description"]) == ("back", "of the web")
    assert changed["fixed_ips"] == [{"subnet_id": SUBNET, "ip_address": "10.0.0.20"}]
    assert (changed["created_at"], changed["mac_address"]) == (
        port["created_at"],
        port["mac_address"],
    )
    assert [one["id"] for one in call(f"{url}?name=back").json()["ports"]] == [port["id"]]
    assert call(f"{url}?name=front").json()["ports"] == []
    assert call(f"{url}/{port['id']}", "DELETE").status_code == 204
    assert call(f"{url}/{port['id']}").status_code == 404
    assert world.rows(schema.ports) == []


def test_many_at_once(url: str, world: World) -> None:
    items = [{"network_id": VMBR0, "name": "a"}, {"port": {"network_id": VMBR1, "name": "b"}}]
    answer = call(url, "POST", {"ports": items})
    assert answer.status_code == 201
    assert [one["name"] for one in answer.json()["ports"]] == ["a", "b"]
    items[0]["fixed_ips"] = [{"ip_address": "10.0.0.10"}]
    assert call(url, "POST", {"ports": items[::-1]}).status_code == 409
    assert len(world.rows(schema.ports)) == 2


INVALID = {
    "name": ["x" * 256, None, 3, {}],
    "description": ["x" * 256, []],
    "network_id": ["", "x", None, 7, VMBR0 + "0"],
    "mac_address": ["", "x", 12, "01:00:5e:00:00:01", "00:00:00:00:00:00", "fa:16:3e:00:00:1"],
    "tags": ["x", [1], ["x" * 256], ["a", "a"], None],
    "fixed_ips": [
        *("x", {}, [{}], [3], [{"ip_address": "x"}], [{"ip_address": "fe80::1%eth0"}]),
        *([{"subnet_id": "x"}], [{"ip_address": "10.0.0.10", "more": 1}]),
        [{"ip_address": "10.0.0.11"}, {"ip_address": "10.0.0.11"}],
    ],
    "admin_state_up": ["maybe", None, {}],
    "binding:host_id": [3, {}, "x" * 256],
    "device_id": ["some", 3],
    "device_owner": ["network:dhcp"],
    "security_groups": ["x", 3, [3], ["x"], [SUBNET, SUBNET]],
    "allowed_address_pairs": [
        *([3], [{"ip_address": "x"}], [{"ip_address": "10.0.0.1/24"}], [{"ip_address": 3}]),
        *([{"ip_address": "ff02::1"}], [{"ip_address": "10.0.0.1", "mac_address": "x"}]),
    ],
    "port_security_enabled": [True, "x"],
    "binding:vnic_type": ["direct", None],
    "binding:profile": [{"a": 1}],
}


@pytest.mark.parametrize("name", INVALID)
def test_values_that_a_port_can_not_have(url: str, world: World, name: str) -> None:
    port_id = made(url)["id"]
    for value in INVALID[name]:
        body = {"port": {"network_id": VMBR0, name: value}}
        answer = call(url, "POST", body, auth.ADMIN)
        assert answer.status_code == 400, (value, answer.text)
        error = answer.json()["NeutronError"]
        assert error["message"].startswith(f"Invalid input for {name}. Reason: "), value
        assert error["type"] == "HTTPBadRequest"
        if name not in ("network_id", "tags"):
            answer = call(f"{url}/{port_id}", "PUT", {"port": {name: value}}, auth.ADMIN)
            assert answer.status_code == 400, (value, answer.text)
    assert len(world.rows(schema.ports)) == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "Resource body required"),
        ([1], "Body contains invalid data"),
        ("text", "Body contains invalid data"),
        ({"network": {}}, "Unable to find 'port' in request body"),
        ({"port": []}, "Object 'port' contains invalid data"),
        ({"ports": []}, "Resources required"),
        ({"ports": {"a": 1}}, "Body contains invalid data"),
        ({"ports": [[]]}, "Object 'port' contains invalid data"),
        ({"port": {"network_id": VMBR0, "colour": "red"}}, "Unrecognized attribute(s) 'colour'"),
        (
            {"port": {"name": "x"}},
            "Failed to parse request. Required attribute 'network_id' not specified",
        ),
        ({"port": {"network_id": VMBR0, "id": SUBNET}}, "Attribute 'id' not allowed in POST"),
        (
            {"port": {"network_id": VMBR0, "project_id": "other"}},
            "Specifying 'project_id' or 'tenant_id' other than the authenticated project in "
            "request requires admin privileges",
        ),
    ],
)
def test_bodies_that_are_refused(url: str, world: World, body: Any, message: str) -> None:
    answer = call(url, "POST", body)
    assert (answer.status_code, answer.json()["NeutronError"]["message"]) == (400, message)
    assert world.rows(schema.ports) == []


def test_no_json_is_refused(url: str) -> None:
    headers = {"X-Auth-Token": auth.MEMBER, "Content-Type": "application/json"}
    for data in (b"", b"{", b"\xff", b"[" * 5000):
        answer = requests.post(url, data=data, headers=headers, timeout=60)
        assert answer.status_code == 400
    large = b'{"port": {"name": "' + b"x" * 200_000 + b'"}}'
    assert requests.post(url, data=large, headers=headers, timeout=60).status_code == 413


def test_updates_that_are_refused(url: str) -> None:
    door = f"{url}/{made(url)['id']}"
    for name in ("network_id", "id", "project_id", "status", "tags"):
        answer = call(door, "PUT", {"port": {name: VMBR1}})
        assert answer.status_code == 400
        message = answer.json()["NeutronError"]["message"]
        assert message == f"Cannot update read-only attribute {name}"
    assert call(door, "PUT", {"port": {"colour": 1}}).status_code == 400
    assert call(door, "PUT", None).status_code == 400


@pytest.mark.parametrize(
    ("asked", "status", "kind"),
    [
        ({"network_id": SUBNET}, 404, "NetworkNotFound"),
        ({"fixed_ips": [{"subnet_id": VMBR0}]}, 404, "SubnetNotFound"),
        ({"network_id": VMBR1, "fixed_ips": [{"subnet_id": SUBNET}]}, 400, "InvalidInput"),
        ({"fixed_ips": [{"ip_address": "10.0.0.10"}]}, 409, "IpAddressAlreadyAllocated"),
        ({"fixed_ips": [{"ip_address": "10.0.0.1"}]}, 409, "IpAddressAlreadyAllocated"),
        ({"fixed_ips": [{"ip_address": "10.0.1.1"}]}, 400, "InvalidIpForNetwork"),
        (
            {"fixed_ips": [{"ip_address": "10.0.1.1", "subnet_id": SUBNET}]},
            *(400, "InvalidIpForSubnet"),
        ),
        ({"fixed_ips": [{"ip_address": "10.0.0.100"}]}, 403, "PolicyNotAuthorized"),
        ({"mac_address": "fa:16:3e:00:00:01"}, 403, "PolicyNotAuthorized"),
    ],
)
def test_what_can_not_be_had(
    url: str, world: World, asked: dict[str, Any], status: int, kind: str
) -> None:
    made(url)
    answer = call(url, "POST", {"port": {"network_id": VMBR0, **asked}})
    assert (answer.status_code, answer.json()["NeutronError"]["type"]) == (status, kind)
    assert len(world.rows(schema.ports)) == 1


def test_an_administrator_chooses_freely(url: str) -> None:
    asked = {"mac_address": "FA-16-3E-00-00-01", "fixed_ips": [{"ip_address": "10.0.0.100"}]}
    port = made(url, auth.ADMIN, project_id="demo", **asked)
    assert (port["mac_address"], port["project_id"]) == ("fa:16:3e:00:00:01", "demo")
    assert port["fixed_ips"][0]["ip_address"] == "10.0.0.100"
    again = call(url, "POST", {"port": {"network_id": VMBR0, **asked}}, auth.ADMIN)
    assert again.status_code == 409


def test_tags(url: str) -> None:
    port = made(url, tags=["web", "a b"])
    assert port["tags"] == ["a b", "web"]
    door = f"{url}/{port['id']}/tags"
    assert call(door).json() == {"tags": ["a b", "web"]}
    assert call(f"{door}/web").status_code == 204
    assert call(f"{door}/Web").status_code == 404
    assert call(f"{door}/new", "PUT").status_code == 201
    assert call(f"{door}/new", "PUT").status_code == 201
    assert call(f"{door}/web", "DELETE").status_code == 204
    gone = call(f"{door}/web", "DELETE")
    assert (gone.status_code, gone.json()["NeutronError"]["type"]) == (404, "TagNotFound")
    shown = call(f"{url}/{port['id']}").json()["port"]
    assert shown["tags"] == ["a b", "new"]
    assert shown["updated_at"] >= shown["created_at"]
    answer = call(door, "PUT", {"tags": ["x", "y"]})
    assert (answer.status_code, answer.json()) == (200, {"tags": ["x", "y"]})
    assert call(door, "DELETE").status_code == 204
    assert call(door).json() == {"tags": []}


def test_lists_by_tags(url: str) -> None:
    tagged = {name: made(url, name=name, tags=list(name))["id"] for name in ("a", "ab", "b")}
    bare = made(url, name="bare")["id"]

    def names(query: str) -> str:
        found = {each["id"] for each in call(f"{url}?{query}").json()["ports"]}
        known = {**tagged, "bare": bare}
        return " ".join(sorted(name for name, one in known.items() if one in found))

    assert names("tags=a,b") == "ab"
    assert names("tags=a") == "a ab"
    assert names("tags-any=a,b") == "a ab b"
    assert names("not-tags=a,b") == "a b bare"
    assert names("not-tags-any=a,b") == "bare"
    assert names("tags=a&not-tags=b") == "a"
    # More than a record can have.
    many = ",".join(f"t{number}" for number in range(MOST_VALUES - 1))
    assert names(f"tags={many}") == ""
    assert names(f"not-tags={many}&tags=a") == names("tags=a")
    assert names("tags=" + ",".join(["a"] * MOST_VALUES)) == names("tags=a")
    for name in ("tags", "tags-any", "not-tags", "not-tags-any"):
        assert call(f"{url}?{name}={many}").status_code == 200
        refused = call(f"{url}?{name}={many},a,b")
        assert refused.status_code == 400, refused.text
        assert f"has {MOST_VALUES + 1} values" in refused.json()["NeutronError"]["message"]
    assert names("tags=A") == ""


@pytest.mark.parametrize("kind", ["networks", "subnets"])
def test_what_belongs_to_no_project_is_tagged_by_administrators(url: str, kind: str) -> None:
    base = f"{url.removesuffix('/ports')}/{kind}"
    record = call(base).json()[kind][0]
    door = f"{base}/{record['id']}/tags"
    assert call(door, "PUT", {"tags": ["blue"]}).status_code == 403
    assert call(f"{door}/blue", "DELETE").status_code == 403
    assert call(door, "PUT", {"tags": ["blue"]}, auth.ADMIN).status_code == 200
    assert [each["id"] for each in call(f"{base}?tags=blue").json()[kind]] == [record["id"]]
    assert call(f"{base}?tags=red").json() == {kind: []}
    assert call(f"{base}/{record['id']}").json()[kind[:-1]]["tags"] == ["blue"]
    assert call(f"{base}/{SUBNET[:-1]}x/tags").status_code == 404


def test_tags_that_are_refused(url: str) -> None:
    door = f"{url}/{made(url)['id']}/tags"
    bodies = [{}, [], {"tags": None}, {"tags": "a"}, {"tags": [1]}, {"tags": ["x" * 256]}]
    bodies.append({"tags": ["a", "a"]})
    for body in bodies:
        answer = call(door, "PUT", body)
        assert (answer.status_code, answer.json()["NeutronError"]["type"]) == (
            *(400, "InvalidInput"),
        ), body
    assert call(f"{door}/{'x' * 256}", "PUT").status_code == 400
    many = [str(number) for number in range(51)]
    for answer in (
        call(door, "PUT", {"tags": many}),
        call(url, "POST", {"port": {"network_id": VMBR0, "tags": many}}),
    ):
        assert answer.status_code == 400
        assert "exceed the per-resource limit of 50" in answer.text
    assert call(door, "PUT", {"tags": many[:50]}).status_code == 200
    assert call(f"{door}/more", "PUT").status_code == 400
    assert call(door, "PUT", {"tags": ["a"]}, auth.READER).status_code == 403
    assert call(door, "PUT", {"tags": ["a"]}, auth.OTHER).status_code == 404
    assert len(call(door).json()["tags"]) == 50


@pytest.mark.parametrize("token", [auth.ADMIN, auth.SERVICE])
def test_ports_of_all_projects_are_an_administrators(url: str, token: str) -> None:
    door = f"{url}/{made(url)['id']}"
    assert call(door, "PUT", {"port": {"name": "ours"}}, token).status_code == 200
    assert call(door).json()["port"]["name"] == "ours"
    assert call(door, "DELETE", token=token).status_code == 204
    assert call(door).status_code == 404


def test_ports_of_others_and_readers(url: str) -> None:
    door = f"{url}/{made(url)['id']}"
    body = {"port": {"name": "stolen"}}
    assert call(door, "PUT", body, auth.OTHER).status_code == 404
    assert call(door, "DELETE", token=auth.OTHER).status_code == 404
    assert call(door, token=auth.OTHER).status_code == 404
    assert call(door, "PUT", body, auth.READER).status_code == 403
    assert call(door, "DELETE", token=auth.READER).status_code == 403
    created = call(url, "POST", {"port": {"network_id": VMBR0}}, auth.READER)
    assert created.status_code == 403
    assert call(door).json()["port"]["name"] == ""


def test_several_addresses_of_a_family(url: str) -> None:
    asked = [{"ip_address": "10.0.0.20"}, {"subnet_id": SUBNET}, {"ip_address": "10.0.0.30"}]
    port = made(url, fixed_ips=asked)
    addresses = [one["ip_address"] for one in port["fixed_ips"]]
    assert addresses == ["10.0.0.20", "10.0.0.10", "10.0.0.30"]
    assert {one["subnet_id"] for one in port["fixed_ips"]} == {SUBNET}
    for query in (
        *(f"fixed_ips=ip_address={address}" for address in addresses),
        "fixed_ips=ip_address_substr=0.30",
        f"fixed_ips=subnet_id={SUBNET}",
    ):
        found = call(f"{url}?{query}").json()["ports"]
        assert [one["id"] for one in found] == [port["id"]], query
    assert call(f"{url}?fixed_ips=ip_address=10.0.0.31").json()["ports"] == []
    again = call(url, "POST", {"port": {"network_id": VMBR0, "fixed_ips": asked[2:]}})
    assert again.status_code == 409
    body = {"port": {"fixed_ips": [{"ip_address": "10.0.0.30"}, {"ip_address": "10.0.0.40"}]}}
    changed = call(f"{url}/{port['id']}", "PUT", body).json()["port"]
    addresses = [one["ip_address"] for one in changed["fixed_ips"]]
    assert addresses == ["10.0.0.30", "10.0.0.40"]
    many = [{"ip_address": f"10.0.0.{number}"} for number in range(50, 56)]
    answer = call(url, "POST", {"port": {"network_id": VMBR0, "fixed_ips": many}})
    assert answer.status_code == 400
    assert "Exceeded maximum amount of fixed ips" in answer.text
