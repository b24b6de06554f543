"""Resize, confirm and revert: by the unmodified `openstack` and openstacksdk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.compat.conftest import Client, Site

VERSION = ("--os-compute-api-version", "2.104")
FLAVORS = {"c1.less": (1, 512, 2), "c1.more": (2, 1024, 3)}


@pytest.fixture
def flavors(site: Site) -> Iterator[None]:
    admin = site.cloud.connection("micronova-admin").compute
    for name, (vcpus, ram, disk) in FLAVORS.items():
        admin.create_flavor(name=name, vcpus=vcpus, ram=ram, disk=disk)
    yield
    for name in FLAVORS:
        admin.delete_flavor(admin.find_flavor(name))


@pytest.fixture
def server(client: Client, site: Site, flavors: None) -> Iterator[str]:
    """The UUID of a server that is active."""
    made = client.ask(
        *("server", "create", "--image", "cirros", "--flavor", "c1.less"),
        *("--network", "vmbr0", "--wait", "resized"),
    )
    yield made["id"]
    client.run("server", "delete", "--force", "--wait", made["id"])


def test_resize_and_confirm(client: Client, connection: Any, server: str) -> None:
    client.do("server", "resize", "--flavor", "c1.more", "--wait", server)
    shown = connection.compute.get_server(server)
    assert (shown.status, shown.flavor.original_name) == ("VERIFY_RESIZE", "c1.more")
    assert (shown.flavor.vcpus, shown.flavor.ram, shown.flavor.disk) == (2, 1024, 3)
    client.do("server", "resize", "confirm", server)
    connection.compute.wait_for_server(connection.compute.get_server(server), "ACTIVE")
    actions = {one.action for one in connection.compute.server_actions(server)}
    assert {"create", "resize", "confirmResize"} <= actions


def test_revert_and_what_is_listed(client: Client, connection: Any, server: str) -> None:
    compute = connection.compute
    compute.resize_server(server, compute.find_flavor("c1.more"))
    compute.wait_for_server(compute.get_server(server), "VERIFY_RESIZE")
    compute.revert_server_resize(server)
    compute.wait_for_server(compute.get_server(server), "ACTIVE")
    assert compute.get_server(server).flavor.original_name == "c1.less"
    refused = client.run("server", "resize", "--flavor", "c1.less", server)
    assert "When resizing, instances must change flavor!" in refused.stderr


def test_a_resized_server_is_deleted_at_once(client: Client, server: str) -> None:
    client.do("server", "resize", "--flavor", "c1.more", "--wait", server)
    client.do("server", "delete", "--wait", server)


def test_administrators_list_migrations(site: Site, client: Client, server: str) -> None:
    client.do("server", "resize", "--flavor", "c1.more", "--wait", server)
    admin = site.cloud.connection("micronova-admin").compute
    [found] = [one for one in admin.migrations() if one.server_id == server]
    assert (found.migration_type, found.status) == ("resize", "finished")
