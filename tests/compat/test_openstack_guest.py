"""What reaches into a server that runs: by the unmodified `openstack` and openstacksdk."""

from __future__ import annotations

import pytest
from openstack.exceptions import ConflictException

from tests.compat.conftest import Client, Site
from tests.functional.waiting import eventually


def test_diagnostics(site: Site, client: Client, server: str) -> None:
    compute = site.cloud.connection("micronova").compute
    shown = compute.get_server_diagnostics(server)
    assert (shown.state, shown.hypervisor, shown.num_cpus) == ("running", "kvm", 1)
    assert "memory" in client.run("server", "show", "--diagnostics", server).stdout


def test_a_password(site: Site, client: Client, server: str) -> None:
    compute = site.cloud.connection("micronova").compute
    if not site.simulated:  # there is no guest
        with pytest.raises(ConflictException, match="Set admin password is not supported"):
            compute.change_server_password(server, "Tr0ub4dor&3")
        return

    def is_set() -> bool:
        """The guest's agent answers only once its system has booted."""
        try:
            compute.change_server_password(server, "Tr0ub4dor&3")
        except ConflictException:
            return False
        return True

    eventually(is_set, 60)
    assert client.run("server", "set", "--password", "Tr0ub4dor&4", server).returncode == 0
    client.do("server", "stop", server)
    compute.wait_for_server(compute.get_server(server), status="SHUTOFF", wait=60)
    refused = client.run("server", "set", "--password", "Tr0ub4dor&5", server)
    assert f"Cannot 'changePassword' instance {server} while it is in" in refused.stderr


def test_interfaces(site: Site, client: Client, server: str) -> None:
    compute = site.cloud.connection("micronova").compute
    [first] = compute.server_interfaces(server)
    client.do("server", "add", "network", server, "vmbr0")
    second = next(one for one in compute.server_interfaces(server) if one.id != first.id)
    assert second.port_state == "ACTIVE"
    client.do("server", "remove", "port", server, second.id)
    eventually(lambda: [one.id for one in compute.server_interfaces(server)] == [first.id], 30)
    made = compute.create_server_interface(server, net_id=first.net_id, tag="backup")
    assert (made.net_id, made.port_id != first.id) == (first.net_id, True)
    compute.delete_server_interface(made, server=server)
    eventually(lambda: [one.id for one in compute.server_interfaces(server)] == [first.id], 30)
    refused = client.run("server", "add", "port", server, first.id)
    assert "still in use" in refused.stderr


def test_tags_of_devices(client: Client, site: Site) -> None:
    [image] = [one["ID"] for one in client.ask("image", "list") if one["Name"] == site.image]
    device = "destination_type=volume,volume_size=1,delete_on_termination=true,tag=data"
    asked = ("server", "create", "--flavor", "m1.small", "--image", image)
    blank = ("--block-device", f"source_type=blank,{device}")
    [network] = [one["ID"] for one in client.ask("network", "list") if one["Name"] == "vmbr0"]
    made = client.ask(*asked, *blank, "--nic", f"net-id={network},tag=front", "--wait", "tagged")
    [shown] = site.cloud.connection("micronova").compute.server_interfaces(made["id"])
    assert shown.net_id == network
    other = ("--block-device", "source_type=blank,destination_type=local,volume_size=1,tag=more")
    refused = client.run(*asked, *other, "--network", "vmbr0", "untagged")
    assert "larger than the instance type allows" in refused.stderr
    client.do("server", "delete", "--wait", made["id"])
