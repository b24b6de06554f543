"""Networks and subnets of projects, by the unmodified `openstack`."""

from __future__ import annotations

from tests.compat.conftest import Client, Site
from tests.compat.test_openstack_ports import nic_of


def test_a_network_its_subnets_and_a_server_on_it(client: Client, site: Site, name: str) -> None:
    network = client.ask("network", "create", "--description", "of us", "--mtu", "1400", name)
    assert (network["name"], network["mtu"], network["shared"]) == (name, 1400, False)
    try:
        client.do("network", "set", "--name", f"{name}-net", "--tag", name, network["id"])
        assert client.names("network", "list", "--tags", name) == {f"{name}-net"}
        subnet = client.ask(
            *("subnet", "create", "--network", f"{name}-net", "--subnet-range", "192.168.7.0/24"),
            *("--gateway", "none", "--dns-nameserver", "9.9.9.9"),
            *("--host-route", "destination=10.9.0.0/16,gateway=192.168.7.254"),
            *("--allocation-pool", "start=192.168.7.20,end=192.168.7.29", f"{name}-v4"),
        )
        assert (subnet["cidr"], subnet["gateway_ip"]) == ("192.168.7.0/24", None)
        client.do("subnet", "set", "--gateway", "192.168.7.1", f"{name}-v4")
        client.do(
            *("subnet", "create", "--network", network["id"], "--ip-version", "6"),
            *("--subnet-range", "fd00:7::/64", f"{name}-v6"),
        )
        again = client.run(
            *("subnet", "create", "--network", network["id"]),
            *("--subnet-range", "192.168.7.128/25", "again"),
        )
        assert "overlaps with another subnet" in again.stderr
        shown = client.ask("subnet", "show", f"{name}-v4")
        assert shown["gateway_ip"] == "192.168.7.1"
        assert shown["dns_nameservers"] == ["9.9.9.9"]
        assert len(client.ask("network", "show", network["id"])["subnets"]) == 2
        made = client.ask(
            *("server", "create", "--image", "cirros", "--flavor", site.flavor),
            *("--network", f"{name}-net", "--wait", name),
        )
        assert "192.168.7.20" in made["addresses"][f"{name}-net"]
        if site.simulated:
            assert "tag=1" in nic_of(site, made["id"], "net0")
        assert "ports still in use" in client.run("network", "delete", network["id"]).stderr
        assert "IP allocation" in client.run("subnet", "delete", f"{name}-v4").stderr
        client.do("server", "delete", "--wait", name)
        client.do("subnet", "delete", f"{name}-v6")
    finally:
        client.run("server", "delete", "--wait", name)
        client.do("network", "delete", network["id"])
    assert client.run("subnet", "show", f"{name}-v4").returncode == 1
    assert client.run("network", "show", network["id"]).returncode == 1


def test_networks_of_administrators(client: Client, admin: Client, name: str) -> None:
    made = admin.ask(
        *("network", "create", "--share", "--provider-network-type", "vlan"),
        *("--provider-physical-network", "vmbr0", "--provider-segment", "77", name),
    )
    try:
        assert made["provider:segmentation_id"] == 77
        assert name in client.names("network", "list", "--share")
        admin.do("network", "set", "--no-share", name)
        assert name in client.names("network", "list", "--no-share")
    finally:
        admin.do("network", "delete", made["id"])
    usage = client.ask("quota", "show", "--usage", "--network")
    assert {one["Resource"]: one["Limit"] for one in usage}["networks"] == 100


def test_a_network_is_shared_with_a_project(client: Client, admin: Client, name: str) -> None:
    network = client.ask("network", "create", name)["id"]
    try:
        made = client.ask(
            *("network", "rbac", "create", "--type", "network", "--action", "access_as_shared"),
            *("--target-project", "service", network),
        )
        assert made["object_id"] == network
        assert client.ask("network", "rbac", "show", made["id"])["action"] == "access_as_shared"
        admin.do("network", "rbac", "set", "--target-project", "admin", made["id"])
        client.do("network", "rbac", "delete", made["id"])
        listed = client.ask("network", "rbac", "list")
        assert made["id"] not in {one["ID"] for one in listed}
    finally:
        client.do("network", "delete", network)


def test_security_groups(client: Client, site: Site, name: str) -> None:
    made = client.ask("security", "group", "create", "--description", "of us", name)
    other = f"{name}-other"
    client.do("security", "group", "create", other)
    try:
        assert {one["direction"] for one in made["rules"]} == {"egress"}
        ssh = client.ask(
            *("security", "group", "rule", "create", "--protocol", "tcp", "--dst-port", "22"),
            *("--remote-ip", "192.0.2.0/24", name),
        )
        assert (ssh["port_range_min"], ssh["port_range_max"]) == (22, 22)
        client.do(
            *("security", "group", "rule", "create", "--protocol", "icmp", "--icmp-type", "8"),
            *("--remote-group", other, name),
        )
        client.do("security", "group", "rule", "create", "--ethertype", "IPv6", name)
        twice = client.run(
            *("security", "group", "rule", "create", "--protocol", "tcp", "--dst-port", "22"),
            *("--remote-ip", "192.0.2.0/24", name),
        )
        assert "already exists" in twice.stderr
        rules = client.ask("security", "group", "rule", "list", name)
        assert len(rules) == 5
        assert ssh["id"] in {one["ID"] for one in rules}
        client.do("security", "group", "rule", "delete", ssh["id"])
        client.do("security", "group", "set", "--description", "of all", name)
        assert client.ask("security", "group", "show", name)["description"] == "of all"
        assert {name, other, "default"} <= client.names("security", "group", "list")
        client.do(
            *("server", "create", "--image", "cirros", "--flavor", site.flavor),
            *("--security-group", name, "--wait", name),
        )
        assert _groups(client, name) == {name}
        client.do("server", "add", "security", "group", name, other)
        assert _groups(client, name) == {name, other}
        assert "in use" in client.run("security", "group", "delete", other).stderr
        client.do("server", "remove", "security", "group", name, other)
        client.do("security", "group", "delete", other)
    finally:
        client.run("server", "delete", "--wait", name)
        client.run("security", "group", "delete", other)
        client.do("security", "group", "delete", name)


def _groups(client: Client, server: str) -> set[str]:
    shown = client.ask("server", "show", server)["security_groups"]
    return {one["name"] for one in shown}
