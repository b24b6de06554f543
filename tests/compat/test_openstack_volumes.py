"""Volumes by the unmodified `openstack`, and by openstacksdk."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compat.conftest import Client, Site
from tests.compat.test_openstack_ports import nic_of
from tests.functional.waiting import eventually


def becomes(client: Client, volume: str, status: str) -> None:
    eventually(lambda: client.ask("volume", "show", volume)["status"] == status, 30, 0.2)


def test_a_volume_of_a_server(client: Client, site: Site, server: str, name: str) -> None:
    assert client.names("volume", "type", "list")
    made = client.ask(
        *("volume", "create", "--size", "1"),
        *("--property", "tier=gold", "--hint", f"local_to_instance={server}", name),
    )
    assert (made["size"], made["name"], made["properties"]) == (1, name, {"tier": "gold"})
    try:
        becomes(client, name, "available")
        assert name in client.names("volume", "list", "--status", "available")
        client.do("volume", "set", "--size", "2", "--description", "data", name)
        becomes(client, name, "available")
        shown = client.ask("volume", "show", name)
        assert (shown["size"], shown["description"]) == (2, "data")
        attached = client.ask("server", "add", "volume", server, name)
        assert attached["Volume ID"] == made["id"]
        becomes(client, name, "in-use")
        volumes = client.ask("server", "show", server)["volumes_attached"]
        assert [one["id"] for one in volumes] == [made["id"]]
        assert client.run("volume", "delete", name).returncode == 1
        (listed,) = client.ask("server", "volume", "list", server)
        assert listed["Device"] == "/dev/sdb"
        if site.simulated:
            assert f"serial={made['id'][:20]}" in nic_of(site, server, "scsi1")
        client.do("server", "remove", "volume", server, name)
        becomes(client, name, "available")
    finally:
        client.run("server", "remove", "volume", server, name)
        client.do("volume", "delete", name)
    eventually(lambda: client.run("volume", "show", name).returncode == 1, 30, 0.2)
    usage = {one["Resource"]: one for one in client.ask("quota", "show", "--usage", "--volume")}
    assert usage["volumes"]["Limit"] == 10


@pytest.mark.long
def test_volumes_of_a_shelved_server(client: Client, server: str, name: str) -> None:
    hint = ("--hint", f"local_to_instance={server}")
    for one in (name, f"{name}-more"):
        client.do("volume", "create", "--size", "1", *hint, one)
        becomes(client, one, "available")
    try:
        client.do("server", "add", "volume", "--enable-delete-on-termination", server, name)
        becomes(client, name, "in-use")
        attached = client.ask("server", "volume", "list", server)
        assert [one["Delete On Termination?"] for one in attached] == [True]
        volume_id = attached[0]["Volume ID"]
        client.do(
            *("--os-compute-api-version", "2.85", "server", "volume", "update"),
            *("--preserve-on-termination", server, volume_id),
        )
        client.do("server", "shelve", "--wait", server)
        client.do("server", "add", "volume", server, f"{name}-more")
        becomes(client, f"{name}-more", "in-use")
        client.do("server", "remove", "volume", server, name)
        becomes(client, name, "available")
        client.do("server", "unshelve", "--wait", server)
        (left,) = client.ask("server", "volume", "list", server)
        assert left["Delete On Termination?"] is False
        assert left["Device"] == "/dev/sdc"
        client.do("server", "reboot", "--hard", "--wait", server)
    finally:
        for one in (name, f"{name}-more"):
            client.run("server", "remove", "volume", server, one)
            eventually(
                lambda one=one: client.ask("volume", "show", one)["status"] == "available", 30, 0.2
            )
            client.do("volume", "delete", one)


def test_what_there_is(client: Client, admin: Client) -> None:
    for words in (
        ("volume", "list", "--long"),
        ("volume", "snapshot", "list"),
        ("volume", "backup", "list"),
        ("volume", "transfer", "request", "list"),
        ("availability", "zone", "list", "--volume"),
        ("volume", "service", "list"),
        ("volume", "backend", "pool", "list"),
        ("volume", "qos", "list"),
        ("limits", "show", "--absolute"),
        ("volume", "summary"),
    ):
        asking = admin if words[1] in ("service", "backend") else client
        asking.ask(*words)
    assert admin.run("volume", "type", "create", "gold").returncode == 0
    admin.do("volume", "type", "set", "--property", "volume_backend_name=local", "gold")
    admin.do("volume", "type", "delete", "gold")


@pytest.mark.long
def test_a_volume_of_another_type(client: Client, name: str) -> None:
    types = sorted(client.names("volume", "type", "list"))
    if len(types) < 2:
        return
    other, has = types[:2]
    client.ask("volume", "create", "--size", "1", "--type", has, name)
    try:
        becomes(client, name, "available")
        words = ("volume", "set", "--type", other)
        client.do(*words, "--retype-policy", "never", name)
        shown = client.ask("volume", "show", name)
        assert (shown["status"], shown["type"]) == ("available", has)
        client.do(*words, "--retype-policy", "on-demand", name)
        becomes(client, name, "available")
        assert client.ask("volume", "show", name)["type"] == other
    finally:
        client.do("volume", "delete", name)


@pytest.mark.long
def test_an_image_of_a_volume(client: Client, name: str) -> None:
    client.ask("volume", "create", "--size", "1", name)
    copy = f"{name}-copy"
    try:
        becomes(client, name, "available")
        made = client.ask("image", "create", "--volume", name, name)
        assert (made["status"], made["image_name"], made["visibility"]) == (
            *("uploading", name),
            "private",
        )
        becomes(client, name, "available")
        shown = client.ask("image", "show", made["image_id"])
        assert (shown["status"], shown["min_disk"]) == ("active", 1)
        client.ask("volume", "create", "--image", name, "--size", "1", copy)
        becomes(client, copy, "available")
    finally:
        for one in (copy, name):
            client.run("volume", "delete", one)
        client.run("image", "delete", name)
    eventually(lambda: client.run("volume", "show", name).returncode == 1, 30, 0.2)


@pytest.mark.long
def test_openstacksdk(connection: Any, name: str) -> None:
    volume = connection.create_volume(1, name=name, wait=True, timeout=60)
    assert volume.status == "available"
    found = connection.block_storage.find_volume(name)
    connection.block_storage.extend_volume(found, 2)
    eventually(
        lambda: connection.block_storage.get_volume(found.id).status == "available", 30, 0.2
    )
    assert connection.block_storage.get_volume(found.id).size == 2
    assert connection.delete_volume(found.id, wait=True, timeout=60)
    assert connection.block_storage.find_volume(name) is None


def test_snapshots(client: Client, name: str) -> None:
    """Taken, listed, copied to a volume, brought back to, and removed with their volume."""
    made = client.ask("volume", "create", "--size", "1", name)
    copy = f"{name}-copy"
    try:
        becomes(client, name, "available")
        words = ("--volume", name, "--property", "tier=gold", f"{name}-1")
        taken = client.ask("volume", "snapshot", "create", *words)
        assert (taken["volume_id"], taken["properties"]) == (made["id"], {"tier": "gold"})
        shot = taken["id"]

        def there() -> bool:
            return bool(client.ask("volume", "snapshot", "show", shot)["status"] == "available")

        eventually(there, 30, 0.2)
        client.do("volume", "snapshot", "set", "--description", "d", shot)
        (listed,) = client.ask("volume", "snapshot", "list", "--volume", name, "--long")
        assert (listed["ID"], listed["Description"]) == (shot, "d")
        assert client.run("volume", "delete", name).returncode == 1
        client.ask("volume", "create", "--snapshot", shot, "--size", "2", copy)
        becomes(client, copy, "available")
        client.do("--os-volume-api-version", "3.40", "volume", "revert", shot)
        becomes(client, name, "available")
        client.do("volume", "snapshot", "delete", shot)
        eventually(lambda: not client.names("volume", "snapshot", "list"), 30, 0.2)
        client.ask("volume", "snapshot", "create", "--volume", name, f"{name}-2")
        eventually(
            lambda: client.ask("volume", "snapshot", "list")[0]["Status"] == "available", 30, 0.2
        )
        client.ask("volume", "create", "--source", copy, "--size", "2", f"{name}-third")
        becomes(client, f"{name}-third", "available")
    finally:
        client.do("volume", "delete", "--purge", name)
        for one in (copy, f"{name}-third"):
            client.run("volume", "delete", one)
    eventually(lambda: client.run("volume", "show", name).returncode == 1, 30, 0.2)
    assert not client.names("volume", "snapshot", "list")


@pytest.mark.long
def test_backups(site: Site, client: Client, name: str) -> None:
    """Made, listed, renamed, restored twice, made a volume of, and removed."""
    if not site.simulated:
        pytest.skip("there is no storage for backups without Proxmox VE")
    client.ask("volume", "create", "--size", "1", name)
    copy = f"{name}-copy"
    try:
        becomes(client, name, "available")
        taken = client.ask("volume", "backup", "create", "--name", f"{name}-1", name)
        backup = taken["id"]

        def is_backup(status: str) -> bool:
            return bool(client.ask("volume", "backup", "show", backup)["status"] == status)

        eventually(lambda: is_backup("available"), 30, 0.2)
        becomes(client, name, "available")
        client.do("volume", "backup", "set", "--name", f"{name}-2", "--description", "d", backup)
        (listed,) = client.ask("volume", "backup", "list", "--long")
        assert (listed["ID"], listed["Name"], listed["Description"]) == (backup, f"{name}-2", "d")
        incremental = client.run("volume", "backup", "create", "--incremental", name)
        assert incremental.returncode == 1
        client.do("volume", "backup", "restore", "--force", backup, name)
        becomes(client, name, "available")
        eventually(lambda: is_backup("available"), 30, 0.2)
        restored = client.ask("volume", "backup", "restore", backup, f"{name}-new")
        eventually(lambda: is_backup("available"), 30, 0.2)
        becomes(client, restored["volume_id"], "available")
        client.do("volume", "delete", restored["volume_id"])
        words = ("--os-volume-api-version", "3.47", "volume", "create", "--backup", backup)
        client.ask(*words, copy)
        becomes(client, copy, "available")
        client.do("volume", "backup", "delete", backup)
        eventually(lambda: not client.names("volume", "backup", "list"), 30, 0.2)
    finally:
        for one in (name, copy):
            client.run("volume", "delete", one)
    eventually(lambda: client.run("volume", "show", name).returncode == 1, 30, 0.2)
