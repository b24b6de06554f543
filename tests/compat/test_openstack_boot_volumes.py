"""Servers that boot from volumes, by the unmodified `openstack` and by openstacksdk."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.compat.conftest import Client, Site
from tests.compat.test_openstack_ports import nic_of
from tests.compat.test_openstack_volumes import becomes
from tests.functional.waiting import eventually

SERVER = ("--flavor", "m1.small", "--network", "vmbr0", "--wait")


def volumes_of(client: Client, server: str) -> list[str]:
    return [one["id"] for one in client.ask("server", "show", server)["volumes_attached"]]


@pytest.mark.long
def test_an_image_on_a_new_volume_and_a_server_from_that(
    client: Client, site: Site, name: str
) -> None:
    made = client.ask(
        *("server", "create", "--image", "cirros", "--boot-from-volume", "2", *SERVER, name)
    )
    assert (made["status"], made["image"]) == ("ACTIVE", "N/A (booted from volume)")
    (volume,) = volumes_of(client, made["id"])
    shown = client.ask("volume", "show", volume)
    assert (shown["status"], shown["bootable"], shown["size"]) == ("in-use", True, 2)
    assert shown["attachments"][0]["device"] == "/dev/sda"
    if site.simulated:
        assert f"serial={volume[:20]}" in nic_of(site, made["id"], "scsi0")
        assert nic_of(site, made["id"], "boot") == "order=scsi0"
    assert client.run("volume", "delete", volume).returncode == 1
    old = ("--os-compute-api-version", "2.92")
    for words, why in (
        ((*old, "server", "rebuild", "--image", "debian-12", made["id"]), "a different image"),
        (("server", "rescue", made["id"]), "Cannot rescue a volume-backed instance"),
        (("server", "backup", "create", made["id"]), "Backup is not supported for volume-backed"),
        (("server", "remove", "volume", made["id"], volume), "root device volume"),
    ):
        refused = client.run(*words)
        assert refused.returncode == 1, words
        assert why in refused.stderr, refused.stderr
    client.do("server", "stop", made["id"])
    client.do("server", "delete", "--wait", made["id"])
    # Nobody said that it is deleted with its server.
    becomes(client, volume, "available")
    again = client.ask("server", "create", "--volume", volume, *SERVER, name)
    assert volumes_of(client, again["id"]) == [volume]
    client.do("server", "resize", "--flavor", "m1.medium", "--wait", again["id"])
    client.do("server", "resize", "confirm", again["id"])
    eventually(lambda: client.ask("server", "show", again["id"])["status"] == "ACTIVE", 30, 0.2)
    assert client.ask("volume", "show", volume)["size"] == 2
    client.do("server", "delete", "--wait", again["id"])
    becomes(client, volume, "available")
    client.do("volume", "delete", volume)
    eventually(lambda: client.run("volume", "show", volume).returncode == 1, 30, 0.2)


def test_a_rebuild_gives_its_volume_another_image(client: Client, site: Site, name: str) -> None:
    made = client.ask(
        *("server", "create", "--image", "cirros", "--boot-from-volume", "12", *SERVER, name)
    )
    (volume,) = volumes_of(client, made["id"])
    drive = nic_of(site, made["id"], "scsi0") if site.simulated else ""
    old, new = ("--os-compute-api-version", "2.92"), ("--os-compute-api-version", "2.93")
    # With its own image, before 2.93: the volume is left as it is.
    client.do(*old, "server", "rebuild", "--image", "cirros", "--wait", made["id"])
    if site.simulated:
        assert nic_of(site, made["id"], "scsi0") == drive
    client.do(
        *(*new, "server", "rebuild", "--reimage-boot-volume", "--image", "debian-12"),
        *("--wait", made["id"]),
    )
    shown = client.ask("server", "show", made["id"])
    assert (shown["status"], shown["image"]) == ("ACTIVE", "N/A (booted from volume)")
    assert volumes_of(client, made["id"]) == [volume]
    becomes(client, volume, "in-use")
    shown = client.ask("volume", "show", volume)
    assert shown["volume_image_metadata"]["image_name"] == "debian-12"
    assert (shown["size"], shown["bootable"]) == (12, True)
    if site.simulated:
        now = nic_of(site, made["id"], "scsi0")
        assert now.split(",")[0] != drive.split(",")[0]
        assert f"serial={volume[:20]}" in now
    client.do("server", "delete", "--wait", made["id"])
    becomes(client, volume, "available")
    client.do("volume", "delete", volume)
    eventually(lambda: client.run("volume", "show", volume).returncode == 1, 30, 0.2)


@pytest.mark.long
def test_it_is_shelved_and_comes_back(client: Client, name: str) -> None:
    made = client.ask(
        *("server", "create", "--image", "cirros", "--boot-from-volume", "1", *SERVER, name)
    )
    (volume,) = volumes_of(client, made["id"])
    client.do("server", "shelve", "--wait", made["id"])
    assert client.ask("server", "show", made["id"])["status"] == "SHELVED_OFFLOADED"
    assert client.run("image", "show", f"{name}-shelved").returncode == 1
    assert client.ask("volume", "show", volume)["status"] == "in-use"
    client.do("server", "unshelve", "--wait", made["id"])
    assert client.ask("server", "show", made["id"])["status"] == "ACTIVE"
    assert volumes_of(client, made["id"]) == [volume]
    client.do("server", "shelve", "--wait", made["id"])
    client.do("server", "delete", "--wait", made["id"])
    becomes(client, volume, "available")
    client.do("volume", "delete", volume)


@pytest.mark.long
def test_an_image_of_it_boots_another(client: Client, site: Site, name: str) -> None:
    made = client.ask(
        *("server", "create", "--image", "cirros", "--boot-from-volume", "1"),
        *("--block-device", "source_type=blank,destination_type=volume,volume_size=1"),
        *(*SERVER, name),
    )
    volumes = volumes_of(client, made["id"])
    if client.run("server", "image", "create", "--name", name, made["id"]).returncode:
        # Its storage has snapshots in files, which the running server has open.
        client.do("server", "stop", made["id"])
        eventually(lambda: client.ask("server", "show", made["id"])["status"] == "SHUTOFF", 30)
        client.do("server", "image", "create", "--name", name, made["id"])
    image = client.ask("image", "show", name)
    assert (image["status"], image["size"]) == ("active", 0)
    properties = image["properties"]
    assert properties["bdm_v2"] == "True"
    mapping = properties["block_device_mapping"]
    mapping = json.loads(mapping) if isinstance(mapping, str) else mapping
    assert [one["boot_index"] for one in mapping] == [0, None]
    snapshots = [one["snapshot_id"] for one in mapping]
    for one in snapshots:
        eventually(lambda one=one: shown(client, one)["status"] == "available", 60, 0.2)
    assert {shown(client, one)["volume_id"] for one in snapshots} == set(volumes)
    copy = client.ask("server", "create", "--image", name, *SERVER, f"{name}-copy")
    copies = volumes_of(client, copy["id"])
    assert len(copies) == 2
    assert not {*copies} & {*volumes}
    assert {client.ask("volume", "show", one)["snapshot_id"] for one in copies} == {*snapshots}
    client.do("image", "delete", name)
    client.do("server", "delete", "--wait", made["id"], copy["id"])
    for one in snapshots:
        client.do("volume", "snapshot", "delete", one)
        eventually(
            lambda one=one: client.run("volume", "snapshot", "show", one).returncode == 1, 60, 0.2
        )
    for one in (*volumes, *copies):
        becomes(client, one, "available")
        client.do("volume", "delete", one)


def shown(client: Client, snapshot: str) -> Any:
    return client.ask("volume", "snapshot", "show", snapshot)


def test_block_devices(client: Client, site: Site, name: str) -> None:
    image = client.ask("image", "show", "cirros")["id"]
    root = f"uuid={image},source_type=image,destination_type=volume,volume_size=1,boot_index=0"
    made = client.ask(
        *("server", "create", "--block-device", f"{root},delete_on_termination=true"),
        *("--block-device", "source_type=blank,destination_type=volume,volume_size=1,tag=data"),
        *(*SERVER, name),
    )
    first, second = volumes_of(client, made["id"])
    attached = {
        one["Volume ID"]: one
        for one in client.ask(
            *("--os-compute-api-version", "2.79", "server", "volume", "list", made["id"])
        )
    }
    assert {one["Device"] for one in attached.values()} == {"/dev/sda", "/dev/sdb"}
    by_device = {one["Device"]: volume for volume, one in attached.items()}
    goes, stays = by_device["/dev/sda"], by_device["/dev/sdb"]
    assert {first, second} == {goes, stays}
    assert attached[goes]["Delete On Termination?"] is True
    assert attached[stays]["Tag"] == "data"
    client.do("server", "delete", "--wait", made["id"])
    eventually(lambda: client.run("volume", "show", goes).returncode == 1, 30, 0.2)
    becomes(client, stays, "available")
    # Beside a disk of its own.
    beside = client.ask(
        *("server", "create", "--image", "cirros", "--block-device"),
        *(f"uuid={stays},source_type=volume,destination_type=volume,boot_index=-1", *SERVER, name),
    )
    assert beside["image"].startswith("cirros")
    if site.simulated:
        assert f"serial={stays[:20]}" in nic_of(site, beside["id"], "scsi1")
    client.do("server", "remove", "volume", beside["id"], stays)
    becomes(client, stays, "available")
    client.do("server", "delete", "--wait", beside["id"])
    client.do("volume", "delete", stays)


@pytest.mark.long
def test_several_at_once(client: Client, name: str) -> None:
    client.do(
        *("server", "create", "--image", "cirros", "--boot-from-volume", "1", "--min", "2"),
        *("--max", "2", *SERVER, name),
    )
    servers = [one["ID"] for one in client.ask("server", "list", "--name", name)]
    volumes = [volume for server in servers for volume in volumes_of(client, server)]
    assert len(set(volumes)) == 2
    client.do("server", "delete", "--wait", *servers)
    for volume in volumes:
        becomes(client, volume, "available")
        client.do("volume", "delete", volume)


@pytest.mark.long
def test_openstacksdk(connection: Any, name: str) -> None:
    server = connection.create_server(
        name,
        image="cirros",
        flavor="m1.small",
        network="vmbr0",
        boot_from_volume=True,
        volume_size=1,
        terminate_volume=True,
        wait=True,
        timeout=120,
    )
    assert server.status == "ACTIVE"
    (attached,) = connection.compute.volume_attachments(server)
    assert connection.delete_server(server.id, wait=True, timeout=60)
    eventually(lambda: connection.block_storage.find_volume(attached.volume_id) is None, 30, 0.2)


def test_ephemeral_and_swap_disks(client: Client, site: Site, name: str) -> None:
    flavor = f"{name}-scratch"
    sizes = ("--vcpus", "1", "--ram", "256", "--disk", "2", "--ephemeral", "2", "--swap", "512")
    client.do("flavor", "create", *sizes, flavor)
    server = ("--image", "cirros", "--flavor", flavor, "--network", "vmbr0", "--wait")
    for words, made in (
        ((), ("2G", "512M")),
        (("--ephemeral", "size=1,format=ext4", "--swap", "256"), ("1G", "256M")),
    ):
        one = client.ask("server", "create", *words, *server, name)
        assert one["status"] == "ACTIVE"
        if site.simulated:
            for slot, size in zip(("scsi27", "scsi30"), made, strict=True):
                assert f"size={size}" in nic_of(site, one["id"], slot)
        client.do("server", "delete", "--wait", one["id"])
    refused = client.run("server", "create", "--ephemeral", "size=3", *server, name)
    assert refused.returncode == 1
    assert "Ephemeral disks requested are larger" in refused.stderr
    client.do("flavor", "delete", flavor)
