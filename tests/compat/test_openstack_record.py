"""Locks, states, access to the record of usage: by the unmodified `openstack` and openstacksdk."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.compat.conftest import Site
from tests.compat.test_openstack_cli import Client

VERSION = ("--os-compute-api-version", "2.104")


@pytest.fixture
def client(site: Site) -> Client:
    return Client(site)


@pytest.fixture
def server(client: Client, site: Site) -> Iterator[str]:
    """The UUID of a server that is active."""
    made = client.ask(
        *("server", "create", "--image", site.image, "--flavor", "m1.small"),
        *("--network", "vmbr0", "--wait", "recorded"),
    )
    yield made["id"]
    client.run("server", "delete", "--force", "--wait", made["id"])


def test_lock_reset_and_force_delete(client: Client, server: str) -> None:
    client.do(*VERSION, "server", "lock", "--reason", "mine", server)
    shown = client.ask(*VERSION, "server", "show", server)
    assert (shown["locked"], shown["locked_reason"]) == (True, "mine")
    assert "recorded" in client.names(*VERSION, "server", "list", "--locked")
    assert "recorded" not in client.names(*VERSION, "server", "list", "--unlocked")
    client.do(*VERSION, "server", "unlock", server)
    client.do("server", "set", "--auto-approve", "--state", "error", server)
    assert client.ask("server", "show", server)["status"] == "ERROR"
    client.do("server", "set", "--auto-approve", "--state", "active", server)
    assert client.ask("server", "show", server)["status"] == "ACTIVE"
    refused = client.run(*VERSION, "server", "dump", "create", server)
    assert "Triggering crash dump is not supported" in refused.stderr
    client.do("server", "delete", "--force", "--wait", server)
    assert client.ask("usage", "show")["Servers"]


def test_a_lock_stops_its_users(site: Site, client: Client, server: str) -> None:
    connection = site.cloud.connection("micronova")
    connection.compute.lock_server(server, locked_reason="repair")
    assert connection.compute.get_server(server).is_locked
    connection.compute.unlock_server(server)
    usage = connection.compute.get_usage(connection.current_project_id)
    assert usage.total_hours >= 0
    assert connection.compute.get_quota_class_set("default").instances >= -1
