"""The Network API over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
import requests
import sqlalchemy as sa

from api.network import absent
from api.network.app import make_app
from common import ids
from tests.fixtures import auth
from tests.fixtures.listings import a_conf, counted, mounted, served
from web import proxies

VMBR0, VMBR1, VMBR2 = (ids.named("network", name) for name in ("vmbr0", "vmbr1", "vmbr2"))
SUBNET = ids.named("subnet", "vmbr0/10.20.0.0/24")
PORT, STOPPED_PORT, PLAIN_PORT, OTHERS_PORT = (
    ids.named("port", number) for number in ("11", "12", "13", "21")
)
SERVER = ids.named("server", "11")


def call(
    url: str, method: str = "GET", token: str = auth.READER, **headers: str
) -> requests.Response:
    given = {"X-Auth-Token": token, **headers}
    return requests.request(method, url, headers=given, timeout=60)


def fault(answer: requests.Response) -> tuple[int, str, str]:
    error = answer.json()["NeutronError"]
    assert error["detail"] == ""
    return answer.status_code, error["type"], error["message"]


def found(url: str, path: str, token: str = auth.READER) -> list[Any]:
    """The IDs of a list."""
    answer = call(f"{url}/v2.0/{path}", token=token)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    return [each["id"] for each in body[path.partition("?")[0]]]


def test_versions_need_no_token(url: str) -> None:
    for path in (url, f"{url}/"):
        answer = requests.get(path, timeout=60)
        assert answer.status_code == 200
        links = [{"rel": "self", "href": f"{url}/v2.0/"}]
        expected = {"versions": [{"id": "v2.0", "status": "CURRENT", "links": links}]}
        assert answer.json() == expected


def test_the_other_ways_to_write_a_path(url: str) -> None:
    whole = call(f"{url}/v2.0/networks").json()
    for path in ("v2.0/networks.json", "/v2.0//networks", "v2.0/networks.json?"):
        assert call(f"{url}/{path}").json() == whole
    assert call(f"{url}/v2.0/networks/{VMBR0}.json").json()["network"]["id"] == VMBR0
    assert call(f"{url}/v2.0/networks.xml").status_code == 404
    assert requests.get(f"{url}/v2.0/networks.json", timeout=60).status_code == 401
    assert call(f"{url}/v2.0/ports.json", method="POST").status_code == 403


def test_a_path_that_ends_with_nothing_is_the_one_before_it(url: str) -> None:
    """Pecan, which routes Neutron's requests, serves it by the same controller."""
    for path in ("networks", f"networks/{VMBR0}", "ports", "quotas"):
        for method in ("GET", "POST", "PUT", "DELETE"):
            answers = [call(f"{url}/v2.0/{one}", method, auth.ADMIN) for one in (path, f"{path}/")]
            assert answers[0].status_code == answers[1].status_code
            assert answers[0].content == answers[1].content


@pytest.mark.parametrize("name", ["tags", "tags-any", "not-tags", "not-tags-any"])
@pytest.mark.parametrize(
    "path", ["security-group-rules", "address-groups", "default-security-group-rules"]
)
def test_what_has_no_tags_is_not_filtered_by_them(url: str, path: str, name: str) -> None:
    answer = call(f"{url}/v2.0/{path}?{name}=a", token=auth.ADMIN)
    assert fault(answer)[::2] == (400, f"['{name}'] is invalid attribute for filtering")


def test_everything_else_needs_a_token(url: str) -> None:
    for path in ("/v2.0/", "/v2.0/networks", "/v2.0/extensions"):
        answer = requests.get(f"{url}{path}", timeout=60)
        assert answer.status_code == 401
        assert answer.headers["x-openstack-request-id"].startswith("req-")


def test_the_index(url: str) -> None:
    for path in ("/v2.0", "/v2.0/"):
        resources = call(f"{url}{path}").json()["resources"]
        assert [each["collection"] for each in resources] == [
            *("networks", "subnets", "ports", "security_groups", "security_group_rules")
        ]
        assert resources[0]["links"][0]["href"] == f"{url}/v2.0/networks"


