"""Deletes that can be taken back, by `openstack` and openstacksdk: a cloud where they wait."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compat.conftest import Client, Site
from tests.fixtures import null
from tests.functional.cloud import embedded_cloud
from tests.shared import Shared

_CLOUD: Shared[Any] = Shared("deferring")
OPTIONS = {"driver": null.DRIVER, "nodes": 1, "set": "conductor.reclaim_instance_interval=3600"}


@pytest.fixture(scope="module")
def deferring(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("deferring")
    return _CLOUD.get(lambda: embedded_cloud(folder, **OPTIONS))


@pytest.fixture(scope="module")
def site(deferring: Any) -> Site:
    return Site(deferring, "cirros", frozenset(), "m1.tiny", 1, simulated=False)


def test_restored_by_openstack(client: Client, connection: Any, server: str, name: str) -> None:
    compute = connection.compute
    client.do("server", "delete", server)
    compute.wait_for_server(compute.get_server(server), "SOFT_DELETED")
    assert name not in client.names("server", "list")
    client.do("server", "restore", server)
    compute.wait_for_server(compute.get_server(server), "ACTIVE")
    assert name in client.names("server", "list")
    refused = client.run("server", "restore", server)
    assert f"Cannot 'restore' instance {server} while it is in vm_state active" in refused.stderr


def test_restored_by_openstacksdk(client: Client, connection: Any, server: str) -> None:
    compute = connection.compute
    compute.delete_server(server)
    compute.wait_for_server(compute.get_server(server), "SOFT_DELETED")
    compute.restore_server(server)
    compute.wait_for_server(compute.get_server(server), "ACTIVE")
    assert {"delete", "restore"} <= {one.action for one in compute.server_actions(server)}
    compute.delete_server(server)
    compute.wait_for_server(compute.get_server(server), "SOFT_DELETED")
    client.do("server", "delete", "--force", "--wait", server)
    assert compute.find_server(server) is None
