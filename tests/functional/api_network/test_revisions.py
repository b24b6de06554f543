"""Revisions, switches and defaults of networks and ports, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from api.network.app import make_app
from common import ids
from db import engine, schema
from tests.fixtures import auth
from tests.fixtures.listings import a_conf, mounted, served
from tests.functional.api_network.test_quotas import Conductor
from tests.functional.conductor.harness import World

VMBR0 = ids.named("network", "vmbr0")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    conf = made.conductor.cloud.conf
    conf.set_override("tenant_vlans", ["vmbr1:1000-1020"], group="networks")
    conf.set_override("firewall", "on", group="networks")
    yield made
    made.close()


@pytest.fixture
def url(world: World) -> Iterator[str]:
    reader, conf = engine.reader(world.url), a_conf()
    conductor: Any = Conductor(world)
    app = make_app(conf, reader, auth.header_auth, conductor)
    conf.set_override("firewall", "on", group="networks")
    with served(mounted(app, "/network")) as root:
        yield f"{root}/network/v2.0"
    reader.dispose()


def call(
    url: str, method: str = "GET", body: Any = None, token: str = auth.MEMBER, match: str = ""
) -> requests.Response:
    headers = {"X-Auth-Token": token} | ({"If-Match": match} if match else {})
    return requests.request(method, url, json=body, headers=headers, timeout=60)


def make(url: str, kind: str, token: str = auth.MEMBER, **asked: Any) -> Any:
    path = kind.replace("_", "-")
    answer = call(f"{url}/{path}s", "POST", {kind: asked}, token)
    assert answer.status_code == 201, answer.text
    return answer.json()[kind]


def put(url: str, kind: str, one: str, token: str = auth.MEMBER, **asked: Any) -> Any:
    answer = call(f"{url}/{kind.replace('_', '-')}s/{one}", "PUT", {kind: asked}, token)
    assert answer.status_code == 200, answer.text
    return answer.json()[kind]


def fault(answer: requests.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["NeutronError"]["type"]


def revision(url: str, kind: str, one: str) -> int:
    answer = call(f"{url}/{kind.replace('_', '-')}s/{one}", token=auth.ADMIN)
    return int(answer.json()[kind]["revision_number"])


def test_each_change_has_a_revision(url: str) -> None:
    network = make(url, "network", name="a")["id"]
    subnet = make(url, "subnet", network_id=network, cidr="10.9.0.0/24", ip_version=4)["id"]
    port = make(url, "port", network_id=network)["id"]
    group = make(url, "security_group", name="g")["id"]
    for kind, one in (
        ("network", network),
        ("subnet", subnet),
        ("port", port),
        ("security_group", group),
    ):
        before = revision(url, kind, one)
        changed = put(url, kind, one, name="other")
        assert changed["revision_number"] == before + 1
        assert changed["updated_at"] >= changed["created_at"]
        tags = f"{url}/{kind.replace('_', '-')}s/{one}/tags/t"
        assert call(tags, "PUT").status_code == 201
        assert revision(url, kind, one) == before + 2
        found = call(f"{url}/{kind.replace('_', '-')}s?revision_number={before + 2}").json()
        assert one in {each["id"] for each in next(iter(found.values()))}
    # What belongs to a record changes it, too.
    before = revision(url, "network", network)
    put(url, "subnet", subnet, description="x")
    assert revision(url, "network", network) == before + 1
    before = revision(url, "security_group", group)
    rule = make(url, "security_group_rule", security_group_id=group, direction="ingress")
    assert rule["revision_number"] == 0
    assert revision(url, "security_group", group) == before + 1
    call(f"{url}/security-group-rules/{rule['id']}", "DELETE")
    assert revision(url, "security_group", group) == before + 2


def test_a_change_of_one_revision_alone(url: str, world: World) -> None:
    network = make(url, "network", name="a")["id"]
    subnet = make(url, "subnet", network_id=network, cidr="10.9.0.0/24", ip_version=4)["id"]
    port = make(url, "port", network_id=network)["id"]
    group = make(url, "security_group", name="g")["id"]
    for kind, one in (
        ("port", port),
        ("subnet", subnet),
        ("network", network),
        ("security_group", group),
    ):
        door = f"{url}/{kind.replace('_', '-')}s/{one}"
        now = revision(url, kind, one)
        old, current = f"revision_number={now - 1}", f'"revision_number={now}"'
        body = {kind: {"name": "changed"}}
        for method in ("PUT", "DELETE"):
            answer = call(door, method, body, match=old)
            assert fault(answer) == (412, "RevisionNumberConstraintFailed")
            message = answer.json()["NeutronError"]["message"]
            assert message == f"Constrained to {now - 1}, but current revision is {now}"
        assert revision(url, kind, one) == now
        assert call(door, "PUT", body, match=current).status_code == 200
        assert fault(call(door, "PUT", body, match=current))[0] == 412
        for wrong in ("revision_number=x", "revision_number=1, revision_number=2"):
            assert fault(call(door, "PUT", body, match=wrong)) == (400, "BadRequest")
        assert call(door, "PUT", body, match='"something"').status_code == 200
        last = f"revision_number={revision(url, kind, one)}"
        assert call(door, "DELETE", match=last).status_code == 204
    assert world.rows(schema.ports) == []


def test_a_network_and_its_ports_are_switched_off(url: str, world: World) -> None:
    network = make(url, "network", admin_state_up=False)
    assert network["admin_state_up"] is False
    on = put(url, "network", network["id"], admin_state_up=True)
    assert on["admin_state_up"] is True
    port = make(url, "port", network_id=VMBR0, admin_state_up=False)
    assert (port["admin_state_up"], port["status"]) == (False, "DOWN")
    found = call(f"{url}/ports?admin_state_up=false").json()["ports"]
    assert [one["id"] for one in found] == [port["id"]]
    assert put(url, "port", port["id"], admin_state_up=True)["admin_state_up"] is True
    assert (
        fault(call(f"{url}/networks/{VMBR0}", "PUT", {"network": {"admin_state_up": False}}))[0]
        == 403
    )


def test_whether_new_ports_are_filtered(url: str) -> None:
    network = make(url, "network", port_security_enabled=False)
    assert network["port_security_enabled"] is False
    made = make(url, "port", network_id=network["id"])
    assert (made["port_security_enabled"], made["security_groups"]) == (False, [])
    put(url, "network", network["id"], port_security_enabled=True)
    made = make(url, "port", network_id=network["id"])
    assert made["port_security_enabled"] is True
    assert len(made["security_groups"]) == 1


def test_one_external_network_is_the_default(url: str, world: World) -> None:
    asked = {"router:external": True, "is_default": True}
    answer = call(f"{url}/networks", "POST", {"network": {"is_default": True}})
    assert fault(answer) == (403, "PolicyNotAuthorized")
    first = make(url, "network", auth.ADMIN, **asked)
    assert first["is_default"] is True
    again = call(f"{url}/networks", "POST", {"network": asked}, auth.ADMIN)
    assert fault(again) == (409, "DefaultExternalNetworkExists")
    other = make(url, "network", auth.ADMIN, **{"router:external": True})["id"]
    body = {"network": {"is_default": True}}
    again = call(f"{url}/networks/{other}", "PUT", body, auth.ADMIN)
    assert fault(again) == (409, "DefaultExternalNetworkExists")
    put(url, "network", first["id"], auth.ADMIN, is_default=False)
    assert put(url, "network", other, auth.ADMIN, is_default=True)["is_default"] is True
    listed = call(f"{url}/networks?is_default=True").json()["networks"]
    assert [one["id"] for one in listed] == [other]
    # Only an external one can be it.
    inner = put(url, "network", other, auth.ADMIN, **{"router:external": False})
    assert inner["is_default"] is False


def test_administrators_name_the_host_of_a_port(url: str) -> None:
    asked = {"network_id": VMBR0, "binding:host_id": "pve1"}
    assert fault(call(f"{url}/ports", "POST", {"port": asked})) == (403, "PolicyNotAuthorized")
    made = make(url, "port", auth.ADMIN, project_id="demo", **asked)
    assert made["binding:host_id"] == "pve1"
    found = call(f"{url}/ports?binding:host_id=pve1", token=auth.ADMIN).json()["ports"]
    assert [one["id"] for one in found] == [made["id"]]
    body = {"port": {"binding:host_id": "pve2"}}
    assert fault(call(f"{url}/ports/{made['id']}", "PUT", body))[0] == 403
    changed = put(url, "port", made["id"], auth.ADMIN, **{"binding:host_id": "pve2"})
    assert changed["binding:host_id"] == "pve2"
    none = put(url, "port", made["id"], auth.ADMIN, **{"binding:host_id": None})
    assert none["binding:host_id"] == ""


def test_the_owner_of_a_network_deletes_ports_of_others(url: str, world: World) -> None:
    network = make(url, "network", auth.ADMIN, project_id="demo", shared=True)["id"]
    port = make(url, "port", auth.ADMIN, network_id=network, project_id="other")["id"]
    elsewhere = make(url, "port", auth.ADMIN, network_id=VMBR0, project_id="other")["id"]
    assert call(f"{url}/ports/{port}").status_code == 200
    assert call(f"{url}/ports/{elsewhere}").status_code == 404
    body = {"port": {"name": "mine"}}
    assert call(f"{url}/ports/{port}", "PUT", body).status_code in (403, 404)
    assert call(f"{url}/ports/{elsewhere}", "DELETE").status_code == 404
    assert call(f"{url}/ports/{port}", "DELETE", token=auth.READER).status_code == 403
    assert call(f"{url}/ports/{port}", "DELETE").status_code == 204
    assert [row.id for row in world.rows(schema.ports)] == [elsewhere]


def test_a_group_says_whether_it_tracks_connections(url: str) -> None:
    group = make(url, "security_group", name="g", stateful=False)
    assert group["stateful"] is False
    assert put(url, "security_group", group["id"], stateful=True)["stateful"] is True
    assert call(f"{url}/security-groups?stateful=false").json()["security_groups"] == []
