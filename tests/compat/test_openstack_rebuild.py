"""Rebuild, rescue and unrescue: by the unmodified `openstack` and openstacksdk."""

from __future__ import annotations

import json
from typing import Any

from tests.compat.conftest import Client

VERSION = ("--os-compute-api-version", "2.104")


def test_another_image_and_name(client: Client, connection: Any, server: str) -> None:
    said = client.do(
        *(*VERSION, "server", "rebuild", "--image", "debian-12", "--name", "anew"),
        *("--property", "a=b", "--password", "secret", "--wait", server, "-f", "json"),
    )
    shown = json.loads(said.partition("Complete\n")[2])
    assert (shown["name"], shown["adminPass"]) == ("anew", "secret")
    found = connection.compute.get_server(server)
    assert (found.status, found.metadata) == ("ACTIVE", {"a": "b"})
    assert found.image.id == connection.image.find_image("debian-12").id
    assert found.addresses == connection.compute.get_server(server).addresses
    actions = {one.action for one in connection.compute.server_actions(server)}
    assert {"create", "rebuild"} <= actions


def test_a_stopped_server_stays_so(connection: Any, server: str) -> None:
    compute = connection.compute
    compute.stop_server(server)
    compute.wait_for_server(compute.get_server(server), "SHUTOFF")
    image = connection.image.find_image("cirros")
    compute.rebuild_server(server, image=image.id)
    compute.wait_for_server(compute.get_server(server), "SHUTOFF")
    refused = compute.get_server(server)
    assert (refused.status, refused.power_state) == ("SHUTOFF", 4)


def test_rescue_and_unrescue(client: Client, connection: Any, server: str) -> None:
    compute = connection.compute
    client.do("server", "rescue", "--image", "debian-12", "--password", "secret", server)
    compute.wait_for_server(compute.get_server(server), "RESCUE")
    refused = client.run("server", "stop", server)
    assert "while it is in vm_state rescued" in refused.stderr
    client.do("server", "unrescue", server)
    compute.wait_for_server(compute.get_server(server), "ACTIVE")
    actions = {one.action for one in compute.server_actions(server)}
    assert {"rescue", "unrescue"} <= actions


def test_a_rescued_server_is_deleted(client: Client, connection: Any, server: str) -> None:
    compute = connection.compute
    compute.rescue_server(server, admin_pass="secret")
    compute.wait_for_server(compute.get_server(server), "RESCUE")
    client.do("server", "delete", "--wait", server)
