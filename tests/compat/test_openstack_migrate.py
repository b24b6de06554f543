"""Cold migration and its ends: by the unmodified `openstack` and openstacksdk."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compat.conftest import Client, Site

VERSION = ("--os-compute-api-version", "2.104")


@pytest.fixture
def compute(site: Site) -> Any:
    return site.cloud.connection("micronova-admin").compute


def host_of(compute: Any, server: str) -> str:
    return str(compute.get_server(server).compute_host)


def test_migrate_and_confirm(admin: Client, compute: Any, server: str) -> None:
    before = host_of(compute, server)
    admin.do("server", "migrate", "--wait", server)
    shown = compute.get_server(server)
    assert (shown.status, shown.compute_host != before) == ("VERIFY_RESIZE", True)
    [found] = [one for one in compute.migrations() if one.server_id == server]
    assert (found.migration_type, found.status) == ("migration", "finished")
    admin.do("server", "migration", "confirm", server)
    compute.wait_for_server(compute.get_server(server), "ACTIVE")
    assert host_of(compute, server) == shown.compute_host
    assert "migrate" in {one.action for one in compute.server_actions(server)}


def test_to_a_named_host_and_back(admin: Client, compute: Any, server: str) -> None:
    before = host_of(compute, server)
    hosts = {one.name for one in compute.hypervisors()}
    target = min(hosts - {before})
    admin.do(*VERSION, "server", "migrate", "--host", target, "--wait", server)
    assert host_of(compute, server) == target
    compute.revert_server_resize(server)
    compute.wait_for_server(compute.get_server(server), "ACTIVE")
    assert host_of(compute, server) == before
    refused = admin.run(*VERSION, "server", "migrate", "--host", before, server)
    assert "Cannot migrate to the host where the server exists." in refused.stderr


def test_a_resize_where_its_host_takes_no_more(
    client: Client, admin: Client, compute: Any, server: str
) -> None:
    before = host_of(compute, server)
    admin.do("compute", "service", "set", "--disable", before, "nova-compute")
    try:
        client.do("server", "resize", "--flavor", "m1.medium", "--wait", server)
    finally:
        admin.do("compute", "service", "set", "--enable", before, "nova-compute")
    shown = compute.get_server(server)
    assert (shown.status, shown.flavor.original_name) == ("VERIFY_RESIZE", "m1.medium")
    assert shown.compute_host != before
    client.do("server", "resize", "revert", server)
    compute.wait_for_server(compute.get_server(server), "ACTIVE")
    assert host_of(compute, server) == before
