"""Networks and subnets of projects, over HTTP: Neutron's answers, and its refusals."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from api.network.app import make_app
from common import ids
from conductor.endpoints.networks.networks import NetworkEndpoint
from conductor.endpoints.networks.ports import PortEndpoint
from conductor.networks import vnet_places
from conductor.store.networks import networks
from conductor.store.networks.vnets import State, Vnet
from db import engine, schema
from tests.fixtures import auth
from tests.fixtures.listings import a_conf, mounted, served
from tests.functional.conductor.harness import World

VMBR0, VMBR1 = (ids.named("network", name) for name in ("vmbr0", "vmbr1"))
OF_CONFIGURATION = ids.named("subnet", "vmbr0/10.0.0.0/24")
NOBODY = ids.named("network", "none")
TAGS = 3


class Both:
    """The conductor, as far as the Network API calls it."""

    def __init__(self, world: World) -> None:
        cloud = world.conductor.cloud
        self._endpoints = (NetworkEndpoint(cloud), PortEndpoint(cloud, world.conductor.runner))

    def __getattr__(self, name: str) -> Any:
        return next(getattr(one, name) for one in self._endpoints if hasattr(one, name))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    conf = made.conductor.cloud.conf
    conf.set_override("tenant_vlans", [f"vmbr1:1000-{999 + TAGS}"], group="networks")
    subnet = networks.parse_subnet("vmbr0=10.0.0.0/24")
    made.conductor.store.run(lambda c: networks.ensure_subnet(c, subnet))
    yield made
    made.close()


@pytest.fixture
def url(world: World) -> Iterator[str]:
    with network_api(world) as found:
        yield found


@contextlib.contextmanager
def network_api(world: World) -> Iterator[str]:
    """The Network API, as the world is configured now."""
    reader = engine.reader(world.url)
    conductor: Any = Both(world)
    app = make_app(a_conf(), reader, auth.header_auth, conductor)
    with served(mounted(app, "/network")) as root:
        yield f"{root}/network/v2.0"
    reader.dispose()


def call(
    url: str, method: str = "GET", body: Any = None, token: str = auth.MEMBER
) -> requests.Response:
    return requests.request(method, url, json=body, headers={"X-Auth-Token": token}, timeout=60)


def make(url: str, kind: str, token: str = auth.MEMBER, **asked: Any) -> dict[str, Any]:
    answer = call(f"{url}/{kind}s", "POST", {kind: asked}, token)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()[kind]
    return made


def refused(answer: requests.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["NeutronError"]["type"]


def seen(url: str, kind: str, token: str = auth.MEMBER, query: str = "") -> set[str]:
    return {one["id"] for one in call(f"{url}/{kind}s{query}", token=token).json()[f"{kind}s"]}


def test_a_network_and_its_subnets_come_change_and_go(url: str, world: World) -> None:
    before = world.rows(schema.networks)
    network = make(url, "network", name="mine", description="of us", admin_state_up=True)
    assert network == call(f"{url}/networks/{network['id']}").json()["network"]
    assert (network["name"], network["description"]) == ("mine", "of us")
    assert (network["project_id"], network["shared"], network["router:external"]) == (
        *("demo", False),
        False,
    )
    assert (network["status"], network["mtu"], network["subnets"]) == ("ACTIVE", 1500, [])
    assert "provider:segmentation_id" not in network
    shown = call(f"{url}/networks/{network['id']}", token=auth.ADMIN).json()["network"]
    assert [shown[f"provider:{name}"] for name in ("network_type", "physical_network")] == [
        *("vlan", "vmbr1")
    ]
    assert shown["provider:segmentation_id"] == 1000
    four = make(
        *(url, "subnet"),
        network_id=network["id"],
        ip_version="4",
        cidr="192.168.7.9/24",
        name="four",
        dns_nameservers=["9.9.9.9"],
        host_routes=[{"destination": "10.9.0.0/16", "nexthop": "192.168.7.254"}],
    )
    assert (four["cidr"], four["gateway_ip"]) == ("192.168.7.0/24", "192.168.7.1")
    assert four["allocation_pools"] == [{"start": "192.168.7.2", "end": "192.168.7.254"}]
    assert four["host_routes"] == [{"destination": "10.9.0.0/16", "nexthop": "192.168.7.254"}]
    assert (four["enable_dhcp"], four["project_id"]) == (True, "demo")
    six = make(
        *(url, "subnet"),
        network_id=network["id"],
        ip_version=6,
        cidr="fd00::/64",
        gateway_ip=None,
        enable_dhcp=False,
        allocation_pools=[
            {"start": "fd00::b0", "end": "fd00::bf"},
            {"start": "fd00::a0", "end": "fd00::af"},
        ],
    )
    assert (six["gateway_ip"], six["enable_dhcp"], six["ip_version"]) == (None, False, 6)
    assert [one["start"] for one in six["allocation_pools"]] == ["fd00::a0", "fd00::b0"]
    shown = call(f"{url}/networks/{network['id']}").json()["network"]
    assert shown["subnets"] == [four["id"], six["id"]]
    change = {"network": {"name": "ours", "mtu": 1400, "description": ""}}
    changed = call(f"{url}/networks/{network['id']}", "PUT", change).json()["network"]
    assert (changed["name"], changed["mtu"], changed["description"]) == ("ours", 1400, "")
    change = {
        "subnet": {
            "gateway_ip": None,
            "allocation_pools": [{"start": "192.168.7.1", "end": "192.168.7.3"}],
            "dns_nameservers": [],
            "host_routes": None,
            "name": "small",
        }
    }
    changed = call(f"{url}/subnets/{four['id']}", "PUT", change).json()["subnet"]
    assert (changed["gateway_ip"], changed["dns_nameservers"]) == (None, [])
    assert (changed["host_routes"], changed["name"]) == ([], "small")
    ports = [make(url, "port", network_id=network["id"]) for _ in range(3)]
    given = [[one["ip_address"] for one in port["fixed_ips"]] for port in ports]
    assert given == [[f"192.168.7.{n + 1}", f"fd00::a{n}"] for n in range(3)]
    assert [one["subnet_id"] for one in ports[0]["fixed_ips"]] == [four["id"], six["id"]]
    for query in ("ip_address=fd00::a1", "ip_address_substr=::a1", "ip_address=192.168.7.2"):
        assert seen(url, "port", query=f"?fixed_ips={query}") == {ports[1]["id"]}
    assert len(seen(url, "port", query=f"?fixed_ips=subnet_id={six['id']}")) == 3
    body = {"port": {"network_id": network["id"]}}
    assert refused(call(f"{url}/ports", "POST", body)) == (409, "IpAddressGenerationFailure")
    only = make(url, "port", network_id=network["id"], fixed_ips=[{"subnet_id": six["id"]}])
    assert only["fixed_ips"] == [{"subnet_id": six["id"], "ip_address": "fd00::a3"}]
    wanted = [{"ip_address": "fd00::a0"}]
    answer = call(f"{url}/ports/{only['id']}", "PUT", {"port": {"fixed_ips": wanted}})
    assert refused(answer) == (409, "IpAddressAlreadyAllocated")
    many = [{"subnet_id": six["id"]}] * 6
    answer = call(f"{url}/ports/{only['id']}", "PUT", {"port": {"fixed_ips": many}})
    assert refused(answer) == (400, "InvalidInput")
    call(f"{url}/ports/{ports[0]['id']}", "DELETE")
    both = [{"subnet_id": six["id"], "ip_address": "fd00::a0"}, {"subnet_id": four["id"]}]
    changed = call(f"{url}/ports/{only['id']}", "PUT", {"port": {"fixed_ips": both}}).json()
    assert changed["port"]["fixed_ips"] == ports[0]["fixed_ips"]
    again = call(f"{url}/ports/{only['id']}", "PUT", {"port": {"fixed_ips": both}}).json()
    assert again["port"]["fixed_ips"] == ports[0]["fixed_ips"]
    assert refused(call(f"{url}/subnets/{six['id']}", "DELETE")) == (409, "SubnetInUse")
    assert refused(call(f"{url}/networks/{network['id']}", "DELETE")) == (409, "NetworkInUse")
    assert refused(call(f"{url}/subnets/{four['id']}", "DELETE")) == (409, "SubnetInUse")
    for port in seen(url, "port"):
        assert call(f"{url}/ports/{port}", "DELETE").status_code == 204
    assert call(f"{url}/subnets/{six['id']}", "DELETE").status_code == 204
    assert call(f"{url}/networks/{network['id']}", "DELETE").status_code == 204
    for path in (f"networks/{network['id']}", f"subnets/{four['id']}"):
        assert call(f"{url}/{path}").status_code == 404
    assert world.rows(schema.networks) == before
    assert {row.id for row in world.rows(schema.subnets)} == {OF_CONFIGURATION}


def test_tags_are_chosen_freed_and_used_up(url: str, world: World) -> None:
    items = [{"name": "a"}, {"network": {"name": "b"}}]
    made = call(f"{url}/networks", "POST", {"networks": items}).json()["networks"]
    assert [one["name"] for one in made] == ["a", "b"]
    wanted = {"provider:network_type": "vlan", "provider:physical_network": "vmbr1"}
    taken = {"network": wanted | {"provider:segmentation_id": 1001}}
    answer = call(f"{url}/networks", "POST", taken, auth.ADMIN)
    assert refused(answer) == (409, "VlanIdInUse")
    beyond = make(url, "network", auth.ADMIN, **wanted, **{"provider:segmentation_id": 77})
    assert (beyond["provider:segmentation_id"], beyond["project_id"]) == (77, "admin")
    last = make(url, "network", auth.ADMIN, **wanted)
    assert last["provider:segmentation_id"] == 1002
    for asked, token in (({}, auth.MEMBER), (wanted, auth.ADMIN)):
        answer = call(f"{url}/networks", "POST", {"network": asked}, token)
        assert refused(answer) == (409, "NoNetworkAvailable")
    # All or none.
    answer = call(f"{url}/networks", "POST", {"networks": items})
    assert refused(answer) == (409, "NoNetworkAvailable")
    call(f"{url}/networks/{made[0]['id']}", "DELETE")
    make(url, "network")
    rows = [row for row in world.rows(schema.networks) if not row.discovered]
    assert sorted(row.vlan for row in rows) == [77, 1000, 1001, 1002]
    assert all(row.segment == row.vlan for row in rows)


def test_networks_on_vnets_as_neutron_shows_them(world: World) -> None:
    conf = world.conductor.cloud.conf
    conf.set_override("tenant_vlans", [f"vmbr1:1000-{999 + TAGS}"], group="networks")
    conf.set_override("tenant_vnets", ["*:tenants:5000-5001"], group="networks")
    with network_api(world) as url:
        for _ in range(TAGS):
            make(url, "network")
        mine = make(url, "network")
        assert (mine["status"], mine["mtu"]) == ("BUILD", 1450)
        assert not [name for name in mine if name.startswith("provider:")]
        path = f"{url}/networks/{mine['id']}"
        shown = call(path, token=auth.ADMIN).json()["network"]
        assert {name: shown[f"provider:{name}"] for name in PROVIDER} == {
            "network_type": "vxlan",
            "physical_network": None,
            "segmentation_id": 5000,
        }
        assert seen(url, "network", query="?status=BUILD") == {mine["id"]}
        query = "?provider:network_type=vxlan&provider:segmentation_id=5000"
        assert seen(url, "network", auth.ADMIN, query) == {mine["id"]}
        assert call(path, token=auth.OTHER).status_code == 404
        assert call(path, "DELETE", token=auth.OTHER).status_code == 404
        for asked, answer in (
            ({"segmentation_id": 5000}, (409, "TunnelIdInUse")),
            ({"segmentation_id": 2**24}, (400, "InvalidInput")),
            ({"segmentation_id": 0}, (400, "InvalidInput")),
            ({"physical_network": "vmbr1"}, (400, "InvalidInput")),
        ):
            wanted = {f"provider:{name}": value for name, value in asked.items()}
            body = {"network": {"provider:network_type": "vxlan", **wanted}}
            assert refused(call(f"{url}/networks", "POST", body, auth.ADMIN)) == answer
        body = {"network": {"mtu": 1451}}
        assert refused(call(path, "PUT", body)) == (400, "InvalidInput")
        make(url, "network", auth.ADMIN, **{"provider:network_type": "vxlan"})
        answer = call(f"{url}/networks", "POST", {"network": {}})
        assert refused(answer) == (409, "NoNetworkAvailable")
        assert call(path, "DELETE").status_code == 204
        assert call(path).status_code == 404
        # Its VNI is in use until the vnet was seen gone, and that needs no zone.
        assert refused(call(f"{url}/networks", "POST", {"network": {}}))[0] == 409
    cloud = world.conductor.cloud
    vnet = Vnet("sim1", mine["id"], "mnxxxxxx", "gone", 5000, State.REMOVING)
    where = cloud.store.run(lambda c: vnet_places.of_vnet(c, cloud, vnet.cluster, vnet.zone))
    assert (where.host, where.cluster) == ("pve1", "sim1")


PROVIDER = ("network_type", "physical_network", "segmentation_id")


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ({"provider:network_type": "flat", "provider:physical_network": "vmbr0"}, (409, "FlatN")),
        ({"provider:network_type": "flat", "provider:physical_network": "vmbr9"}, (400, "Inval")),
        ({"provider:network_type": "flat"}, (400, "InvalidInput")),
        ({"provider:network_type": "vxlan"}, (400, "InvalidInput")),
        ({"provider:physical_network": "vmbr0"}, (400, "InvalidInput")),
        ({"provider:network_type": "vlan", "provider:segmentation_id": 7}, (400, "InvalidInput")),
        (
            {
                "provider:network_type": "vlan",
                "provider:physical_network": "vmbr1",
                "provider:segmentation_id": 4095,
            },
            (400, "InvalidInput"),
        ),
        ({"provider:segmentation_id": "x"}, (400, "HTTPBadRequest")),
        ({"admin_state_up": "x"}, (400, "HTTPBadRequest")),
        ({"port_security_enabled": True}, (400, "HTTPBadRequest")),
        ({"mtu": 20}, (400, "HTTPBadRequest")),
        ({"mtu": True}, (400, "HTTPBadRequest")),
        ({"name": None}, (400, "HTTPBadRequest")),
        ({"shared": "perhaps"}, (400, "HTTPBadRequest")),
        ({"availability_zone_hints": "nova"}, (400, "HTTPBadRequest")),
        ({"colour": "red"}, (400, "HTTPBadRequest")),
        ({"status": "ACTIVE"}, (400, "HTTPBadRequest")),
    ],
)
def test_networks_that_nobody_can_have(
    url: str, world: World, asked: dict[str, Any], answer: tuple[int, str]
) -> None:
    before = world.rows(schema.networks)
    got = refused(call(f"{url}/networks", "POST", {"network": asked}, auth.ADMIN))
    assert (got[0], got[1].startswith(answer[1])) == (answer[0], True), got
    assert world.rows(schema.networks) == before


SUBNETS_REFUSED = [
    ({"cidr": None}, 400, "BadRequest"),
    ({"cidr": "10.1.0.0"}, 400, "HTTPBadRequest"),
    ({"cidr": "10.1.0.0/33"}, 400, "HTTPBadRequest"),
    ({"cidr": "fd00::/64"}, 400, "InvalidInput"),
    ({"cidr": "0.0.0.0/0"}, 400, "InvalidInput"),
    ({"cidr": "10.2.0.0/31"}, 400, "InvalidInput"),
    ({"cidr": "224.0.0.0/24"}, 400, "InvalidInput"),
    ({"cidr": "127.0.0.0/24"}, 400, "InvalidInput"),
    ({"cidr": "0.0.0.0/8"}, 400, "InvalidInput"),
    ({"cidr": "10.1.1.128/25"}, 400, "InvalidInput"),
    ({"cidr": "10.0.0.0/8"}, 400, "InvalidInput"),
    ({"ip_version": 5}, 400, "InvalidInput"),
    ({"ip_version": "six"}, 400, "HTTPBadRequest"),
    ({"ip_version": 6, "cidr": "::/64"}, 400, "InvalidInput"),
    ({"gateway_ip": "10.2.0.0"}, 400, "InvalidInput"),
    ({"gateway_ip": "fd00::1"}, 400, "InvalidInput"),
    ({"gateway_ip": "x"}, 400, "HTTPBadRequest"),
    ({"allocation_pools": [{"start": "10.2.0.9", "end": "10.2.0.5"}]}, 400, "InvalidAllocati"),
    ({"allocation_pools": [{"start": "10.2.0.9", "end": "10.3.0.5"}]}, 400, "OutOfBounds"),
    ({"allocation_pools": [{"start": "fd00::1", "end": "fd00::2"}]}, 400, "InvalidAllocation"),
    ({"allocation_pools": [{"start": "10.2.0.9", "end": "fd00::2"}]}, 400, "InvalidAllocation"),
    ({"allocation_pools": [{"start": "10.2.0.1", "end": "10.2.0.5"}]}, 409, "GatewayConflict"),
    ({"allocation_pools": [{"start": "10.2.0.9"}]}, 400, "HTTPBadRequest"),
    (
        {
            "allocation_pools": [
                {"start": "10.2.0.9", "end": "10.2.0.20"},
                {"start": "10.2.0.20", "end": "10.2.0.30"},
            ]
        },
        *(409, "OverlappingAllocationPools"),
    ),
    ({"dns_nameservers": ["9.9.9.9"] * 2}, 400, "HTTPBadRequest"),
    ({"dns_nameservers": [f"9.9.9.{n}" for n in range(6)]}, 400, "DNSNameServersExhausted"),
    ({"dns_nameservers": ["fd00::9"]}, 400, "InvalidInput"),
    ({"host_routes": [{"destination": "x", "nexthop": "10.2.0.9"}]}, 400, "HTTPBadRequest"),
    ({"host_routes": [{"destination": "::/0", "nexthop": "10.2.0.9"}]}, 400, "InvalidInput"),
    ({"ipv6_ra_mode": "slaac"}, 400, "InvalidInput"),
    ({"ipv6_ra_mode": "magic"}, 400, "HTTPBadRequest"),
    (
        {"ip_version": 6, "cidr": "fd02::/60", "ipv6_address_mode": "slaac"},
        *(400, "InvalidInput"),
    ),
    (
        {
            "ip_version": 6,
            "cidr": "fd02::/64",
            "ipv6_address_mode": "slaac",
            "ipv6_ra_mode": "dhcpv6-stateful",
        },
        *(400, "InvalidInput"),
    ),
    ({"subnetpool_id": NOBODY}, 400, "HTTPBadRequest"),
    ({"network_id": NOBODY}, 404, "NetworkNotFound"),
    ({"network_id": VMBR0}, 403, "PolicyNotAuthorized"),
]


def test_subnets_that_nobody_can_have(url: str, world: World) -> None:
    network = make(url, "network")["id"]
    make(url, "subnet", network_id=network, ip_version=4, cidr="10.1.0.0/16")
    before = world.rows(schema.subnets)
    for asked, status, kind in SUBNETS_REFUSED:
        body = {"network_id": network, "ip_version": 4, "cidr": "10.2.0.0/24", **asked}
        got = refused(call(f"{url}/subnets", "POST", {"subnet": body}))
        assert (got[0], got[1].startswith(kind)) == (status, True), (asked, got)
    good = {"network_id": network, "ip_version": 4, "cidr": "10.2.0.0/24"}
    bad = call(f"{url}/subnets", "POST", {"subnets": [good, {"subnet": good}]})
    assert refused(bad) == (400, "InvalidInput")
    assert world.rows(schema.subnets) == before


def test_updates_of_subnets_that_are_refused(url: str, world: World) -> None:
    network = make(url, "network")["id"]
    subnet = make(url, "subnet", network_id=network, ip_version=4, cidr="10.1.0.0/24")["id"]
    port = make(url, "port", network_id=network)["fixed_ips"][0]["ip_address"]
    before = world.rows(schema.subnets)
    for asked, status, kind in [
        ({"cidr": "10.3.0.0/24"}, 400, "HTTPBadRequest"),
        ({"gateway_ip": "10.1.0.77"}, 409, "GatewayConflictWithAllocationPools"),
        ({"gateway_ip": "10.1.0.255"}, 400, "InvalidInput"),
        (
            {
                "gateway_ip": port,
                "allocation_pools": [{"start": "10.1.0.9", "end": "10.1.0.19"}],
            },
            *(409, "IpAddressInUse"),
        ),
        ({"allocation_pools": [{"start": "10.1.1.9", "end": "10.1.1.19"}]}, 400, "OutOfBounds"),
        ({"allocation_pools": None}, 400, "HTTPBadRequest"),
        ({"dns_nameservers": ["fd00::9"]}, 400, "InvalidInput"),
        ({"enable_dhcp": 7}, 400, "HTTPBadRequest"),
    ]:
        got = refused(call(f"{url}/subnets/{subnet}", "PUT", {"subnet": asked}))
        assert (got[0], got[1].startswith(kind)) == (status, True), (asked, got)
    assert world.rows(schema.subnets) == before


def test_what_is_of_others_is_not_there(url: str, world: World) -> None:
    mine = make(url, "network")["id"]
    subnet = make(url, "subnet", network_id=mine, ip_version=4, cidr="10.1.0.0/24")["id"]
    others = make(url, "network", auth.OTHER)["id"]
    for path, kind in ((f"networks/{mine}", "network"), (f"subnets/{subnet}", "subnet")):
        for method, body in (("GET", None), ("PUT", {kind: {"name": "x"}}), ("DELETE", None)):
            answer = call(f"{url}/{path}", method, body, auth.OTHER)
            assert refused(answer)[0] == 404
        assert call(f"{url}/{path}/tags", "PUT", {"tags": ["a"]}, auth.OTHER).status_code == 404
        assert call(f"{url}/{path}/tags", "PUT", {"tags": ["a"]}).status_code == 200
    for kind, asked in (
        ("port", {"network_id": mine}),
        ("subnet", {"network_id": mine, "ip_version": 4, "cidr": "10.9.0.0/24"}),
    ):
        answer = call(f"{url}/{kind}s", "POST", {kind: asked}, auth.OTHER)
        assert refused(answer) == (404, "NetworkNotFound")
    assert mine not in seen(url, "network", auth.OTHER)
    assert subnet not in seen(url, "subnet", auth.OTHER)
    assert others not in seen(url, "network")
    assert {mine, others, VMBR0} <= seen(url, "network", auth.ADMIN)
    assert seen(url, "network", query="?shared=false") == {mine}
    assert seen(url, "network", query="?project_id=demo") == {mine}
    assert seen(url, "subnet", query="?shared=false") == {subnet}
    stranger = {"network": {"project_id": "demo"}}
    assert refused(call(f"{url}/networks", "POST", stranger, auth.OTHER))[0] == 400
    assert make(url, "network", auth.ADMIN, project_id="demo")["project_id"] == "demo"


def test_shared_and_external_networks(url: str, world: World) -> None:
    for name in ("shared", "router:external"):
        body = {"network": {name: True}}
        assert refused(call(f"{url}/networks", "POST", body)) == (403, "PolicyNotAuthorized")
        mine = make(url, "network", **{name: False})
        answer = call(f"{url}/networks/{mine['id']}", "PUT", body)
        assert refused(answer) == (403, "PolicyNotAuthorized")
        call(f"{url}/networks/{mine['id']}", "DELETE")
        network = make(url, "network", auth.ADMIN, **{name: True})["id"]
        assert call(f"{url}/networks/{network}").json()["network"][name] is True
        subnet = {"network_id": network, "ip_version": 4, "cidr": "10.1.0.0/24"}
        assert refused(call(f"{url}/subnets", "POST", {"subnet": subnet})) == (
            *(403,),
            "PolicyNotAuthorized",
        )
        subnet_id = make(url, "subnet", auth.ADMIN, **subnet)["id"]
        assert subnet_id in seen(url, "subnet")
        port = make(url, "port", network_id=network)
        # An address of one's choice, and whose network it is not.
        body = {"port": {"network_id": network, "mac_address": "fa:16:3e:00:00:07"}}
        assert refused(call(f"{url}/ports", "POST", body)) == (403, "PolicyNotAuthorized")
        for path in (f"networks/{network}", f"subnets/{subnet_id}"):
            assert refused(call(f"{url}/{path}", "DELETE")) == (403, "PolicyNotAuthorized")
        hidden = {"network": {"shared": False, "router:external": False}}
        answer = call(f"{url}/networks/{network}", "PUT", hidden, auth.ADMIN)
        if name == "shared":
            assert refused(answer) == (409, "InvalidSharedSetting")
        call(f"{url}/ports/{port['id']}", "DELETE")
        answer = call(f"{url}/networks/{network}", "PUT", hidden, auth.ADMIN)
        assert answer.status_code == 200, answer.text
        assert call(f"{url}/networks/{network}").status_code == 404
        assert call(f"{url}/networks/{network}", "DELETE", token=auth.ADMIN).status_code == 204
    assert world.rows(schema.network_shares) == []


def test_the_owner_of_a_network_chooses_mac_and_address(url: str, world: World) -> None:
    network = make(url, "network")["id"]
    pool = {"start": "10.1.0.10", "end": "10.1.0.20"}
    make(
        *(url, "subnet"),
        network_id=network,
        ip_version=4,
        cidr="10.1.0.0/24",
        allocation_pools=[pool],
    )
    port = make(
        *(url, "port"),
        network_id=network,
        mac_address="fa:16:3e:00:00:07",
        fixed_ips=[{"ip_address": "10.1.0.99"}],
    )
    assert port["mac_address"] == "fa:16:3e:00:00:07"
    assert port["fixed_ips"][0]["ip_address"] == "10.1.0.99"


def test_networks_of_clusters_stay_what_they_are(url: str, world: World) -> None:
    for path, kind in (
        (f"networks/{VMBR0}", "network"),
        (f"subnets/{OF_CONFIGURATION}", "subnet"),
    ):
        for method, body in (("PUT", {kind: {"name": "x"}}), ("DELETE", None)):
            answer = call(f"{url}/{path}", method, body)
            assert refused(answer) == (403, "PolicyNotAuthorized")
        answer = call(f"{url}/{path}", "DELETE", token=auth.ADMIN)
        assert answer.status_code == 409
    for name in ("shared", "router:external"):
        body = {"network": {name: False}}
        answer = call(f"{url}/networks/{VMBR0}", "PUT", body, auth.ADMIN)
        assert refused(answer) == (409, "NetworkOfCluster")
    body = {"network": {"provider:segmentation_id": 7}}
    assert call(f"{url}/networks/{VMBR0}", "PUT", body, auth.ADMIN).status_code == 400
    mine = make(url, "network", auth.ADMIN)["id"]
    jumbo = {"network": {"mtu": 9000}}
    for path, method in (("networks", "POST"), (f"networks/{mine}", "PUT")):
        answer = call(f"{url}/{path}", method, jumbo, auth.ADMIN)
        assert refused(answer) == (400, "InvalidInput")
        assert "maximum is 1500" in answer.json()["NeutronError"]["message"]
    call(f"{url}/networks/{VMBR1}", "PUT", jumbo, auth.ADMIN)
    assert make(url, "network")["mtu"] == 9000
    body = {"network": {"mtu": 9000, "description": "of the house"}}
    shown = call(f"{url}/networks/{VMBR0}", "PUT", body, auth.ADMIN).json()["network"]
    assert (shown["mtu"], shown["name"], shown["shared"]) == (9000, "vmbr0", True)
    made = make(*(url, "subnet", auth.ADMIN), network_id=VMBR0, ip_version=4, cidr="10.7.0.0/24")
    assert call(f"{url}/subnets/{made['id']}", "DELETE", token=auth.ADMIN).status_code == 204


def test_quotas_and_a_cloud_without_tags(url: str, world: World) -> None:
    conf = world.conductor.cloud.conf
    make(url, "network")
    network = make(url, "network")["id"]
    make(url, "subnet", network_id=network, ip_version=4, cidr="10.1.0.0/24")
    details = call(f"{url}/quotas/demo/details").json()["quota"]
    assert details["network"] == {"limit": 100, "used": 2, "reserved": 0}
    assert details["subnet"] == {"limit": 100, "used": 1, "reserved": 0}
    conf.set_override("networks", 2, group="quota")
    conf.set_override("subnets", 1, group="quota")
    answer = call(f"{url}/networks", "POST", {"network": {}})
    assert refused(answer) == (409, "OverQuota")
    assert "['network']" in answer.json()["NeutronError"]["message"]
    subnet = {"network_id": network, "ip_version": 4, "cidr": "10.2.0.0/24"}
    answer = call(f"{url}/subnets", "POST", {"subnet": subnet})
    assert refused(answer) == (409, "OverQuota")
    conf.set_override("tenant_vlans", [], group="networks")
    reader = engine.reader(world.url)
    conductor: Any = Both(world)
    with served(make_app(a_conf(), reader, auth.header_auth, conductor)) as root:
        answer = call(f"{root}/v2.0/networks", "POST", {"network": {}}, auth.OTHER)
        assert refused(answer) == (409, "TenantNetworksDisabled")
    reader.dispose()


def test_the_network_of_those_who_name_none(url: str, world: World) -> None:
    base = f"{url}/auto-allocated-topology"
    several = call(f"{base}/demo")
    assert (several.status_code, several.json()["NeutronError"]) == (
        409,
        {
            "type": "AutoAllocationFailure",
            "message": "Deployment error: there are several networks, and [networks] auto names "
            "none.",
            "detail": "",
        },
    )
    assert call(f"{base}/demo?fields=dry-run").status_code == 409
    with world.conductor.store._writer.begin() as connection:
        connection.execute(schema.networks.delete().where(schema.networks.c.id == VMBR1))
    shown = call(f"{base}/demo").json()["auto_allocated_topology"]
    assert shown == {"id": VMBR0, "tenant_id": "demo", "project_id": "demo"}
    assert call(f"{base}/None").json()["auto_allocated_topology"] == shown
    passed = call(f"{base}/None?fields=dry-run").json()
    assert passed == {"auto_allocated_topology": {"id": "dry-run=pass"}}
    assert call(f"{base}/other").status_code == 403
    assert call(f"{base}/demo", token=auth.ADMIN).status_code == 200
    assert call(f"{base}/demo", "DELETE").status_code == 204
    assert call(f"{url}/networks/{VMBR0}").status_code == 200


def test_a_network_for_those_who_name_none(url: str, world: World) -> None:
    base = f"{url}/auto-allocated-topology"
    with world.conductor.store._writer.begin() as connection:
        connection.execute(schema.networks.delete())
    assert call(f"{base}/None?fields=dry-run").status_code == 200
    assert world.rows(schema.networks) == []
    made = call(f"{base}/demo").json()["auto_allocated_topology"]["id"]
    assert call(f"{base}/demo", token=auth.ADMIN).json()["auto_allocated_topology"]["id"] == made
    network = call(f"{url}/networks/{made}").json()["network"]
    assert (network["name"], network["project_id"]) == ("auto_allocated_network", "demo")
    [subnet] = call(f"{url}/subnets").json()["subnets"]
    assert (subnet["name"], subnet["cidr"]) == ("auto_allocated_subnet_v4", "10.255.0.0/24")
    assert subnet["gateway_ip"] is None
    other = call(f"{base}/None", token=auth.OTHER).json()["auto_allocated_topology"]["id"]
    assert other != made
    # Still that one, where the project has another.
    make(url, "network")
    assert call(f"{base}/demo").json()["auto_allocated_topology"]["id"] == made
    port = make(url, "port", network_id=made)["id"]
    assert refused(call(f"{base}/demo", "DELETE", token=auth.OTHER))[0] == 403
    assert refused(call(f"{base}/demo", "DELETE")) == (409, "NetworkInUse")
    call(f"{url}/ports/{port}", "DELETE")
    for _ in range(2):
        assert call(f"{base}/demo", "DELETE").status_code == 204
    assert call(f"{url}/networks/{made}").status_code == 404
    assert call(f"{base}/other", "DELETE", token=auth.ADMIN).status_code == 204


def share(url: str, network: str, target: str, token: str = auth.MEMBER) -> requests.Response:
    body = {
        "object_type": "network",
        "object_id": network,
        "target_tenant": target,
        "action": "access_as_shared",
    }
    return call(f"{url}/rbac-policies", "POST", {"rbac_policy": body}, token)


def test_a_network_is_shared_with_one_project(url: str, world: World) -> None:
    network = make(url, "network")["id"]
    subnet = make(url, "subnet", network_id=network, ip_version=4, cidr="10.1.0.0/24")["id"]
    answer = share(url, network, "other")
    assert answer.status_code == 201, answer.text
    made = answer.json()["rbac_policy"]
    assert made == {
        "id": made["id"],
        "project_id": "demo",
        "tenant_id": "demo",
        "object_type": "network",
        "object_id": network,
        "target_tenant": "other",
        "action": "access_as_shared",
    }
    one = f"{url}/rbac-policies/{made['id']}"
    assert call(one).json()["rbac_policy"] == made
    assert call(f"{url}/rbac-policies?target_tenant=other").json()["rbac_policies"] == [made]
    assert call(f"{url}/rbac-policies?object_type=qos").json()["rbac_policies"] == []
    assert call(f"{url}/rbac-policies", token=auth.OTHER).json()["rbac_policies"] == []
    for method, body in (("GET", None), ("PUT", {"rbac_policy": {}}), ("DELETE", None)):
        answer = call(one, method, body, auth.OTHER)
        assert refused(answer) == (404, "RbacPolicyNotFound")
    shown = call(f"{url}/networks/{network}", token=auth.OTHER).json()["network"]
    assert shown["shared"] is True
    assert call(f"{url}/networks/{network}").json()["network"]["shared"] is False
    assert subnet in seen(url, "subnet", auth.OTHER)
    port = make(url, "port", auth.OTHER, network_id=network)["id"]
    assert port in seen(url, "port")
    assert refused(call(one, "DELETE")) == (409, "RbacPolicyInUse")
    third = {"rbac_policy": {"target_tenant": "third"}}
    assert refused(call(one, "PUT", third)) == (409, "RbacPolicyInUse")
    everybody = {"rbac_policy": {"target_tenant": "*"}}
    assert refused(call(one, "PUT", everybody)) == (403, "PolicyNotAuthorized")
    assert call(one, "PUT", everybody, auth.ADMIN).status_code == 200
    assert call(f"{url}/networks/{network}").json()["network"]["shared"] is True
    assert refused(call(one, "DELETE")) == (409, "RbacPolicyInUse")
    assert share(url, network, "other").status_code == 201
    assert call(one, "DELETE").status_code == 204
    call(f"{url}/ports/{port}", "DELETE", token=auth.OTHER)
    assert call(f"{url}/networks/{network}", "DELETE").status_code == 204
    assert world.rows(schema.network_shares) == []


def test_shares_that_nobody_can_make(url: str, world: World) -> None:
    network = make(url, "network")["id"]
    assert share(url, network, "other").status_code == 201
    before = world.rows(schema.network_shares)
    assert refused(share(url, network, "other")) == (409, "DuplicateRbacPolicy")
    assert refused(share(url, VMBR0, "other", auth.ADMIN)) == (409, "DuplicateRbacPolicy")
    assert refused(share(url, network, "*")) == (403, "PolicyNotAuthorized")
    assert refused(share(url, network, "third", auth.OTHER)) == (400, "InvalidInput")
    assert refused(share(url, NOBODY, "other")) == (404, "NetworkNotFound")
    assert refused(share(url, network, "")) == (400, "HTTPBadRequest")
    good = {"object_type": "network", "object_id": network, "action": "access_as_shared"}
    for asked in (
        good,
        {**good, "target_tenant": "x", "object_type": "qos_policy"},
        {**good, "target_tenant": "x", "action": "access_as_external"},
        {**good, "target_tenant": "x", "object_id": "7"},
        {**good, "target_tenant": 7},
        {**good, "target_tenant": "x", "colour": "red"},
    ):
        answer = call(f"{url}/rbac-policies", "POST", {"rbac_policy": asked})
        assert answer.status_code == 400, answer.text
    world.conductor.cloud.conf.set_override("rbac_policies", 1, group="quota")
    answer = share(url, network, "third")
    assert refused(answer) == (409, "OverQuota")
    assert "['rbac_policy']" in answer.json()["NeutronError"]["message"]
    assert world.rows(schema.network_shares) == before
    details = call(f"{url}/quotas/demo/details").json()["quota"]
    assert details["rbac_policy"]["used"] == 1


def test_networks_on_vnets(world: World) -> None:
    conf = world.conductor.cloud.conf
    conf.set_override("tenant_vlans", [], group="networks")
    conf.set_override("tenant_vnets", ["*:tenants:5000-5001"], group="networks")
    reader = engine.reader(world.url)
    conductor: Any = Both(world)
    app = make_app(a_conf(), reader, auth.header_auth, conductor)
    with served(mounted(app, "/network")) as root:
        url = f"{root}/network/v2.0"
        mine = make(url, "network", name="mine")
        assert (mine["status"], mine["mtu"]) == ("BUILD", 1450)
        assert not any(name.startswith("provider:") for name in mine)
        path = f"{url}/networks/{mine['id']}"
        shown = call(path, token=auth.ADMIN).json()["network"]
        provider = {name: shown[name] for name in shown if name.startswith("provider:")}
        assert provider == {
            "provider:network_type": "vxlan",
            "provider:physical_network": None,
            "provider:segmentation_id": 5000,
        }
        for query in (
            "status=BUILD",
            "provider:network_type=vxlan",
            "provider:segmentation_id=5000",
        ):
            found = call(f"{url}/networks?{query}", token=auth.ADMIN).json()["networks"]
            assert [one["id"] for one in found] == [mine["id"]], query
        order = "sort_key=provider:physical_network&sort_dir=asc"
        listed = call(f"{url}/networks?{order}", token=auth.ADMIN)
        assert listed.json()["networks"][0]["id"] == mine["id"]
        asked = {"provider:network_type": "vxlan", "provider:segmentation_id": 5000}
        refused = call(f"{url}/networks", "POST", {"network": asked})
        assert refused.status_code == 403
        refused = call(f"{url}/networks", "POST", {"network": asked}, auth.ADMIN)
        assert refused.status_code == 409
        assert refused.json()["NeutronError"]["type"] == "TunnelIdInUse"
        asked["provider:physical_network"] = "vmbr0"
        refused = call(f"{url}/networks", "POST", {"network": asked}, auth.ADMIN)
        assert (refused.status_code, refused.json()["NeutronError"]["type"]) == (
            400,
            "InvalidInput",
        )
        for method, token, status in (
            ("GET", auth.OTHER, 404),
            ("DELETE", auth.OTHER, 404),
            ("DELETE", auth.MEMBER, 204),
            ("GET", auth.ADMIN, 404),
        ):
            assert call(path, method, token=token).status_code == status
    reader.dispose()
