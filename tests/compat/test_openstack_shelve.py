"""Shelve and unshelve: by the unmodified `openstack` and openstacksdk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.compat.conftest import Site
from tests.compat.test_openstack_cli import Client


@pytest.fixture
def client(site: Site) -> Client:
    return Client(site)


@pytest.fixture
def connection(site: Site) -> Any:
    return site.cloud.connection("micronova")


@pytest.fixture
def server(client: Client) -> Iterator[str]:
    """The UUID of a server that is active."""
    made = client.ask(
        *("server", "create", "--image", "cirros", "--flavor", "m1.tiny"),
        *("--network", "vmbr0", "--wait", "parked"),
    )
    yield made["id"]
    client.run("server", "delete", "--force", "--wait", made["id"])


def test_shelve_and_unshelve(client: Client, connection: Any, server: str) -> None:
    compute = connection.compute
    client.do("server", "shelve", "--offload", "--wait", server)
    assert compute.get_server(server).status == "SHELVED_OFFLOADED"
    assert connection.image.find_image("parked-shelved").status == "active"
    refused = client.run(
        *("server", "create", "--image", "parked-shelved", "--flavor", "m1.tiny"),
        *("--network", "vmbr0", "other"),
    )
    assert "has no data: it only lists a shelved server" in refused.stderr
    client.do("server", "unshelve", "--wait", server)
    assert compute.get_server(server).status == "ACTIVE"
    assert connection.image.find_image("parked-shelved") is None


def test_openstacksdk_shelves_and_unshelves(connection: Any, server: str) -> None:
    compute = connection.compute
    compute.shelve_server(server)
    compute.wait_for_server(compute.get_server(server), "SHELVED_OFFLOADED")
    compute.unshelve_server(server)
    compute.wait_for_server(compute.get_server(server), "ACTIVE")
    compute.shelve_server(server)
    compute.wait_for_server(compute.get_server(server), "SHELVED_OFFLOADED")
