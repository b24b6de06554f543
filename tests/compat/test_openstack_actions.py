"""The actions that no other module of this folder drives: by `openstack` and by openstacksdk."""

from __future__ import annotations

from typing import Any

import pytest
from openstack.exceptions import BadRequestException, ConflictException

from tests.compat.conftest import Client, Site
from tests.functional.waiting import eventually

VERSION = ("--os-compute-api-version", "2.104")
#: the last one with the action that takes an address away
OLD = ("--os-compute-api-version", "2.43")
ISO, MIB = "install.iso", 1 << 20


@pytest.fixture(scope="module", autouse=True)
def put(site: Site) -> None:
    """An operator puts an ISO image on a storage that all nodes share."""
    if site.simulated:
        site.cloud.control("POST", "volume", volid=f"shared:iso/{ISO}", size=MIB, used=MIB)


def until(compute: Any, server: str, status: str) -> None:
    compute.wait_for_server(compute.get_server(server), status=status, wait=60, interval=0.2)


def test_the_ways_back_by_openstack(client: Client, connection: Any, server: str) -> None:
    compute = connection.compute
    client.do("server", "stop", server)
    until(compute, server, "SHUTOFF")
    client.do("server", "start", server)
    until(compute, server, "ACTIVE")
    client.do("server", "reboot", "--soft", "--wait", server)
    client.do("server", "suspend", server)
    until(compute, server, "SUSPENDED")
    client.do("server", "resume", server)
    until(compute, server, "ACTIVE")
    [before] = compute.server_interfaces(server)
    client.do("server", "add", "fixed", "ip", server, "vmbr0")
    [made] = [one for one in compute.server_interfaces(server) if one.id != before.id]
    for address in made.fixed_ips:
        client.do(*OLD, "server", "remove", "fixed", "ip", server, address["ip_address"])
    eventually(lambda: len(list(compute.server_interfaces(server))) == 1, 30)
    refused = client.run("server", "restore", server)
    assert f"Cannot 'restore' instance {server} while it is in vm_state active" in refused.stderr
    client.do(*VERSION, "server", "set", "--tag", "front", "--property", "a=b", server)
    client.do(*VERSION, "server", "unset", "--tag", "front", "--property", "a", server)
    actions = {one.action for one in compute.server_actions(server)}
    assert {"suspend", "resume", "attach_interface", "detach_interface"} <= actions


def test_the_ways_back_by_openstacksdk(connection: Any, server: str, name: str) -> None:
    compute = connection.compute
    for act, status in (
        (compute.suspend_server, "SUSPENDED"),
        (compute.resume_server, "ACTIVE"),
        (compute.pause_server, "PAUSED"),
        (compute.unpause_server, "ACTIVE"),
        (compute.rescue_server, "RESCUE"),
        (compute.unrescue_server, "ACTIVE"),
        (compute.shelve_server, "SHELVED_OFFLOADED"),
        (compute.unshelve_server, "ACTIVE"),
    ):
        act(server)
        until(compute, server, status)
    with pytest.raises(ConflictException, match="Cannot 'shelveOffload' instance"):
        compute.shelve_offload_server(server)
    with pytest.raises(BadRequestException, match="crash dump is not supported"):
        compute.trigger_server_crash_dump(server)
    for state, status in (("error", "ERROR"), ("active", "ACTIVE")):
        compute.reset_server_state(server, state)
        assert compute.get_server(server).status == status
    image = compute.backup_server(server, f"{name}-backup", "daily", 1, wait=True)
    assert image.status == "active"
    until(compute, server, "ACTIVE")
    connection.image.delete_image(image)
    compute.reboot_server(server, "SOFT")
    until(compute, server, "ACTIVE")


