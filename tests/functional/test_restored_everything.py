"""All kinds of things that a user can make since a backup are the user's again after a restore.

Networks on vnets and on VLANs with their subnets, images of files and of servers, volumes,
snapshots, backups, and what servers of the record have got since: interfaces and volumes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.functional import programs
from tests.functional.audits import Audits
from tests.functional.cloud import EmbeddedCloud, embedded_cloud
from tests.functional.test_restored_record import micronova, servers
from tests.functional.test_two_clouds import MIB, VNIS, ZONE, cluster, rooted, upload
from tests.functional.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(2400)]

IMAGE = "0f4e1c0a-6d3b-4f7c-9b7e-4a9f2f1f3a01"


@pytest.fixture
def options(tmp_path: Path) -> Iterator[dict[str, Any]]:
    pve = tmp_path / "pve"
    with cluster(pve, optional_privileges=True) as (running, found):
        rooted(running, tmp_path).run(
            [
                f"pvesh create /cluster/sdn/zones --zone {ZONE} --type vxlan --peers 10.0.0.1",
                "pvesh set /cluster/sdn",
                "pveum role add Rules --privs Sys.Console",
                "pveum acl modify / --propagate 0 --users micronova@pve --roles Rules",
                "pveum acl modify / --propagate 0 --tokens 'micronova@pve!agent' --roles Rules",
                "pvesh set /cluster/firewall/options --enable 1",
            ]
        )
        yield {
            **found,
            "set": [VNIS, "proxmox:proxmox.vm_storage=shared"],
        }


class Made:
    """What a user makes, by an openstacksdk connection."""

    def __init__(self, cloud: EmbeddedCloud, old: Any, folder: Path) -> None:
        it = cloud.connection()
        network, storage, compute = it.network, it.block_storage, it.compute
        self.network = network.create_network(name="mine")
        network.create_subnet(
            network_id=self.network.id,
            **{"cidr": "10.9.0.0/24", "ip_version": 4, "dns_nameservers": ["10.9.0.53"]},
        )
        eventually(lambda: network.get_network(self.network.id).status == "ACTIVE", 60)
        image = next(one for one in it.image.images() if "cirros" in one.name)
        flavor = next(iter(compute.flavors()))
        about = {"image_id": image.id, "flavor_id": flavor.id}
        made = compute.create_server(name="on", networks=[{"uuid": self.network.id}], **about)
        self.server = compute.wait_for_server(made, wait=120)
        compute.create_server_interface(old, net_id=self.network.id)
        upload(cloud, IMAGE, os.urandom(MIB), folder)
        self.golden = compute.create_server_image(self.server, "golden", wait=True, timeout=120)
        self.volume = storage.create_volume(name="data", size=1)
        storage.wait_for_status(self.volume, "available", wait=120)
        self.snapshot = storage.create_snapshot(volume_id=self.volume.id, name="before")
        storage.wait_for_status(self.snapshot, "available", wait=120)
        self.saved = storage.create_volume(name="saved", size=1)
        storage.wait_for_status(self.saved, "available", wait=120)
        self.backup = storage.create_backup(volume_id=self.saved.id, name="monday")
        storage.wait_for_status(self.backup, "available", wait=120, interval=1)
        compute.create_volume_attachment(self.server, volume_id=self.saved.id)
        storage.wait_for_status(self.saved, "in-use", wait=120)


def ports(cloud: EmbeddedCloud, server: Any) -> set[Any]:
    """Return (port, MAC address, addresses) of a server."""
    return {
        (one.id, one.mac_address, tuple(sorted(ip["ip_address"] for ip in one.fixed_ips)))
        for one in cloud.connection().network.ports(device_id=server.id)
    }


def test_all_that_was_made_since(tmp_path: Path, options: dict[str, Any]) -> None:
    state, saved = tmp_path / "state", tmp_path / "saved"
    with embedded_cloud(state, **options) as cloud:
        [old] = servers(cloud, "old")
        storage = cloud.connection().block_storage
        known = storage.create_volume(name="known", size=1)
        storage.wait_for_status(known, "available", wait=120)
        micronova(cloud, "backup", "--state-dir", str(state), str(saved))
        made = Made(cloud, old, tmp_path)
        cloud.connection().compute.create_volume_attachment(old, volume_id=known.id)
        storage.wait_for_status(known, "in-use", wait=120)
        had = {one.id: ports(cloud, one) for one in (old, made.server)}
        cloud.stop()
    words = ["restore", "--state-dir", str(state), "--from", str(saved), "--apply"]
    done = programs.run("micronova", words, {"PATH": os.environ["PATH"]})
    assert done.returncode == 0, done.stdout + done.stderr
    with embedded_cloud(state, audited=False, **options) as cloud:
        it = cloud.connection()
        eventually(lambda: "record_restored" in micronova(cloud, "audit", "--long", code=1), 60)
        # Before anybody has decided: no address of theirs is given again.
        [new] = servers(cloud, "new")
        taken = {ip for those in had.values() for _, _, ips in those for ip in ips}
        assert not taken & {ip for _, _, ips in ports(cloud, new) for ip in ips}
        planned = micronova(cloud, "restore")
        things = [
            f"network {made.network.id}",
            *(f"image {IMAGE}", f"image {made.golden.id}"),
            *(f"server {made.server.id}", f"server {old.id}"),
            *(f"volume {made.volume.id}", f"volume {made.saved.id}", f"volume {known.id}"),
            *(f"snapshot {made.snapshot.id}", f"backup {made.backup.id}"),
        ]
        assert [one for one in things if f"adopt: {one}" not in planned] == [], planned
        assert "leave:" not in planned, planned
        assert it.network.find_network(made.network.id) is None
        applied = micronova(cloud, "restore", "--apply")
        assert applied.count("It is adopted.") == planned.count("adopt:"), applied
        eventually(lambda: it.compute.get_server(made.server.id).status == "ACTIVE", 60)
        assert {one.id: ports(cloud, one) for one in (old, made.server)} == had
        [subnet] = it.network.subnets(network_id=made.network.id)
        assert (subnet.cidr, subnet.dns_nameservers) == ("10.9.0.0/24", ["10.9.0.53"])
        network = it.network.get_network(made.network.id)
        assert (network.project_id, network.status) == (made.network.project_id, "ACTIVE")
        assert {it.image.get_image(one).status for one in (IMAGE, made.golden.id)} == {"active"}
        assert it.block_storage.get_snapshot(made.snapshot.id).volume_id == made.volume.id
        assert it.block_storage.get_backup(made.backup.id).volume_id == made.saved.id
        assert it.block_storage.get_volume(known.id).attachments[0]["server_id"] == old.id
        use(cloud, made)
        audits = Audits(cloud)
        audits.run()
        assert audits.open() == []


def use(cloud: EmbeddedCloud, made: Made) -> None:
    """Use what was adopted as its owner would."""
    it = cloud.connection()
    flavor = next(iter(it.compute.flavors()))
    for image in (IMAGE, made.golden.id):
        one = it.compute.create_server(
            name="again", image_id=image, flavor_id=flavor.id, networks=[{"uuid": made.network.id}]
        )
        one = it.compute.wait_for_server(one, wait=120)
        [(_, _, [ip])] = ports(cloud, one)
        assert ip.startswith("10.9.0.")
    restored = it.block_storage.create_volume(name="restored", size=1, backup_id=made.backup.id)
    it.block_storage.wait_for_status(restored, "available", wait=120)
    it.block_storage.delete_snapshot(made.snapshot.id)
    it.block_storage.wait_for_delete(it.block_storage.get_snapshot(made.snapshot.id), wait=120)
    it.block_storage.delete_volume(made.volume.id)
    it.block_storage.wait_for_delete(it.block_storage.get_volume(made.volume.id), wait=120)
