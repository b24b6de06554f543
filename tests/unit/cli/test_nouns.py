"""The other nouns: flavors, images, networks, keypairs, services, nodes, quotas, tokens."""

from __future__ import annotations

import datetime
import json
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from openstack import exceptions
from openstack.compute.v2.flavor import Flavor
from openstack.compute.v2.hypervisor import Hypervisor
from openstack.compute.v2.keypair import Keypair
from openstack.compute.v2.limits import AbsoluteLimits
from openstack.compute.v2.quota_set import QuotaSet
from openstack.compute.v2.service import Service
from openstack.image.v2.image import Image
from openstack.network.v2.network import Network
from openstack.network.v2.port import Port
from openstack.network.v2.subnet import Subnet

from cli.quota import quota_rows
from tests.fixtures.sdk import FakeConnection, FakeProxy, run

# the SDK warns of its own future whenever it makes a resource
pytestmark = pytest.mark.filterwarnings(
    "ignore:The _compute_attributes method is deprecated",
    "ignore:The field .* has been deprecated",
)


def rows(connection: FakeConnection, *argv: str) -> Any:
    """What a command shows, as JSON."""
    ran = run(connection, *argv, "-f", "json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def a_flavor(**changes: Any) -> Flavor:
    """A public flavor."""
    body = {"id": "1", "name": "small", "ram": 512, "vcpus": 1, "disk": 4, "extra_specs": {}}
    return Flavor(**{**body, "os-flavor-access:is_public": True, **changes})


def test_flavors() -> None:
    compute = FakeProxy(flavors=[a_flavor()], fetch_flavor_extra_specs=None)
    [row] = rows(FakeConnection(compute), "flavor", "list")
    assert list(row) == ["ID", "Name", "RAM", "Disk", "Ephemeral", "VCPUs", "Is Public"]
    [row] = rows(FakeConnection(compute), "flavor", "list", "--all", "--long")
    assert list(row)[-3:] == ["Swap", "RXTX Factor", "Properties"]
    assert [query["is_public"] for _, query in compute.called("flavors")] == [True, None]


def test_flavor_show() -> None:
    private = a_flavor(**{"os-flavor-access:is_public": False})
    compute = FakeProxy(find_flavor=private, get_flavor_access=[{"tenant_id": "p7"}])
    shown = rows(FakeConnection(compute), "flavor", "show", "small")
    assert shown["access_project_ids"] == ["p7"]
    assert shown["os-flavor-access:is_public"] is False
    assert "OS-FLV-EXT-DATA:ephemeral" in shown


def test_flavor_create() -> None:
    compute = FakeProxy(
        create_flavor=lambda **_: a_flavor(),
        create_flavor_extra_specs=a_flavor(extra_specs={"k": "v"}),
        flavor_add_tenant_access=None,
    )
    identity = FakeProxy(find_project=exceptions.ForbiddenException("not for you"))
    connection = FakeConnection(compute, identity=identity)
    argv = ["--ram", "512", "--private", "--project", "p7", "--property", "k=v", "small"]
    assert rows(connection, "flavor", "create", *argv)["properties"] == {"k": "v"}
    [(_, sent)] = compute.called("create_flavor")
    assert (sent["ram"], sent["vcpus"], sent["is_public"], "id" in sent) == (512, 1, False, False)
    assert compute.called("flavor_add_tenant_access")[0][0] == ("1", "p7")
    assert run(connection, "flavor", "create", "--project", "p", "x").code == 1


def test_flavor_set_unset_delete() -> None:
    names = (
        *("update_flavor", "delete_flavor_extra_specs_property", "create_flavor_extra_specs"),
        *("flavor_add_tenant_access", "flavor_remove_tenant_access", "delete_flavor"),
    )
    compute = FakeProxy(find_flavor=a_flavor(extra_specs={"o": "1"}), **dict.fromkeys(names))
    connection = FakeConnection(compute)
    argv = ["small", "--no-property", "--property", "a=b", "--description", "d"]
    assert run(connection, "flavor", "set", *argv).code == 0
    assert compute.called("delete_flavor_extra_specs_property")[0][0] == ("1", "o")
    assert run(connection, "flavor", "unset", "small", "--property", "a").code == 0
    assert run(connection, "flavor", "delete", "small").code == 0
    assert compute.called("delete_flavor")[0][0] == ("1",)
    assert run(connection, "flavor", "set", "small", "--project", "p").code == 1


def test_images() -> None:
    body = {"id": "i", "name": "debian", "status": "active", "os_distro": "debian", "size": 5}
    image = Image(**body)
    connection = FakeConnection(image=FakeProxy(images=[image], find_image=image))
    assert rows(connection, "image", "list") == [{"ID": "i", "Name": "debian", "Status": "active"}]
    assert rows(connection, "image", "list", "--property", "os_distro=arch") == []
    assert len(rows(connection, "image", "list", "--property", "os_distro=debian")) == 1
    shown = rows(connection, "image", "show", "debian")
    assert shown["size"] == 5
    assert shown["properties"]["os_distro"] == "debian"


def test_networks_subnets_ports() -> None:
    network = Network(id="n", name="vmbr0", subnets=["s"])
    subnet = Subnet(
        id="s",
        name="lan",
        network_id="n",
        cidr="10.0.0.0/24",
        dns_nameservers=["9.9.9.9", "1.1.1.1"],
        allocation_pools=[{"start": "10.0.0.2", "end": "10.0.0.9"}],
    )
    port = Port(id="p", name="", mac_address="02:00", fixed_ips=[{"ip_address": "10.0.0.2"}])
    proxy = FakeProxy(networks=[network], find_network=network, subnets=[subnet], ports=[port])
    compute = FakeProxy(find_server=SimpleNamespace(id="u"))
    connection = FakeConnection(compute, network=proxy)
    assert rows(connection, "network", "list") == [{"ID": "n", "Name": "vmbr0", "Subnets": ["s"]}]
    assert rows(connection, "network", "show", "vmbr0")["subnets"] == ["s"]
    [long] = rows(connection, "subnet", "list", "--long", "--network", "vmbr0")
    assert long["Name Servers"] == ["9.9.9.9", "1.1.1.1"]
    table = run(connection, "subnet", "list", "--long").out
    assert "9.9.9.9, 1.1.1.1" in table
    assert "10.0.0.2-10.0.0.9" in table
    assert rows(connection, "port", "list", "--server", "web")[0]["MAC Address"] == "02:00"
    assert proxy.called("ports")[0][1] == {"device_id": "u"}


def test_keypair_generated_into_a_file_only_its_owner_reads(tmp_path: Path) -> None:
    made = Keypair(name="k", fingerprint="aa")
    compute = FakeProxy(create_keypair=lambda **_: made)
    file = tmp_path / "id"
    argv = ("keypair", "create", "k", "--private-key", str(file))
    shown = rows(FakeConnection(compute), *argv)
    assert not shown.keys() & {"public_key", "private_key"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "OPENSSH PRIVATE KEY" in file.read_text()
    [(_, sent)] = compute.called("create_keypair")
    assert sent["public_key"].startswith("ssh-ed25519 ")
    again = run(FakeConnection(compute), *argv)
    assert again.code == 1
    assert "never overwritten" in again.err
    assert len(compute.called("create_keypair")) == 1


def test_keypair_printed_or_added(tmp_path: Path) -> None:
    compute = FakeProxy(create_keypair=lambda **_: Keypair(name="k", fingerprint="aa"))
    connection = FakeConnection(compute)
    printed = run(connection, "keypair", "create", "k")
    assert printed.out.startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    (tmp_path / "pub").write_text("ssh-rsa AAAA me\n")
    assert run(connection, "keypair", "create", "k", "--public-key", f"{tmp_path}/pub").code == 0
    assert compute.called("create_keypair")[1][1]["public_key"] == "ssh-rsa AAAA me"
    missing = run(connection, "keypair", "create", "k", "--public-key", f"{tmp_path}/no")
    assert (missing.code, "Can't read" in missing.err) == (1, True)


def test_keypairs_listed_shown_deleted() -> None:
    key = Keypair(name="k", fingerprint="aa", type="ssh", public_key="ssh-rsa AAAA me")
    compute = FakeProxy(keypairs=[key], find_keypair=key, delete_keypair=None)
    identity = FakeProxy(find_user=SimpleNamespace(id="u9"))
    connection = FakeConnection(compute, identity=identity)
    assert rows(connection, "keypair", "list", "--user", "bob")[0]["Fingerprint"] == "aa"
    assert compute.called("keypairs")[0][1] == {"user_id": "u9"}
    assert "public_key" not in rows(connection, "keypair", "show", "k")
    only = run(connection, "keypair", "show", "k", "--public-key").out
    assert only.startswith("ssh-rsa AAAA me\n")
    assert run(connection, "keypair", "delete", "k").code == 0


def a_service(**changes: Any) -> Service:
    """A compute service that is up."""
    body = {"id": "s1", "binary": "nova-compute", "host": "pve1", "zone": "c1"}
    return Service(**{**body, "status": "enabled", "state": "up", **changes})


def a_hypervisor(**changes: Any) -> Hypervisor:
    """A hypervisor as microversion 2.53 shows it."""
    body = {
        "id": "h1",
        "hypervisor_hostname": "pve1",
        "service": {"id": "s1", "host": "pve1"},
        "vcpus": 8,
        "vcpus_used": 2,
        "memory_mb": 16384,
        "memory_mb_used": 2048,
        "local_gb": 100,
        "local_gb_used": 10,
        "running_vms": 3,
        "cpu_info": {"arch": "x86_64"},
    }
    return Hypervisor(**{**body, **changes})


def test_nodes_are_services_with_their_hypervisors() -> None:
    services = [
        a_service(host="pve3", state="down", updated_at="2026-01-01"),
        a_service(host="pve2", status="disabled", disabled_reason="new disk"),
        a_service(),
    ]
    compute = FakeProxy(services=services, hypervisors=[a_hypervisor()])
    shown = rows(FakeConnection(compute), "node", "list")
    assert [row["Host"] for row in shown] == ["pve1", "pve2", "pve3"]
    assert shown[0]["VCPUs"] == {"used": 2, "total": 8}
    assert [row["Health"] for row in shown] == [
        *("ok", "disabled: new disk", "no sign of life since 2026-01-01")
    ]
    text = run(FakeConnection(compute), "node", "list").out
    assert "| 2/8   | 2048/16384 | 10/100   | 3   | ok" in text
    assert "| -/-" in text


def test_nodes_enabled_and_disabled() -> None:
    compute = FakeProxy(
        services=lambda host, binary: [a_service()] if host == "pve1" else [],
        enable_service=None,
        disable_service=None,
    )
    connection = FakeConnection(compute)
    assert run(connection, "node", "disable", "pve1", "--reason", "new disk").code == 0
    [(args, _)] = compute.called("disable_service")
    assert args == ("s1", "pve1", "nova-compute", "new disk")
    assert run(connection, "node", "enable", "pve1").code == 0
    nowhere = run(connection, "node", "enable", "pve9")
    assert (nowhere.code, nowhere.err) == (1, "No nova-compute on host pve9\n")


def test_compute_services() -> None:
    names = ("enable_service", "disable_service", "update_service_forced_down", "delete_service")
    compute = FakeProxy(services=lambda **_: [a_service()], **dict.fromkeys(names))
    connection = FakeConnection(compute)
    [row] = rows(connection, "compute", "service", "list", "--long")
    assert (row["Binary"], row["Zone"], row["Forced Down"]) == ("nova-compute", "c1", None)
    service = ("compute", "service", "set", "pve1", "nova-compute")
    assert run(connection, *service, "--disable", "--disable-reason", "r", "--down").code == 0
    assert compute.called("update_service_forced_down")[0][0][3] is True
    assert run(connection, *service, "--disable-reason", "r").code == 1
    assert run(connection, "compute", "service", "delete", "s1").code == 0


@pytest.mark.parametrize(("newest", "numbers"), [("2.53", True), ("2.88", False)])
def test_hypervisors(newest: str, numbers: bool) -> None:
    node = a_hypervisor()
    compute = FakeProxy(
        newest,
        hypervisors=[node],
        find_hypervisor=node,
        get_hypervisor=lambda _: node,
        get_hypervisor_uptime={"uptime": " 17:37 up  2:33,  3 users,  load average: 0.3, 0.3, 1"},
        aggregates=[
            SimpleNamespace(name="ssd", hosts=["pve1"]),
            SimpleNamespace(name="hdd", hosts=["pve2"]),
        ],
    )
    connection = FakeConnection(compute)
    [row] = rows(connection, "hypervisor", "list", "--long")
    assert ("vCPUs Used" in row) is numbers
    shown = rows(connection, "hypervisor", "show", "pve1")
    assert shown["service_host"] == "pve1"
    assert ("vcpus" in shown) is numbers
    assert shown["aggregates"] == ["ssd"]
    assert shown.get("load_average") == ("0.3, 0.3, 1" if numbers else None)


def test_zones() -> None:
    hosts = {"pve1": {"nova-compute": {"active": True, "available": True, "updated_at": "T"}}}
    zone = SimpleNamespace(name="c1", state={"available": True}, hosts=hosts)
    connection = FakeConnection(FakeProxy(availability_zones=[zone]))
    short = rows(connection, "availability", "zone", "list")
    assert short == [{"Zone Name": "c1", "Zone Status": "available"}]
    [long] = rows(connection, "availability", "zone", "list", "--long")
    assert long["Service Status"] == "enabled :-) T"


def test_quotas() -> None:
    quotas = QuotaSet(cores=20, instances=5, usage={"cores": 3})
    other = QuotaSet(cores=20, instances=10)
    compute = FakeProxy(
        get_quota_set=quotas, get_quota_set_defaults=other, update_quota_set=lambda *_, **__: None
    )
    identity = FakeProxy(
        projects=[SimpleNamespace(id="p1")], find_project=SimpleNamespace(id="p2")
    )
    connection = FakeConnection(compute, identity=identity)
    used = {row["Resource"]: row for row in rows(connection, "quota", "show", "--usage")}
    assert used["cores"] == {"Resource": "cores", "Limit": 20, "In Use": 3, "Reserved": 0}
    assert compute.called("get_quota_set")[0][0] == ("p1",)
    assert rows(connection, "quota", "list", "--compute")[0]["Instances"] == 5
    assert run(connection, "quota", "set", "demo", "--instances", "0", "--force").code == 0
    assert compute.called("update_quota_set")[0] == (("p2",), {"instances": 0, "force": True})
    assert run(connection, "quota", "set", "demo").code == 1


def test_keypairs_have_no_use_by_a_project() -> None:
    assert quota_rows({"key_pairs": 100}, usage=True)[1] == [("key-pairs", 100, "N/A", 0)]


def test_limits() -> None:
    limits = SimpleNamespace(absolute=AbsoluteLimits(maxTotalCores=20, totalCoresUsed=3))
    connection = FakeConnection(FakeProxy(get_limits=limits))
    shown = {row["Name"]: row["Value"] for row in rows(connection, "limits", "show", "--absolute")}
    assert shown["total_cores"] == 20
    assert rows(connection, "limits", "show", "--rate") == []
    assert run(connection, "limits", "show").code == 2


def test_token_and_catalog() -> None:
    access = SimpleNamespace(
        auth_token="gAAAA",
        expires=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        project_id="p1",
        user_id="u1",
        domain_id=None,
        system_scoped=False,
        service_catalog=SimpleNamespace(
            catalog=[
                {
                    "name": "micronova",
                    "type": "compute",
                    "endpoints": [{"region": "R", "interface": "public", "url": "http://c"}],
                }
            ]
        ),
    )
    connection = FakeConnection(access=access)
    assert rows(connection, "token", "issue") == {
        "expires": "2026-01-01T00:00:00+0000",
        "id": "gAAAA",
        "project_id": "p1",
        "user_id": "u1",
    }
    [service] = rows(connection, "catalog", "list")
    assert service["Endpoints"][0]["url"] == "http://c"
    assert "public: http://c" in run(connection, "catalog", "list").out
