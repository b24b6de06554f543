"""Two clouds on one Proxmox VE cluster, each with a record, an ID and a band of VMIDs of its own.

Their users choose the same names and the same image ID; each cloud boots, replaces and deletes its
own, and an audit of either finds nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from common import ids
from simulator.server import Options, Simulator
from tests.fixtures.root_shell import RootShell
from tests.functional.audits import Audits
from tests.functional.cloud import EmbeddedCloud, embedded_cloud
from tests.functional.waiting import eventually

pytestmark = pytest.mark.long

MIB = 1 << 20
BAND = ("proxmox:proxmox.vmid_low=300000", "proxmox:proxmox.vmid_high=309999")


@contextlib.contextmanager
def cluster(folder: Path, **more: Any) -> Iterator[tuple[Simulator, dict[str, Any]]]:
    with Simulator(Options(folder, nodes=2, bridges=1, tls=True, speed=100, **more)) as running:
        token = folder / "token"
        token.write_text(f"{running.token['tokenid']}={running.token['secret']}\n")
        token.chmod(0o600)
        yield (
            running,
            {
                "proxmox": running.endpoints[0]["url"],
                "proxmox_token_file": token,
                "proxmox_ca": folder / "ca.pem",
            },
        )


@pytest.fixture
def clouds(tmp_path: Path) -> Iterator[tuple[Simulator, EmbeddedCloud, EmbeddedCloud]]:
    with cluster(tmp_path / "pve") as (running, options), contextlib.ExitStack() as stack:
        made = [
            stack.enter_context(embedded_cloud(tmp_path / name, **options, **more))
            for name, more in (
                ("north", {}),
                ("south", {"set": list(BAND)}),
            )
        ]
        yield running, made[0], made[1]


def files(running: Simulator) -> dict[str, int]:
    url = running.endpoints[0]["url"]
    ca = str(running.options.state_dir / "ca.pem")
    state = requests.get(f"{url}/_sim/state", verify=ca, timeout=30).json()
    listed = state["clusters"][0]["volumes"]
    return {one["volid"]: one["size"] for one in listed if "/mn-" in one["volid"]}


def upload(cloud: EmbeddedCloud, image_id: str, data: bytes, folder: Path) -> Any:
    images = cloud.connection().image
    made = images.create_image(
        "private", id=image_id, disk_format="raw", container_format="bare", visibility="private"
    )
    made.data = data
    made.upload(images)
    eventually(lambda: images.get_image(image_id).status == "active", 60)
    return made


def server(cloud: EmbeddedCloud, image_id: str) -> Any:
    compute = cloud.connection().compute
    flavor = next(iter(compute.flavors()))
    made = compute.create_server(
        name="web", image_id=image_id, flavor_id=flavor.id, networks="auto"
    )
    return compute.wait_for_server(made, wait=120)


def addresses(one: Any) -> set[str]:
    return {each["addr"] for some in one.addresses.values() for each in some}


def test_users_of_two_clouds_choose_the_same_names(
    clouds: tuple[Simulator, EmbeddedCloud, EmbeddedCloud], tmp_path: Path
) -> None:
    running, *both = clouds
    image_id = ids.new_uuid()
    data = [os.urandom(2 * MIB) for _ in both]
    for cloud, content in zip(both, data, strict=True):
        upload(cloud, image_id, content, tmp_path)
    assert len(files(running)) == 2
    servers = [server(cloud, image_id) for cloud in both]
    assert not addresses(servers[0]) & addresses(servers[1])
    for cloud in both:
        volume = cloud.connection().block_storage.create_volume(name="data", size=1)
        connection = cloud.connection()
        connection.block_storage.wait_for_status(volume, "available", wait=120)
    # South's user deletes the image and its server: north's are as they were.
    north, south = both
    compute = south.connection().compute
    compute.delete_server(servers[1])
    compute.wait_for_delete(servers[1], wait=120)
    south.connection().image.delete_image(image_id)
    eventually(lambda: len(files(running)) == 1, 60)
    more = server(north, image_id)
    assert more.status == "ACTIVE"
    assert not addresses(more) & addresses(servers[0])


ZONE = "tenants"
#: both clouds may take the same VNIs of the zone: the second one gets another
VNIS = f"networks.tenant_vnets=*:{ZONE}:5000-5003"


def rooted(running: Simulator, folder: Path) -> RootShell:
    state = running.options.state_dir
    url = str(running.endpoints[0]["url"])
    return RootShell(url, state / "ca.pem", state / "root-password", folder / "bin")


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[tuple[Simulator, EmbeddedCloud, EmbeddedCloud]]:
    """Two clouds that make all that a record can have in a cluster."""
    pve = tmp_path / "pve"
    with cluster(pve, optional_privileges=True) as (running, options), contextlib.ExitStack() as s:
        root = rooted(running, tmp_path)
        root.run(
            [
                f"pvesh create /cluster/sdn/zones --zone {ZONE} --type vxlan --peers 10.0.0.1",
                "pvesh set /cluster/sdn",
                "pveum role add Rules --privs Sys.Console",
                "pveum acl modify / --propagate 0 --users micronova@pve --roles Rules",
                "pveum acl modify / --propagate 0 --tokens 'micronova@pve!agent' --roles Rules",
                "pvesh set /cluster/firewall/options --enable 1",
            ]
        )
        both = ["proxmox:proxmox.vm_storage=shared"]
        both += ["proxmox:proxmox.write_affinity_rules=true"]
        made = [
            s.enter_context(embedded_cloud(tmp_path / name, **options, set=[VNIS, *both, *more]))
            for name, more in (("north", ()), ("south", BAND))
        ]
        yield running, made[0], made[1]


class Tenant:
    """A user of one cloud, who names things as the other cloud's does."""

    def __init__(self, cloud: EmbeddedCloud) -> None:
        self.connection = connection = cloud.connection()
        storage, network, compute = (
            connection.block_storage,
            connection.network,
            connection.compute,
        )
        self.network = network.create_network(name="mine")
        network.create_subnet(network_id=self.network.id, cidr="10.9.0.0/24", ip_version=4)
        eventually(lambda: network.get_network(self.network.id).status == "ACTIVE", 60)
        self.security = network.create_security_group(name="web")
        network.create_security_group_rule(
            security_group_id=self.security.id,
            direction="ingress",
            protocol="tcp",
            port_range_min=443,
            port_range_max=443,
        )
        self.volume = storage.create_volume(name="data", size=1)
        storage.wait_for_status(self.volume, "available", wait=120)
        self.snapshot = storage.create_snapshot(volume_id=self.volume.id, name="before")
        storage.wait_for_status(self.snapshot, "available", failures=["error"], wait=120)
        self.backup = storage.create_backup(volume_id=self.volume.id, name="kept")
        storage.wait_for_status(self.backup, "available", failures=["error"], wait=180)
        self.group = compute.create_server_group(name="apart", policy="anti-affinity")
        image = next(one for one in connection.image.images() if "cirros" in one.name)
        flavor = next(iter(compute.flavors()))
        self.servers = [
            compute.create_server(
                name=f"web-{number}",
                image_id=image.id,
                flavor_id=flavor.id,
                networks=[{"uuid": self.network.id}],
                security_groups=[{"name": self.security.id}],
                scheduler_hints={"group": self.group.id},
            )
            for number in (1, 2)
        ]
        self.servers = [compute.wait_for_server(one, wait=180) for one in self.servers]

    def delete_all(self) -> None:
        """Delete everything, the servers first."""
        storage, network = self.connection.block_storage, self.connection.network
        compute = self.connection.compute
        for one in self.servers:
            compute.delete_server(one)
        for one in self.servers:
            compute.wait_for_delete(one, wait=120)
        compute.delete_server_group(self.group)
        storage.delete_backup(self.backup.id)
        storage.delete_snapshot(self.snapshot.id)
        eventually(lambda: not list(storage.backups()) and not list(storage.snapshots()), 120)
        storage.delete_volume(self.volume.id)
        eventually(lambda: not list(storage.volumes()), 120)
        network.delete_network(self.network.id)
        network.delete_security_group(self.security.id)
        eventually(lambda: not network.find_network("mine"), 60)


