"""Ports of users, by the unmodified `openstack` and openstacksdk: with a server, and without."""

from __future__ import annotations

from typing import Any

import pytest
from openstack.exceptions import BadRequestException, ConflictException

from tests.compat.conftest import Client, Site
from tests.functional.waiting import eventually


def test_a_port_before_with_and_after_its_server(client: Client, site: Site, name: str) -> None:
    port = client.ask(
        *("port", "create", "--network", "vmbr0", "--description", "of the web"),
        *("--disable-port-security", "--no-security-group", "--tag", f"for-{name}"),
        f"{name}-port",
    )
    assert (port["name"], port["description"]) == (f"{name}-port", "of the web")
    assert (port["status"], port["device_id"], port["device_owner"]) == ("DOWN", "", "")
    [address] = [one["ip_address"] for one in port["fixed_ips"]]
    try:
        client.do("port", "set", "--name", f"{name}-front", "--tag", "front", port["id"])
        listed = client.ask("port", "list", "--tags", f"for-{name},front")
        assert [row["ID"] for row in listed] == [port["id"]]
        client.do("port", "unset", "--tag", "front", port["id"])
        assert client.ask("port", "show", port["id"])["tags"] == [f"for-{name}"]
        assert client.ask("port", "show", f"{name}-front")["id"] == port["id"]
        made = client.ask(
            *("server", "create", "--image", "cirros", "--flavor", site.flavor),
            *("--port", f"{name}-front", "--wait", name),
        )
        assert made["addresses"] == {"vmbr0": [address]}
        shown = client.ask("port", "show", port["id"])
        assert (shown["device_id"], shown["status"]) == (made["id"], "ACTIVE")
        assert shown["mac_address"] == port["mac_address"]
        listed = client.ask("port", "list", "--server", name)
        assert [row["ID"] for row in listed] == [port["id"]]
        if site.simulated:
            assert port["mac_address"].upper() in nic_of(site, made["id"], "net0")
        refused = client.run(
            *("server", "create", "--image", "cirros", "--flavor", site.flavor),
            *("--port", port["id"], f"{name}-2"),
        )
        assert refused.returncode == 1
        assert f"Port {port['id']} is still in use." in refused.stderr
        client.do("server", "delete", "--wait", name)
        freed = client.ask("port", "show", port["id"])
        assert (freed["device_id"], freed["fixed_ips"]) == ("", port["fixed_ips"])
    finally:
        client.run("server", "delete", "--wait", name)
        client.do("port", "delete", port["id"])
    assert client.run("port", "show", port["id"]).returncode == 1


def nic_of(site: Site, server: str, slot: str) -> str:
    """The VM's interface in Proxmox VE."""
    vms = site.proxmox().cluster.resources.get(type="vm")
    for vm in (one for one in vms if not one.get("template")):
        config = site.proxmox().nodes(vm["node"]).qemu(vm["vmid"]).config.get()
        if server in config.get("description", ""):
            return str(config.get(slot, ""))
    raise AssertionError(f"{server} has no VM")


def test_a_port_is_attached_and_detached(client: Client, site: Site, server: str) -> None:
    port = client.ask("port", "create", "--network", "vmbr0", f"port-of-{server}")
    try:
        client.do("server", "add", "port", server, port["id"])
        assert client.ask("port", "show", port["id"])["device_id"] == server
        if site.simulated:
            assert port["mac_address"].upper() in nic_of(site, server, "net1")
        client.do("server", "remove", "port", server, port["id"])
        eventually(lambda: client.ask("port", "show", port["id"])["device_id"] == "", 60)
        client.do("server", "add", "port", server, port["id"])
    finally:
        # As in Neutron: it is taken from its server.
        client.do("port", "delete", port["id"])
    eventually(lambda: client.run("port", "show", port["id"]).returncode == 1, 60)
    if site.simulated:
        assert nic_of(site, server, "net1") == ""


def test_the_sdk_makes_and_refuses(connection: Any, name: str) -> None:
    network = connection.network.find_network("vmbr0")
    wanted = [{"network_id": network.id, "name": f"{name}-{number}"} for number in (1, 2)]
    made = list(connection.network.create_ports(wanted))
    first, second = made
    try:
        assert first.fixed_ips != second.fixed_ips
        with pytest.raises(ConflictException, match="already allocated in subnet"):
            connection.network.create_port(
                network_id=network.id, fixed_ips=[{"ip_address": first.fixed_ips[0]["ip_address"]}]
            )
        off = connection.network.update_port(first.id, is_admin_state_up=False)
        assert not off.is_admin_state_up
        with pytest.raises(BadRequestException, match="there is no other type here"):
            connection.network.update_port(first.id, binding_vnic_type="direct")
        changed = connection.network.update_port(first.id, name=f"{name}-x", description="new")
        assert (changed.name, changed.description) == (f"{name}-x", "new")
        assert changed.updated_at >= changed.created_at
    finally:
        for one in made:
            connection.network.delete_port(one)
    assert connection.network.find_port(f"{name}-x") is None


def test_a_network_is_found_by_its_tag(admin: Client, client: Client, name: str) -> None:
    admin.do("network", "set", "--tag", name, "vmbr0")
    try:
        assert client.names("network", "list", "--tags", name) == {"vmbr0"}
        assert "vmbr0" not in client.names("network", "list", "--not-tags", name)
    finally:
        admin.do("network", "unset", "--tag", name, "vmbr0")


def test_the_network_that_nobody_named(client: Client, site: Site) -> None:
    command = ("network", "auto", "allocated", "topology", "create")
    networks = client.ask("network", "list")
    if len(networks) == 1:
        assert client.ask(*command, "--or-show")["id"] == networks[0]["ID"]
        client.do(*command, "--check-resources")
    else:
        assert "there are several networks" in client.run(*command).stderr
