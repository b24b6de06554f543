"""Live migration by the unmodified `openstack` and openstacksdk."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compat.conftest import Client, Site
from tests.functional.waiting import eventually

VERSION = ("--os-compute-api-version", "2.79")


def test_live_migration_with_and_without_a_host(admin: Client, site: Site) -> None:
    made = admin.ask(
        *("server", "create", "--image", "cirros", "--flavor", "m1.tiny"),
        *("--network", "vmbr0", "--wait", "travels"),
    )
    compute: Any = site.cloud.connection("micronova-admin").compute

    def host() -> str:
        return str(compute.get_server(made["id"]).compute_host)

    before = host()
    admin.do(*VERSION, "server", "migrate", "--live-migration", "--wait", made["id"])
    there = host()
    assert there != before
    admin.do(
        *VERSION,
        *("server", "migrate", "--live-migration", "--host", before, "--wait", made["id"]),
    )
    assert host() == before
    rows = admin.ask(*VERSION, "server", "migration", "list", "--server", made["id"])
    assert [row["Status"] for row in rows] == ["completed", "completed"]
    assert {row["Type"] for row in rows} == {"live-migration"}
    compute.live_migrate_server(made["id"], host=there, block_migration=False)
    compute.wait_for_server(compute.get_server(made["id"]), "ACTIVE")
    actions = [one.action for one in compute.server_actions(made["id"])]
    assert actions.count("live-migration") == 3
    admin.run("server", "delete", "--force", "--wait", made["id"])


def test_how_far_a_slow_one_is(admin: Client, site: Site) -> None:
    if not site.simulated:
        pytest.skip("nothing is copied without Proxmox VE")
    made = admin.ask(
        *("server", "create", "--image", "cirros", "--flavor", "m1.tiny"),
        *("--network", "vmbr0", "--wait", "travels-slowly"),
    )
    compute: Any = site.cloud.connection("micronova-admin").compute
    compute.default_microversion = VERSION[1]
    site.cloud.control("POST", "faults", action="migration-slow", seconds=750)  # 15 s for tests
    try:
        admin.do(*VERSION, "server", "migrate", "--live-migration", made["id"])
        eventually(lambda: compute.get_server(made["id"]).progress > 0, 60)
    finally:
        site.cloud.control("DELETE", "faults")
    # python-openstackclient 10.5 takes the server for the migration in `server migration show`.
    [shown] = compute.server_migrations(made["id"])
    total, done = shown.memory_total_bytes, shown.memory_processed_bytes
    assert shown.status == "running"
    assert 0 < done <= total
    assert shown.memory_remaining_bytes == total - done
    compute.wait_for_server(compute.get_server(made["id"]), "ACTIVE")
    assert compute.get_server(made["id"]).progress == 0
    admin.run("server", "delete", "--force", "--wait", made["id"])