def test_a_network_as_neutron_shows_it(url: str) -> None:
    network = call(f"{url}/v2.0/networks/{VMBR1}").json()["network"]
    assert network == {
        "id": VMBR1,
        "name": "vmbr1",
        "tenant_id": "",
        "project_id": "",
        "description": "",
        "tags": [],
        "admin_state_up": True,
        "is_default": False,
        "availability_zone_hints": [],
        "mtu": 9000,
        "status": "ACTIVE",
        "subnets": [ids.named("subnet", "vmbr1/10.30.0.0/24")],
        "shared": True,
        "router:external": False,
        "port_security_enabled": False,
        "created_at": "2026-01-31T12:00:00Z",
        "updated_at": "2026-01-31T12:00:00Z",
        "revision_number": 0,
    }


def test_administrators_see_bridge_and_vlan(url: str) -> None:
    def provider(network_id: str) -> list[Any]:
        network = call(f"{url}/v2.0/networks/{network_id}", token=auth.ADMIN).json()["network"]
        parts = ("network_type", "physical_network", "segmentation_id")
        return [network[f"provider:{part}"] for part in parts]

    assert provider(VMBR0) == ["flat", "vmbr0", None]
    assert provider(VMBR1) == ["vlan", "vmbr1", 40]


def test_a_subnet_as_neutron_shows_it(url: str) -> None:
    subnet = call(f"{url}/v2.0/subnets/{SUBNET}").json()["subnet"]
    assert subnet == {
        "id": SUBNET,
        "name": "vmbr0-10.20.0.0-24",
        "tenant_id": "",
        "project_id": "",
        "description": "",
        "tags": [],
        "network_id": VMBR0,
        "ip_version": 4,
        "cidr": "10.20.0.0/24",
        "gateway_ip": "10.20.0.1",
        "allocation_pools": [{"start": "10.20.0.10", "end": "10.20.0.99"}],
        "dns_nameservers": ["192.0.2.53"],
        "host_routes": [],
        "enable_dhcp": False,
        "subnetpool_id": None,
        "ipv6_ra_mode": None,
        "ipv6_address_mode": None,
        "created_at": "2026-01-31T12:00:00Z",
        "updated_at": "2026-01-31T12:00:00Z",
        "revision_number": 0,
    }


def test_a_port_as_neutron_shows_it(url: str) -> None:
    port = call(f"{url}/v2.0/ports/{PORT}").json()["port"]
    shown = {
        "id": PORT,
        "name": "",
        "description": "",
        "tags": [],
        "network_id": VMBR0,
        "tenant_id": "demo",
        "project_id": "demo",
        "mac_address": "fa:16:3e:00:00:0b",
        "admin_state_up": True,
        "status": "ACTIVE",
        "device_id": SERVER,
        "device_owner": "compute:az1",
        "fixed_ips": [{"subnet_id": SUBNET, "ip_address": "10.20.0.11"}],
        "security_groups": [],
        "allowed_address_pairs": [],
        "port_security_enabled": False,
        "binding:vnic_type": "normal",
        "created_at": "2026-01-31T12:00:00Z",
        "updated_at": "2026-01-31T12:00:00Z",
        "revision_number": 0,
    }
    assert port == shown
    binding = {
        "binding:vif_type": "bridge",
        "binding:vif_details": {
            "connectivity": "l2",
            "port_filter": False,
            "bridge_name": "vmbr0",
        },
        "binding:profile": {},
        "binding:host_id": "pve1",
    }
    for token in (auth.ADMIN, auth.token("nova", "service", "service")):
        assert call(f"{url}/v2.0/ports/{PORT}", token=token).json()["port"] == shown | binding


def test_ports_without_a_running_server_or_an_address(url: str) -> None:
    stopped = call(f"{url}/v2.0/ports/{STOPPED_PORT}", token=auth.ADMIN).json()["port"]
    assert (stopped["status"], stopped["device_owner"]) == ("DOWN", "compute:nova")
    assert stopped["binding:host_id"] == ""
    plain = call(f"{url}/v2.0/ports/{PLAIN_PORT}").json()["port"]
    assert (plain["status"], plain["fixed_ips"]) == ("DOWN", [])


