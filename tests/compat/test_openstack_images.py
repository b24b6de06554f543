"""Images and backups of servers: by the unmodified `openstack` and openstacksdk."""

from __future__ import annotations

import hashlib
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.compat.conftest import Client, Site
from tests.functional.waiting import eventually


def test_an_image_and_a_server_of_it(client: Client, connection: Any, server: str) -> None:
    client.do("server", "image", "create", "--wait", "--name", "copied", server)
    shown = client.ask("image", "show", "copied")
    assert (shown["status"], shown["visibility"]) == ("active", "private")
    assert shown["properties"]["image_type"] == "snapshot"
    assert shown["properties"]["instance_uuid"] == server
    made = client.ask(
        *("server", "create", "--image", "copied", "--flavor", "m1.small"),
        *("--network", "vmbr0", "--wait", "of-a-copy"),
    )
    assert made["status"] == "ACTIVE"
    refused = connection.image.get(f"/images/{shown['id']}/file")
    assert (refused.status_code, "can't be downloaded here" in refused.text) == (403, True)
    client.do("server", "delete", "--wait", made["id"])
    client.do("image", "delete", "copied")
    assert connection.image.find_image("copied") is None
    actions = {one.action for one in connection.compute.server_actions(server)}
    assert {"create", "createImage"} <= actions


@pytest.mark.parametrize("version", [None, "2.104"])
def test_openstacksdk_waits_for_an_image(
    site: Site, connection: Any, server: str, version: Any
) -> None:
    connection.compute.default_microversion = version
    try:
        image = connection.compute.create_server_image(server, "by-sdk", wait=True, timeout=60)
    finally:
        connection.compute.default_microversion = None
    assert image.status == "active"
    connection.image.delete_image(image)


def test_backups_rotate(client: Client, connection: Any, server: str) -> None:
    def backups() -> list[str]:
        return sorted(one.name for one in connection.image.images() if "nightly" in one.name)

    for number in range(3):
        client.do(
            *("server", "backup", "create", "--wait", "--name", f"nightly-{number}"),
            *("--type", "daily", "--rotate", "2", server),
        )
        connection.compute.wait_for_server(connection.compute.get_server(server), "ACTIVE")
    eventually(lambda: backups() == ["nightly-1", "nightly-2"], 20)
    for one in connection.image.images():
        if "nightly" in one.name:
            connection.image.delete_image(one)


def test_an_image_of_a_project(client: Client, admin: Client, connection: Any) -> None:
    # The shell sends data unless a terminal is its input.
    new = connection.image.create_image(
        "empty",
        disk_format="qcow2",
        container_format="bare",
        min_ram=64,
        is_protected=True,
        tags=["nightly"],
        **{"hw.odd:name": "1"},
    )
    made = client.ask("image", "show", new.id)
    assert (made["status"], made["visibility"], made["protected"]) == ("queued", "shared", True)
    assert (made["tags"], made["properties"]["hw.odd:name"]) == (["nightly"], "1")
    assert client.names("image", "list", "--tag", "nightly", "--shared") == {"empty"}
    client.do(
        *("image", "set", "--name", "set", "--property", "os_distro=debian", "--unprotected"),
        *("--tag", "other", "--hidden", made["id"]),
    )
    client.do("image", "unset", "--tag", "nightly", "--property", "hw.odd:name", made["id"])
    shown = connection.image.get_image(made["id"])
    assert (shown.name, shown.os_distro, shown.tags) == ("set", "debian", ["other"])
    assert (shown.is_protected, shown.is_hidden) == (False, True)
    project = connection.identity.find_project("admin", ignore_missing=False).id
    client.do("image", "add", "project", made["id"], project)
    assert [one["Member ID"] for one in client.ask("image", "member", "list", made["id"])] == [
        project
    ]
    client.do("image", "remove", "project", made["id"], project)
    refused = client.run(
        *("server", "create", "--image", made["id"], "--flavor", "m1.small"),
        *("--network", "vmbr0", "of-nothing"),
    )
    assert f"Image {made['id']} is not active." in refused.stderr
    client.do("image", "delete", made["id"])
    by_sdk = connection.image.create_image("sdk", disk_format="raw", visibility="private", a="b")
    by_sdk = connection.image.update_image(by_sdk, name="sdk 2", a="c")
    connection.image.add_tag(by_sdk, "t")
    found = connection.image.find_image("sdk 2")
    assert (found.status, found.properties["a"], found.tags) == ("queued", "c", ["t"])
    connection.image.delete_image(found)
    file = client.ask("image", "show", "cirros")["id"]
    admin.do("image", "set", "--deactivate", file)
    refused = client.run(
        *("server", "create", "--image", file, "--flavor", "m1.small", "--network", "vmbr0", "x"),
    )
    admin.do("image", "set", "--activate", file)
    assert f"Image {file} is not active." in refused.stderr


