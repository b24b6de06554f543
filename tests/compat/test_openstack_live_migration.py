"""Live migration by the unmodified `openstack` and openstacksdk."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compat.conftest import Site
from tests.compat.test_openstack_cli import Client

VERSION = ("--os-compute-api-version", "2.79")


@pytest.fixture
def client(site: Site) -> Client:
    return Client(site, "micronova-admin")


def test_live_migration_with_and_without_a_host(client: Client, site: Site) -> None:
    made = client.ask(
        *("server", "create", "--image", "cirros", "--flavor", "m1.tiny"),
        *("--network", "vmbr0", "--wait", "travels"),
    )
    compute: Any = site.cloud.connection("micronova-admin").compute

    def host() -> str:
        return str(compute.get_server(made["id"]).compute_host)

    before = host()
    client.do(*VERSION, "server", "migrate", "--live-migration", "--wait", made["id"])
    there = host()
    assert there != before
    client.do(
        *VERSION,
        *("server", "migrate", "--live-migration", "--host", before, "--wait", made["id"]),
    )
    assert host() == before
    rows = client.ask(*VERSION, "server", "migration", "list", "--server", made["id"])
    assert [row["Status"] for row in rows] == ["completed", "completed"]
    assert {row["Type"] for row in rows} == {"live-migration"}
    compute.live_migrate_server(made["id"], host=there, block_migration=False)
    compute.wait_for_server(compute.get_server(made["id"]), "ACTIVE")
    actions = [one.action for one in compute.server_actions(made["id"])]
    assert actions.count("live-migration") == 3
    client.run("server", "delete", "--force", "--wait", made["id"])