def test_projects_see_their_own_ports(url: str) -> None:
    own = {PORT, STOPPED_PORT, PLAIN_PORT}
    assert set(found(url, "ports")) == own
    assert set(found(url, "ports", auth.OTHER)) == {OTHERS_PORT}
    assert set(found(url, "ports", auth.ADMIN)) == own | {OTHERS_PORT}
    assert found(url, "ports?project_id=other") == []
    assert found(url, "ports?tenant_id=other", auth.ADMIN) == [OTHERS_PORT]
    answer = call(f"{url}/v2.0/ports/{OTHERS_PORT}")
    message = f"Port {OTHERS_PORT} could not be found."
    assert fault(answer) == (404, "PortNotFound", message)


@pytest.mark.parametrize("token", [auth.token("u", "demo", "nothing"), auth.SYSTEM])
def test_who_may_not_read_ports(url: str, token: str) -> None:
    assert found(url, "ports", token) == []
    assert call(f"{url}/v2.0/ports/{PORT}", token=token).status_code == 404


def test_a_system_token_is_none_of_a_project(url: str) -> None:
    assert found(url, "networks", auth.SYSTEM) == []
    assert found(url, "subnets", auth.SYSTEM) == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("networks?name=vmbr0", [VMBR0]),
        ("networks?name=vmbr0&name=vmbr2", [VMBR0, VMBR2]),
        (f"networks?id={VMBR1}", [VMBR1]),
        ("networks?name=nothing", []),
        ("networks?name=", []),
        ("networks?mtu=9000", [VMBR1]),
        ("networks?router:external=True", []),
        ("networks?router%3Aexternal=false&name=vmbr0", [VMBR0]),
        ("networks?shared=1&name=vmbr0", [VMBR0]),
        ("networks?shared=0", []),
        ("networks?admin_state_up=TRUE&status=ACTIVE&name=vmbr0", [VMBR0]),
        ("networks?status=DOWN", []),
        ("networks?project_id=demo", []),
        ("networks?tags=a", []),
        ("networks?not-tags=a&name=vmbr0", [VMBR0]),
        (f"subnets?network_id={VMBR0}", [SUBNET]),
        ("subnets?cidr=10.20.0.0/24", [SUBNET]),
        ("subnets?gateway_ip=10.20.0.1", [SUBNET]),
        ("subnets?gateway_ip=", [ids.named("subnet", "vmbr1/10.30.0.0/24")]),
        ("subnets?ip_version=6", []),
        ("subnets?enable_dhcp=true", []),
        ("subnets?subnetpool_id=x", []),
        (f"ports?device_id={SERVER}", [PORT]),
        ("ports?device_owner=compute:az1", [PORT]),
        ("ports?status=DOWN&fixed_ips=ip_address=10.20.0.12", [STOPPED_PORT]),
        (f"ports?fixed_ips=subnet_id={SUBNET}&status=ACTIVE", [PORT]),
        ("ports?fixed_ips=ip_address_substr=.0.11", [PORT]),
        ("ports?fixed_ips=ip_address_substr=%25", []),
        ("ports?mac_address=FA:16:3E:00:00:0B", [PORT]),
        (f"ports?network_id={VMBR2}", [PLAIN_PORT]),
        ("ports?security_groups=x", []),
        ("ports?binding:vnic_type=direct", []),
    ],
)
def test_filters(url: str, path: str, expected: list[str]) -> None:
    assert sorted(found(url, path)) == sorted(expected)


def test_administrators_filter_by_what_they_see(url: str) -> None:
    assert found(url, "networks?provider:network_type=vlan", auth.ADMIN) == [VMBR1]
    assert found(url, "networks?provider:segmentation_id=40", auth.ADMIN) == [VMBR1]
    physical = "networks?provider:physical_network=vmbr2"
    assert found(url, physical, auth.ADMIN) == [VMBR2]
    assert set(found(url, "ports?binding:host_id=pve1", auth.ADMIN)) == {PORT, OTHERS_PORT}
    assert call(f"{url}/v2.0/{physical}").status_code == 400
    assert call(f"{url}/v2.0/ports?binding:host_id=pve1").status_code == 400


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("nothing=1", "HTTPBadRequest"),
        ("mtu=x", "InvalidInput"),
        ("shared=x", "InvalidInput"),
        ("limit=x", "BadRequest"),
        ("limit=-1", "BadRequest"),
        ("sort_key=name", "HTTPBadRequest"),
        ("sort_key=nothing&sort_dir=asc", "HTTPBadRequest"),
        ("sort_key=name&sort_dir=up", "HTTPBadRequest"),
    ],
)
def test_wrong_queries_are_refused(url: str, query: str, kind: str) -> None:
    assert fault(call(f"{url}/v2.0/networks?{query}"))[:2] == (400, kind)


