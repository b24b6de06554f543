"""Shelve and unshelve: by the unmodified `openstack` and openstacksdk."""

from __future__ import annotations

from typing import Any

from tests.compat.conftest import Client


def test_shelve_and_unshelve(client: Client, connection: Any, server: str, name: str) -> None:
    compute = connection.compute
    client.do("server", "shelve", "--offload", "--wait", server)
    assert compute.get_server(server).status == "SHELVED_OFFLOADED"
    assert connection.image.find_image(f"{name}-shelved").status == "active"
    refused = client.run(
        *("server", "create", "--image", f"{name}-shelved", "--flavor", "m1.small"),
        *("--network", "vmbr0", "other"),
    )
    assert "has no data: it only lists a shelved server" in refused.stderr
    client.do("server", "unshelve", "--wait", server)
    assert compute.get_server(server).status == "ACTIVE"
    assert connection.image.find_image(f"{name}-shelved") is None


def test_openstacksdk_shelves_and_unshelves(connection: Any, server: str) -> None:
    compute = connection.compute
    compute.shelve_server(server)
    compute.wait_for_server(compute.get_server(server), "SHELVED_OFFLOADED")
    compute.unshelve_server(server)
    compute.wait_for_server(compute.get_server(server), "ACTIVE")
    compute.shelve_server(server)
    compute.wait_for_server(compute.get_server(server), "SHELVED_OFFLOADED")
