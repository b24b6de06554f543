"""Live migration by the unmodified `openstack` and openstacksdk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
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
    # the disks without Proxmox VE are on no shared storage
    compute.live_migrate_server(made["id"], host=there, block_migration=not site.simulated)
    compute.wait_for_server(compute.get_server(made["id"]), "ACTIVE")
    actions = [one.action for one in compute.server_actions(made["id"])]
    assert actions.count("live-migration") == 3
    admin.run("server", "delete", "--force", "--wait", made["id"])


def test_show_says_whether_it_can_be_moved(
    admin: Client, client: Client, connection: Any, server: str
) -> None:
    """By the plugin's hook of `openstack server show`."""
    assert admin.ask("server", "show", server)["micronova:move"] == "live"
    table = admin.program("server", "show", server).stdout
    assert re.search(r"\| micronova:move +\| live", table)
    client.do("server", "suspend", server)
    connection.compute.wait_for_server(connection.compute.get_server(server), "SUSPENDED")
    shown = admin.ask("server", "show", server)
    assert shown["micronova:move"] == "no: it is suspended: resume it"
    assert "micronova:move" not in admin.ask("server", "show", server, "-c", "id", "-c", "name")


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


@pytest.fixture
def steering(site: Site) -> Iterator[Callable[[], None]]:
    """Grants the agent what ending a migration takes, which its token lacks by default."""
    if not site.simulated:
        pytest.skip("nothing is copied without Proxmox VE")
    root = site.proxmox()
    root.access.roles.post(roleid="Steers", privs="Sys.Audit,Sys.Modify")

    def put(**more: int) -> None:
        for path in ("/", "/vms"):
            root.access.acl.put(
                path=path,
                users="micronova@pve",
                tokens="micronova@pve!agent",
                roles="Steers",
                **more,
            )

    yield put
    put(delete=1)
    root.access.roles("Steers").delete()


def test_a_slow_one_is_aborted_and_another_one_forced_to_end(
    admin: Client, site: Site, steering: Callable[[], None]
) -> None:
    made = admin.ask(
        *("server", "create", "--image", "cirros", "--flavor", "m1.tiny"),
        *("--network", "vmbr0", "--wait", "never-arrives"),
    )
    compute: Any = site.cloud.connection("micronova-admin").compute
    compute.default_microversion = VERSION[1]
    home = compute.get_server(made["id"]).compute_host

    def running() -> Any:
        """The number of the migration that runs."""
        return next((str(row.id) for row in compute.server_migrations(made["id"])), None)

    def begun() -> str:
        """The same of a new one, which would take minutes."""
        admin.do(*VERSION, "server", "migrate", "--live-migration", made["id"])
        return str(eventually(running))

    def steered(*words: str) -> None:
        """Too early it is refused: QEMU must be copying the memory."""

        def taken() -> bool:
            done = admin.run(*words)
            assert done.returncode == 0 or "isn't being copied now" in done.stderr, done.stderr
            return done.returncode == 0

        eventually(taken)

    def ended() -> tuple[str, str]:
        """The host, and how the newest migration ended."""
        server = compute.wait_for_server(compute.get_server(made["id"]), "ACTIVE")
        rows = admin.ask(*VERSION, "server", "migration", "list", "--server", made["id"])
        return server.compute_host, max(rows, key=lambda row: int(row["Id"]))["Status"]

    abort = (*VERSION, "server", "migration", "abort", made["id"])
    force = (*VERSION, "server", "migration", "force", "complete", made["id"])
    site.cloud.control("POST", "faults", action="migration-slow", seconds=30_000)
    try:
        number = begun()
        for words in (abort, force):
            refused = admin.run(*words, number)
            assert "The agent's token lacks Sys.Modify on /." in refused.stderr
        steering()
        steered(*abort, number)
        assert ended() == (home, "cancelled")
        refused = admin.run(*abort, number)
        assert (refused.returncode, number in refused.stderr) == (1, True)
        steered(*force, begun())
        host, status = ended()
        assert (host != home, status) == (True, "completed")
    finally:
        site.cloud.control("DELETE", "faults")
    admin.run("server", "delete", "--force", "--wait", made["id"])