def test_wrong_addresses_are_refused(url: str) -> None:
    assert call(f"{url}/v2.0/subnets?gateway_ip=x").status_code == 400
    assert call(f"{url}/v2.0/ports?fixed_ips=10.0.0.1").status_code == 400
    assert call(f"{url}/v2.0/networks?fixed_ips=ip_address=10.0.0.1").status_code == 400


def test_fields(url: str) -> None:
    body = call(f"{url}/v2.0/networks?name=vmbr0&fields=id&fields=name&fields=nothing").json()
    assert body == {"networks": [{"id": VMBR0, "name": "vmbr0"}]}
    one = call(f"{url}/v2.0/networks/{VMBR0}?fields=mtu").json()
    assert one == {"network": {"mtu": 1500}}
    hidden = call(f"{url}/v2.0/networks/{VMBR0}?fields=provider:network_type").json()
    assert hidden == {"network": {}}


def test_sorting(url: str) -> None:
    order = "sort_key=mtu&sort_dir=desc&sort_key=name&sort_dir=asc"
    assert found(url, f"networks?{order}") == [VMBR1, VMBR0, VMBR2]
    constant = "sort_key=status&sort_dir=desc&sort_key=name&sort_dir=desc"
    assert found(url, f"networks?{constant}") == [VMBR2, VMBR1, VMBR0]
    vlan = "sort_key=provider:segmentation_id&sort_dir=desc"
    assert found(url, f"networks?{vlan}", auth.ADMIN)[0] == VMBR1


def test_pages_forth_and_back(url: str) -> None:
    def page(href: str) -> tuple[list[str], dict[str, str]]:
        body = call(href).json()
        links = {link["rel"]: link["href"] for link in body.get("networks_links", [])}
        return [each["id"] for each in body["networks"]], links

    whole, links = page(f"{url}/v2.0/networks")
    assert (len(whole), links) == (3, {})
    first, links = page(f"{url}/v2.0/networks?limit=2&shared=true")
    assert first == whole[:2]
    assert links["next"] == f"{url}/v2.0/networks?limit=2&shared=true&marker={whole[1]}"
    second, links = page(links["next"])
    assert second == whole[2:]
    assert set(links) == {"previous"}
    back, links = page(links["previous"])
    assert back == whole[:2]
    assert links["previous"].endswith(f"marker={whole[0]}&page_reverse=True")
    before, links = page(links["previous"])
    assert (before, set(links)) == ([], {"next"})


def test_a_missing_marker(url: str) -> None:
    answer = call(f"{url}/v2.0/networks?limit=1&marker=x")
    assert fault(answer) == (404, "NetworkNotFound", "Network x could not be found.")


def test_what_is_not_there_is_not_found(url: str) -> None:
    for noun in ("Network", "Subnet", "Port"):
        answer = call(f"{url}/v2.0/{noun.lower()}s/x")
        assert fault(answer) == (404, f"{noun}NotFound", f"{noun} x could not be found.")
    sentence = "The resource could not be found."
    assert fault(call(f"{url}/v2.0/ndp_proxies")) == (404, "HTTPNotFound", sentence)
    assert fault(call(f"{url}/v2.0/extensions/agent"))[0] == 404


@pytest.mark.parametrize("noun", ["network", "subnet", "port"])
def test_changes_are_forbidden_even_to_administrators(url: str, noun: str) -> None:
    known = {"network": VMBR0, "subnet": SUBNET, "port": PORT}[noun]
    create = call(f"{url}/v2.0/{noun}s", "POST", auth.ADMIN)
    assert fault(create)[:2] == (403, "PolicyNotAuthorized")
    assert f"create_{noun}" in fault(create)[2]
    for method in ("PUT", "DELETE"):
        path = f"{url}/v2.0/{noun}s"
        assert call(f"{path}/{known}", method, auth.ADMIN).status_code == 403
        assert call(f"{path}/x", method, auth.ADMIN).status_code == 404
        assert call(path, method, auth.ADMIN).status_code == 405
    assert call(f"{url}/v2.0/ports/{OTHERS_PORT}", "DELETE").status_code == 404


