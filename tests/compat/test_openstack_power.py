"""Pause and suspend, and the ways back: by the unmodified `openstack` and openstacksdk."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.compat.conftest import Site
from tests.compat.test_openstack_cli import Client


@pytest.fixture
def client(site: Site) -> Client:
    return Client(site)


@pytest.fixture
def server(client: Client, site: Site) -> Iterator[str]:
    """The UUID of a server that is active."""
    made = client.ask(
        *("server", "create", "--image", site.image, "--flavor", "m1.small"),
        *("--network", "vmbr0", "--wait", "resting"),
    )
    yield made["id"]
    client.run("server", "delete", "--wait", made["id"])


def test_pause_and_suspend(site: Site, client: Client, server: str) -> None:
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
    assert "resting" in client.names("server", "list", "--status", "SUSPENDED")
    compute.resume_server(server)
    until("ACTIVE")
    compute.pause_server(server)
    until("PAUSED")
    client.do("server", "reboot", "--hard", "--wait", server)
    until("ACTIVE")
