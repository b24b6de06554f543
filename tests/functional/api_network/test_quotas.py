"""Quotas of the Network API: set, seen, enforced and reset; by administrators alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from api.network.app import make_app
from common import ids
from conductor.endpoints.networks.address_groups import AddressGroupEndpoint
from conductor.endpoints.networks.networks import NetworkEndpoint
from conductor.endpoints.networks.ports import PortEndpoint
from conductor.endpoints.networks.security_groups import SecurityGroupEndpoint
from conductor.endpoints.quotas import QuotaEndpoint
from db import engine, schema
from tests.fixtures import auth
from tests.fixtures.listings import a_conf, mounted, served
from tests.functional.conductor.harness import World

VMBR0 = ids.named("network", "vmbr0")
DEFAULTS = {
    "network": 100,
    "subnet": 100,
    "subnetpool": 0,
    "port": 500,
    "router": 0,
    "floatingip": 0,
    "rbac_policy": 10,
    "security_group": 10,
    "security_group_rule": 100,
}


class Conductor:
    """The conductor, as far as the Network API calls it."""

    def __init__(self, world: World) -> None:
        cloud = world.conductor.cloud
        self._endpoints = (
            NetworkEndpoint(cloud),
            PortEndpoint(cloud, world.conductor.runner),
            SecurityGroupEndpoint(cloud, lambda: None),
            QuotaEndpoint(cloud),
            AddressGroupEndpoint(cloud, lambda: None),
        )

    def __getattr__(self, name: str) -> Any:
        return next(getattr(one, name) for one in self._endpoints if hasattr(one, name))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    conf = made.conductor.cloud.conf
    conf.set_override("tenant_vlans", ["vmbr1:1000-1020"], group="networks")
    yield made
    made.close()


@pytest.fixture
def url(world: World) -> Iterator[str]:
    reader = engine.reader(world.url)
    conductor: Any = Conductor(world)
    app = make_app(a_conf(), reader, auth.header_auth, conductor)
    with served(mounted(app, "/network")) as root:
        yield f"{root}/network/v2.0"
    reader.dispose()


def call(
    url: str, method: str = "GET", body: Any = None, token: str = auth.ADMIN
) -> requests.Response:
    return requests.request(method, url, json=body, headers={"X-Auth-Token": token}, timeout=60)


def put(url: str, token: str = auth.ADMIN, project: str = "demo", **limits: Any) -> Any:
    return call(f"{url}/quotas/{project}", "PUT", {"quota": limits}, token)


def fault(answer: requests.Response) -> tuple[int, str, str]:
    error = answer.json()["NeutronError"]
    return answer.status_code, error["type"], error["message"]


def test_limits_are_set_seen_and_reset(url: str, world: World) -> None:
    assert call(f"{url}/quotas/demo").json() == {"quota": DEFAULTS}
    answer = put(url, network=7, port="9", router=3, security_group=-1)
    assert answer.status_code == 200
    wanted = {**DEFAULTS, "network": 7, "port": 9, "router": 3, "security_group": -1}
    assert answer.json() == {"quota": wanted}
    assert call(f"{url}/quotas/demo", token=auth.READER).json() == {"quota": wanted}
    assert call(f"{url}/quotas/demo/default").json() == {"quota": DEFAULTS}
    details = call(f"{url}/quotas/demo/details").json()["quota"]
    assert details["network"] == {"limit": 7, "used": 0, "reserved": 0}
    assert call(f"{url}/quotas/other").json() == {"quota": DEFAULTS}
    whose = {"project_id": "demo", "tenant_id": "demo"}
    assert call(f"{url}/quotas").json() == {"quotas": [{**wanted, **whose}]}
    assert call(f"{url}/quotas/demo", "DELETE").status_code == 204
    assert call(f"{url}/quotas/demo").json() == {"quota": DEFAULTS}
    assert call(f"{url}/quotas").json() == {"quotas": []}
    assert fault(call(f"{url}/quotas/demo", "DELETE"))[:2] == (404, "TenantQuotaNotFound")
    assert world.rows(schema.quota_limits) == []


def test_limits_hold_for_each_kind(url: str) -> None:
    none = dict.fromkeys(DEFAULTS, 0)
    for project in ("demo", "other"):
        assert put(url, project=project, force=True, **none).status_code == 200
    group = call(f"{url}/security-groups", token=auth.MEMBER).json()["security_groups"][0]["id"]
    network = {"network_id": VMBR0}
    rule = {"security_group_id": group, "direction": "ingress"}
    for kind, path, asked in (
        ("network", "networks", {}),
        ("port", "ports", network),
        ("security_group", "security-groups", {"name": "x"}),
        ("security_group_rule", "security-group-rules", rule),
    ):
        status, error, text = fault(call(f"{url}/{path}", "POST", {kind: asked}, auth.MEMBER))
        assert (status, error) == (409, "OverQuota"), kind
        assert text == f"Quota exceeded for resources: ['{kind}']."
    subnet = {**network, "cidr": "10.9.0.0/24", "ip_version": 4, "project_id": "demo"}
    assert fault(call(f"{url}/subnets", "POST", {"subnet": subnet}))[1] == "OverQuota"
    put(url, network=1)
    made = call(f"{url}/networks", "POST", {"network": {}}, auth.MEMBER)
    assert made.status_code == 201
    share = {"object_id": made.json()["network"]["id"], "object_type": "network"}
    share |= {"action": "access_as_shared", "target_tenant": "other"}
    again = call(f"{url}/rbac-policies", "POST", {"rbac_policy": share}, auth.MEMBER)
    assert fault(again)[1] == "OverQuota"
    more = call(f"{url}/networks", "POST", {"network": {}}, auth.MEMBER)
    assert fault(more)[1] == "OverQuota"
    put(url, network=-1)
    assert call(f"{url}/networks", "POST", {"network": {}}, auth.MEMBER).status_code == 201


def test_a_limit_is_not_below_what_is_used_unless_forced(url: str) -> None:
    for _ in range(2):
        call(f"{url}/networks", "POST", {"network": {}}, auth.MEMBER)
    before = call(f"{url}/quotas/demo").json()
    assert fault(put(url, port=5, network=1)) == (
        400,
        "HTTPBadRequest",
        "Quota limit 1 for network must be greater than or equal to already used 2",
    )
    assert call(f"{url}/quotas/demo").json() == before
    assert put(url, network=1, check_limit=True).status_code == 400
    assert put(url, network=2).status_code == 200
    assert put(url, network=1, force=True).json()["quota"]["network"] == 1
    assert put(url, network=-1).status_code == 200


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"network": "many"}, "Invalid input for network. Reason: 'many' is not an integer."),
        ({"network": -2}, "Invalid input for network."),
        ({"network": 2**31}, "Invalid input for network."),
        ({"network": True}, "Invalid input for network."),
        ({"network": None}, "Invalid input for network."),
        ({"instances": 5}, "Unrecognized attribute(s) 'instances'"),
        ({"network": 5, "x": 5}, "Unrecognized attribute(s) 'x'"),
    ],
)
def test_what_is_no_limit_is_refused(
    url: str, world: World, limits: dict[str, Any], reason: str
) -> None:
    status, _, text = fault(put(url, **limits))
    assert status == 400
    assert text.startswith(reason)
    assert world.rows(schema.quota_limits) == []


@pytest.mark.parametrize("body", [None, [], {}, {"quota": 1}, {"quotas": {}}, {"quota": None}])
def test_what_is_no_body_is_refused(url: str, body: Any) -> None:
    assert call(f"{url}/quotas/demo", "PUT", body).status_code == 400


def test_only_administrators_change_limits(url: str, world: World) -> None:
    for token in (auth.READER, auth.MEMBER):
        for project in ("demo", "other"):
            status, error, text = fault(put(url, token, project, network=500))
            assert (status, error) == (403, "PolicyNotAuthorized")
            assert "update_quota" in text
            status, _, text = fault(call(f"{url}/quotas/{project}", "DELETE", token=token))
            assert status == 403
            assert "delete_quota" in text
        assert call(f"{url}/quotas/other", token=token).status_code == 403
        assert call(f"{url}/quotas/other/details", token=token).status_code == 403
        assert call(f"{url}/quotas", token=token).status_code == 403
    assert world.rows(schema.quota_limits) == []


def test_limits_of_other_services_are_left_alone(url: str, world: World) -> None:
    mine = {"project_id": "demo", "hard_limit": 3}
    world.conductor.store.run(
        lambda c: c.execute(
            schema.quota_limits.insert(),
            [{**mine, "resource": "instances"}, {**mine, "resource": "volumes"}],
        )
    )
    assert call(f"{url}/quotas").json() == {"quotas": []}
    assert fault(call(f"{url}/quotas/demo", "DELETE"))[0] == 404
    put(url, network=3)
    assert call(f"{url}/quotas/demo", "DELETE").status_code == 204
    left = {row.resource for row in world.rows(schema.quota_limits)}
    assert left == {"instances", "volumes"}


def test_the_project_of_the_token(url: str) -> None:
    answer = call(f"{url}/quotas/project", token=auth.MEMBER)
    assert answer.json() == {"project": {"project_id": "demo"}}
    answer = call(f"{url}/quotas/tenant", token=auth.MEMBER)
    assert answer.json() == {"tenant": {"tenant_id": "demo"}}
    assert call(f"{url}/quotas", "POST", {"quota": {}}).status_code == 501