def test_what_a_cloud_of_bridges_has_none_of(url: str) -> None:
    aliases = {each["alias"] for each in call(f"{url}/v2.0/extensions").json()["extensions"]}
    assert not {"router", "agent", "subnet_allocation", "trunk", "qos", "segment"} & aliases
    for path, noun in absent.NOUNS.items():
        plural = path.rpartition("/")[2].replace("-", "_")
        assert call(f"{url}/v2.0/{path}").json() == {plural: []}
        assert call(f"{url}/v2.0/{path}?name=x&fields=id&limit=1").json() == {plural: []}
        made = fault(call(f"{url}/v2.0/{path}", "POST", auth.ADMIN))
        assert made[:2] == (404, "HTTPNotFound")
        assert f"This cloud has no {noun.several}." in made[2]
        for method in ("GET", "PUT", "DELETE"):
            answer = fault(call(f"{url}/v2.0/{path}/x", method, auth.ADMIN))
            assert answer[:2] == (404, noun.error)
            assert answer[2].startswith(f"{noun.singular} x could not be found. This cloud has no")


def test_extensions(url: str) -> None:
    listed = call(f"{url}/v2.0/extensions").json()["extensions"]
    aliases = {each["alias"] for each in listed}
    assert {"provider", "binding", "net-mtu"} <= aliases
    assert not {"router", "trunk", "agent"} & aliases
    assert {"standard-attr-revisions", "standard-attr-timestamp"} <= aliases
    one = call(f"{url}/v2.0/extensions/provider").json()["extension"]
    assert one in listed
    assert set(one) == {"alias", "name", "description", "updated", "links"}


def test_quotas(url: str) -> None:
    for path in ("demo", "demo/default"):
        quota = call(f"{url}/v2.0/quotas/{path}", token=auth.READER).json()["quota"]
        assert (quota["port"], quota["network"], quota["router"]) == (500, 100, 0)
        # Neutron names no project here, and Horizon takes every value for a limit.
        assert {type(value) for value in quota.values()} == {int}
    assert call(f"{url}/v2.0/quotas/other", token=auth.READER).status_code == 403
    assert call(f"{url}/v2.0/quotas/other", token=auth.ADMIN).status_code == 200
    assert call(f"{url}/v2.0/quotas/demo/x", token=auth.READER).status_code == 404
    assert call(f"{url}/v2.0/quotas", token=auth.ADMIN).json() == {"quotas": []}
    assert call(f"{url}/v2.0/quotas", token=auth.READER).status_code == 403


def test_quotas_with_what_is_used(url: str) -> None:
    quota = call(f"{url}/v2.0/quotas/demo/details", token=auth.READER).json()["quota"]
    ports = call(f"{url}/v2.0/ports", token=auth.READER).json()["ports"]
    assert quota["port"] == {"limit": 500, "used": len(ports), "reserved": 0}
    assert quota["network"] == {"limit": 100, "used": 0, "reserved": 0}
    assert call(f"{url}/v2.0/quotas/other/details", token=auth.READER).status_code == 403
    aliases = {one["alias"] for one in call(f"{url}/v2.0/extensions").json()["extensions"]}
    assert {"quotas", "quota_details"} <= aliases


def test_an_api_without_a_conductor_says_what_it_refuses(url: str) -> None:
    door = f"{url}/v2.0/quotas/demo"
    limits, admin = {"quota": {"network": 5}}, {"X-Auth-Token": auth.ADMIN}
    answer = requests.put(door, json=limits, headers=admin, timeout=60)
    assert "Quotas can't be changed through this API" in fault(answer)[2]
    assert call(door, "DELETE", token=auth.READER).status_code == 403
    assert fault(call(door, "DELETE", token=auth.ADMIN))[:2] == (404, "TenantQuotaNotFound")


