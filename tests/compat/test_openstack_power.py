"""Pause and suspend, and the ways back: by the unmodified `openstack` and openstacksdk."""

from __future__ import annotations

from tests.compat.conftest import Client, Site


def test_pause_and_suspend(site: Site, client: Client, server: str, name: str) -> None:
    compute = site.cloud.connection("micronova").compute

    def until(status: str) -> None:
        compute.wait_for_server(compute.get_server(server), status=status, wait=60)

    client.do("server", "pause", server)
    until("PAUSED")
    refused = client.run("server", "suspend", server)
    assert f"Cannot 'suspend' instance {server} while it is in vm_state paused" in refused.stderr
    client.do("server", "unpause", server)
    until("ACTIVE")
    client.do("server", "suspend", server)
    until("SUSPENDED")
    assert name in client.names("server", "list", "--status", "SUSPENDED")
    compute.resume_server(server)
    until("ACTIVE")
    compute.pause_server(server)
    until("PAUSED")
    client.do("server", "reboot", "--hard", "--wait", server)
    until("ACTIVE")