def held(running: Simulator) -> dict[str, Any]:
    """Return what the cluster has of both clouds, by what distinguishes them."""
    one = running.cluster()
    with one.turn():
        return {
            "vms": {vm.vmid: dict(vm.config) for vm in one.vms.values()},
            "snapshots": {vm.vmid: sorted(vm.snapshots) for vm in one.vms.values()},
            "volumes": {volume.volid for volume in one.volumes.all()},
            "rules": {name: sorted(rule.resources) for name, rule in one.ha.rules.items()},
            "resources": set(one.ha.resources),
            "firewalls": {key: repr(value) for key, value in one.firewalls.items()},
            "vnets": {name: repr(vnet) for name, vnet in one.sdn.running_vnets.items()},
        }


def test_neither_touches_what_the_other_has(
    whole: tuple[Simulator, EmbeddedCloud, EmbeddedCloud],
) -> None:
    """Backups, snapshots, vnets, security groups and affinity rules under the same names."""
    running, *both = whole
    tenants = [Tenant(both[0])]
    first = held(running)
    tenants.append(Tenant(both[1]))
    with running.cluster().turn():
        applied = running.cluster().sdn.running_vnets.values()
        assert sorted(int(one.options["tag"]) for one in applied) == [5000, 5001]
    _unchanged(first, held(running))
    for cloud in both:
        Audits(cloud).assert_clean(unaided=True)
    # South deletes all that it has: north's is as it was, and still works.
    tenants[1].delete_all()
    for cloud in both:
        Audits(cloud).assert_clean(unaided=True)
    last = held(running)
    _unchanged(first, last)
    ours = {name: set(last[name]) - set(first[name]) for name in ("rules", "resources", "vnets")}
    assert not any(ours.values()), ours
    north = tenants[0].connection.block_storage
    restored = north.restore_backup(tenants[0].backup.id, name="again")
    eventually(lambda: north.get_volume(restored["volume_id"]).status == "available", 120)


def _unchanged(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Require that all of an earlier look is there, with the same content."""
    for name, had in before.items():
        has = after[name]
        if isinstance(had, set):
            assert had <= has, name
        else:
            assert {key: has.get(key) for key in had} == had, name