def test_links_follow_the_proxy(url: str, database: sa.Engine) -> None:
    forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "cloud.example"}
    answer = call(f"{url}/", **forwarded)
    href = answer.json()["versions"][0]["links"][0]["href"]
    assert href == f"{url}/v2.0/"
    conf = a_conf()
    proxies.register(conf)
    conf.set_override("trusted_proxies", ["127.0.0.1"], group="web")
    app = make_app(conf, database, auth.header_auth)
    with served(mounted(app, "/network")) as root:
        answer = call(f"{root}/network/", **forwarded)
    href = answer.json()["versions"][0]["links"][0]["href"]
    assert href == "https://cloud.example/network/v2.0/"


def test_the_number_of_statements_is_constant(database: sa.Engine) -> None:
    conf = a_conf()
    app = make_app(conf, database, auth.header_auth)
    # Where it is auto, the clusters' answer is read besides, every few seconds.
    conf.set_override("firewall", "off", group="networks")
    with served(app) as root, counted(database) as statements:
        call(f"{root}/v2.0/networks")
        assert statements() == 2
        call(f"{root}/v2.0/networks?limit=1&marker={VMBR0}&sort_key=name&sort_dir=asc")
        assert statements() == 5
        call(f"{root}/v2.0/ports")
        assert statements() == 7
        call(f"{root}/v2.0/ports?shared=x&limit=1&marker={PORT}")
        call(f"{root}/v2.0/ports?limit=1&marker={PORT}")
        assert statements() == 9


def test_what_is_not_there_says_why_wherever_it_is_asked_for(url: str) -> None:
    admin = {"X-Auth-Token": auth.ADMIN}
    for path, words in (
        ("routers", "which routes nothing"),
        ("floatingips", "This cloud has no floating IPs. Without routers nothing translates"),
        ("trunks", "carries one network"),
        ("qos/policies", "no QoS policies. Nothing here limits or marks the traffic"),
    ):
        for method, below in (
            ("POST", ""),
            ("GET", "/x"),
            ("PUT", "/x"),
            ("DELETE", "/x"),
            ("PUT", "/x/add_router_interface"),
            ("POST", "/x/bandwidth_limit_rules"),
            ("DELETE", "/x/tags/y"),
        ):
            door = f"{url}/v2.0/{path}{below}"
            answer = requests.request(method, door, json={}, headers=admin, timeout=60)
            assert answer.status_code == 404, (method, door)
            assert words in fault(answer)[2], (method, door)
    assert "which routes nothing" in fault(call(f"{url}/v2.0/extensions/router"))[2]
    assert fault(call(f"{url}/v2.0/extensions/x"))[2] == "Extension with alias x does not exist"


def test_how_many_addresses_are_in_use(url: str) -> None:
    listed = call(f"{url}/v2.0/network-ip-availabilities", token=auth.ADMIN)
    found = listed.json()["network_ip_availabilities"]
    assert [one["network_name"] for one in found] == ["vmbr0", "vmbr1", "vmbr2"]
    first = found[0]
    (subnet,) = first["subnet_ip_availability"]
    assert (subnet["cidr"], subnet["ip_version"], subnet["used_ips"]) == ("10.20.0.0/24", 4, 3)
    assert (first["used_ips"], first["total_ips"]) == (3, subnet["total_ips"])
    assert found[2]["subnet_ip_availability"] == []
    assert (found[2]["used_ips"], found[2]["total_ips"]) == (0, 0)
    one = call(f"{url}/v2.0/network-ip-availabilities/{VMBR0}", token=auth.ADMIN)
    assert one.json() == {"network_ip_availability": first}
    for query, names in (
        ("network_name=vmbr1", ["vmbr1"]),
        (f"network_id={VMBR0}&network_id={VMBR1}", ["vmbr0", "vmbr1"]),
        ("ip_version=6", []),
        ("project_id=demo", []),
    ):
        door = f"{url}/v2.0/network-ip-availabilities?{query}"
        rows = call(door, token=auth.ADMIN).json()["network_ip_availabilities"]
        assert [row["network_name"] for row in rows] == names, query
    door = f"{url}/v2.0/network-ip-availabilities"
    assert call(f"{door}?colour=red", token=auth.ADMIN).status_code == 400
    assert fault(call(f"{door}/x", token=auth.ADMIN))[:2] == (404, "NetworkNotFound")
    assert call(door).status_code == 403
    assert call(f"{door}/{VMBR0}").status_code == 403