def _qcow2(path: Path, gib: int) -> str:
    """Write the start of a qcow2 image of that size, and some MiB of data."""
    header = struct.pack(">4sIQIIQ", b"QFI\xfb", 3, 0, 0, 16, gib << 30)
    sizes = struct.pack(">II", 4, 104)  # of reference counts, and of the header
    path.write_bytes((header.ljust(96, b"\0") + sizes).ljust(112, b"\0") + os.urandom(5_000_000))
    return str(path)


def test_servers_are_made_of_an_uploaded_image(
    site: Site, client: Client, connection: Any, tmp_path: Path
) -> None:
    file = _qcow2(tmp_path / "own.qcow2", 2)
    made = client.ask(
        *("image", "create", "--file", file, "--disk-format", "qcow2"),
        *("--container-format", "bare", "--property", "os_distro=own", "own"),
    )
    shown = connection.image.get_image(made["id"])
    data = Path(file).read_bytes()
    assert (shown.status, shown.size, shown.min_disk) == ("active", len(data), 0)
    assert shown.checksum == hashlib.md5(data).hexdigest()
    assert (shown.hash_algo, shown.hash_value) == ("sha512", hashlib.sha512(data).hexdigest())
    server = client.ask(
        *("server", "create", "--image", "own", "--flavor", "m1.small"),
        *("--network", "vmbr0", "--wait", "of-an-upload"),
    )
    assert server["status"] == "ACTIVE"
    client.do("server", "delete", "--wait", server["id"])
    client.do("image", "delete", "own")
    with Path(file).open("rb") as data_file:
        by_sdk = connection.image.create_image("by-sdk", data=data_file, disk_format="qcow2")
    assert connection.image.get_image(by_sdk).status == "active"
    connection.image.delete_image(by_sdk)
    _import_by_both(client, connection, file)
    if site.simulated:
        eventually(lambda: not _files(site))


def _import_by_both(client: Client, connection: Any, file: str) -> None:
    # The command of `openstack` takes what it isn't given on a terminal for data.
    made = connection.image.create_image("staged", disk_format="qcow2", container_format="bare")
    client.do("image", "stage", "--file", file, made.id)
    assert connection.image.get_image(made).status == "uploading"
    client.do("image", "import", "--method", "glance-direct", made.id)
    eventually(lambda: connection.image.get_image(made).status == "active")
    saved = client.run("image", "save", "--file", f"{file}.saved", made.id)
    # The client takes the refusal for data, whose hash is another one.
    assert (saved.returncode, "Unable to download image" in saved.stderr) == (1, True)
    client.do("image", "delete", made.id)
    with Path(file).open("rb") as data:
        by_sdk = connection.image.create_image(
            "by-import", data=data, disk_format="qcow2", use_import=True, wait=True
        )
    eventually(lambda: connection.image.get_image(by_sdk).status == "active")
    connection.image.delete_image(by_sdk)


def _files(site: Site) -> list[str]:
    """Return the files of uploads on the cluster's storages."""
    nodes = site.proxmox().nodes
    found = [
        one["volid"]
        for node in nodes.get()
        for storage in nodes(node["node"]).storage.get(enabled=1)
        for one in nodes(node["node"]).storage(storage["storage"]).content.get()
    ]
    return [volid for volid in found if "/mn-" in volid]