def test_moves_by_openstacksdk(site: Site, server: str) -> None:
    compute = site.cloud.connection("micronova-admin").compute
    compute.migrate_server(server)
    until(compute, server, "VERIFY_RESIZE")
    compute.confirm_server_resize(server)
    until(compute, server, "ACTIVE")
    assert list(compute.server_migrations(server)) == []
    compute.resize_server(server, compute.find_flavor("m1.medium"))
    until(compute, server, "VERIFY_RESIZE")
    compute.revert_server_resize(server)
    until(compute, server, "ACTIVE")


def test_an_evacuation_is_refused(site: Site, admin: Client, connection: Any, server: str) -> None:
    """First since the host is in use, then with what the operator can do."""
    compute = site.cloud.connection("micronova-admin").compute
    host = compute.get_server(server).compute_host
    refused = admin.run("server", "evacuate", "--wait", server)
    assert f"Compute service of {host} is still in use." in refused.stderr
    admin.do(*VERSION, "compute", "service", "set", "--down", host, "nova-compute")
    try:
        refused = admin.run("server", "evacuate", "--wait", server)
        assert f"Instance {server} can't be evacuated by a request" in refused.stderr
        with pytest.raises(BadRequestException, match="can't be evacuated by a request"):
            compute.evacuate_server(server)
    finally:
        admin.do(*VERSION, "compute", "service", "set", "--up", host, "nova-compute")
    assert connection.compute.get_server(server).status == "ACTIVE"


def test_an_evacuation_waits_for_high_availability(
    site: Site, admin: Client, name: str, server: str
) -> None:
    """The HA manager recovers the VM of a lost node, and chooses where."""
    if not site.simulated:
        pytest.skip("only Proxmox VE has high availability")
    compute = site.cloud.connection("micronova-admin").compute
    host = compute.get_server(server).compute_host
    root = site.proxmox()
    [vm] = [one for one in root.cluster.resources.get(type="vm") if one["name"] == name]
    root.cluster.ha.resources.post(sid=f"vm:{vm['vmid']}", state="started")
    order = site.cloud.control("POST", "faults", action="node-down", node=vm["node"])

    def evacuated() -> bool:
        """Until the node is seen offline, its host is in use."""
        # Its --wait, of python-openstackclient 10.5, compares ACTIVE with active for ever.
        done = admin.run("server", "evacuate", server)
        assert done.returncode == 0 or "is still in use" in done.stderr, done.stderr
        return done.returncode == 0

    try:
        eventually(evacuated, 90)
        until(compute, server, "ACTIVE")
    finally:
        site.cloud.control("DELETE", f"faults?id={order['id']}")
    there = compute.get_server(server)
    assert (there.status, there.compute_host != host) == ("ACTIVE", True)
    [row] = compute.migrations(migration_type="evacuation")
    assert (row.server_id, row.status) == (server, "completed")
    assert (row.source_compute, row.dest_compute) == (host, there.compute_host)
    # The next tests want all hosts.
    eventually(lambda: compute.find_hypervisor(host, details=True).state == "up", 90)


@pytest.fixture
def iso(site: Site, connection: Any) -> str:
    """The name of an ISO image that the cloud has found."""
    if not site.simulated:
        pytest.skip("nobody can add images to the driver without a hypervisor")
    eventually(lambda: connection.image.find_image(ISO) is not None, 120)
    return ISO


def test_a_server_of_an_iso_image(
    client: Client, connection: Any, iso: str, server: str, name: str
) -> None:
    compute = connection.compute
    assert client.ask("image", "show", iso)["disk_format"] == "iso"
    made = client.ask(
        *("server", "create", "--image", iso, "--flavor", "m1.small"),
        *("--network", "vmbr0", "--wait", f"{name}-cd"),
    )
    assert made["status"] == "ACTIVE"
    client.do("server", "rescue", "--image", iso, made["id"])
    until(compute, made["id"], "RESCUE")
    client.do("server", "unrescue", made["id"])
    until(compute, made["id"], "ACTIVE")
    client.do("server", "rebuild", "--image", "cirros", "--wait", made["id"])
    client.do("server", "rebuild", "--image", iso, "--wait", made["id"])
    client.do("server", "delete", "--wait", made["id"])
