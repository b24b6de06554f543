"""Locks, states, access to the record of usage: by the unmodified `openstack` and openstacksdk."""

from __future__ import annotations

from tests.compat.conftest import Client, Site

VERSION = ("--os-compute-api-version", "2.104")


def test_lock_reset_and_force_delete(client: Client, server: str, name: str) -> None:
    client.do(*VERSION, "server", "lock", "--reason", "mine", server)
    shown = client.ask(*VERSION, "server", "show", server)
    assert (shown["locked"], shown["locked_reason"]) == (True, "mine")
    assert name in client.names(*VERSION, "server", "list", "--locked")
    assert name not in client.names(*VERSION, "server", "list", "--unlocked")
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
