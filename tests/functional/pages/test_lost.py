"""The pages about what Proxmox VE has lost, played on a simulated cluster of three nodes."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulator.server import Options, Simulator
from simulator.state.model import Vm
from tests.functional.cloud import EmbeddedCloud, embedded_cloud
from tests.functional.pages.played import Played, Player
from tests.functional.pages.reading import Desk

pytestmark = [pytest.mark.long, pytest.mark.timeout(2400), pytest.mark.filterwarnings("ignore")]


class Site:
    """A cluster of three nodes, a cloud on it, and who reads the page."""

    def __init__(self, simulator: Simulator, cloud: EmbeddedCloud, desk: Desk) -> None:
        self.simulator, self.cloud = simulator, cloud
        self.player = Player(desk, cloud.environment("micronova"))

    def run(self, text: str) -> None:
        """What there is before the story begins."""
        for line in text.strip().splitlines():
            self.player.desk.run(line.strip(), self.player.environment)

    def fault(self, **order: Any) -> None:
        """Break something."""
        self.player.desk.control("POST", "faults", **order)


@pytest.fixture
def simulator(tmp_path: Path) -> Iterator[Simulator]:
    folder = tmp_path / "pve"
    with Simulator(Options(folder, nodes=3, bridges=1, tls=True, speed=100)) as running:
        token = folder / "token"
        token.write_text(f"{running.token['tokenid']}={running.token['secret']}\n")
        token.chmod(0o600)
        yield running


@pytest.fixture
def desk(simulator: Simulator, tmp_path: Path) -> Iterator[Desk]:
    home = tmp_path / "home"
    home.mkdir()
    made = Desk(home)
    made.on_a_node(str(simulator.endpoints[0]["url"]), tmp_path / "pve")
    yield made
    made.close()


def options(simulator: Simulator, tmp_path: Path, *settings: str) -> dict[str, Any]:
    """What the cloud is started with."""
    return {
        "proxmox": simulator.endpoints[0]["url"],
        "proxmox_token_file": tmp_path / "pve" / "token",
        "proxmox_ca": tmp_path / "pve" / "ca.pem",
        "set": list(settings),
    }


def await_volumes(cloud: EmbeddedCloud, status: str, *names: str) -> None:
    storage = cloud.connection("micronova").block_storage
    for name in names:
        storage.wait_for_status(storage.find_volume(name), status, wait=60)


def test_a_node(simulator: Simulator, desk: Desk, tmp_path: Path) -> None:
    create = "openstack --os-compute-api-version 2.74 server create"
    state, storage = tmp_path / "state", "proxmox:proxmox.vm_storage="
    former, present = f"{storage}local", f"{storage}shared"
    with embedded_cloud(state, audited=False, **options(simulator, tmp_path, former)) as cloud:
        # A template of the time before the shared storage is left on the node.
        Site(simulator, cloud, desk).run(
            f"""{create} --image cirros --flavor m1.tiny --host pve3 --wait former
            openstack server delete --wait former"""
        )
    with embedded_cloud(state, audited=False, **options(simulator, tmp_path, present)) as cloud:
        site = Site(simulator, cloud, desk)
        near = "--hint local_to_instance=$(openstack server show web -f value -c id)"
        site.run(
            f"""{create} --image cirros --flavor m1.tiny --host pve3 --wait web
            openstack volume create --size 1 --type local {near} data
            openstack volume create --size 1 --type local {near} spare"""
        )
        await_volumes(cloud, "available", "data", "spare")
        site.run("openstack server add volume web data")
        await_volumes(cloud, "in-use", "data")
        site.fault(action="node-down", node="pve3")
        page = "docs/lost-node.md"
        site.player.play(Played(page, "## What is seen"))
        site.player.play(Played(page, "## Move what was there"))
        # As the doctor says.
        site.run("bash -e <(micronova doctor --fix-lines 2>/dev/null | grep '^qm destroy')")
        site.player.play(Played(page, "## Remove the node"))


def test_a_storage(simulator: Simulator, desk: Desk, tmp_path: Path) -> None:
    nfs = "--server 192.0.2.9 --export /fast --path /mnt/pve/fast --content images"
    desk.run(f"pvesm add nfs fast {nfs}", {})
    fast = "proxmox:proxmox.vm_storage=fast"
    with embedded_cloud(
        tmp_path / "state", audited=False, **options(simulator, tmp_path, fast)
    ) as cloud:
        site = Site(simulator, cloud, desk)
        create = "openstack --os-compute-api-version 2.74 server create"
        site.run(
            f"""{create} --image cirros --flavor m1.tiny --host pve3 --wait web
            openstack volume create --size 1 --type fast data
            openstack volume create --size 1 --type fast spare"""
        )
        await_volumes(cloud, "available", "data", "spare")
        site.run("openstack server add volume web data")
        site.run("openstack volume snapshot create --volume spare before")
        await_volumes(cloud, "in-use", "data")
        storage = cloud.connection("micronova").block_storage
        storage.wait_for_status(storage.find_snapshot("before"), "available", wait=60)
        site.fault(action="storage-offline", storage="fast")
        page = "docs/lost-storage.md"
        site.player.play(Played(page, "## What is seen"))
        site.player.play(Played(page, "## Give it up"))


class Backup:
    """What a cluster has at one moment, and how all of it is put back."""

    def __init__(self, simulator: Simulator) -> None:
        self.cluster = simulator.cluster()
        with self.cluster.turn():
            self.vms = copy.deepcopy(list(self.cluster.vms.values()))
            self.volumes = copy.deepcopy(list(self.cluster.volumes.all()))

    def put_back(self, others: Vm) -> None:
        """Restore it, switched off, and a VM of somebody else."""
        with self.cluster.turn():
            for volume in list(self.cluster.volumes.all()):
                self.cluster.remove_volume(volume)
            for vm in list(self.cluster.vms.values()):
                self.cluster.remove_vm(vm)
            for volume in self.volumes:
                self.cluster.add_volume(volume)
            for vm in (*self.vms, others):
                self.cluster.add_vm(vm).status = "stopped"


def test_a_cluster(simulator: Simulator, desk: Desk, tmp_path: Path) -> None:
    shared = "proxmox:proxmox.vm_storage=shared"
    state = tmp_path / "state"
    with embedded_cloud(state, audited=False, **options(simulator, tmp_path, shared)) as cloud:
        site = Site(simulator, cloud, desk)
        create = "openstack server create --image cirros --flavor m1.tiny --wait"
        site.run(f"{create} kept\n{create} gone")
        backup = Backup(simulator)
        site.run(
            f"""openstack server delete --wait gone
            {create} since
            {create} new
            openstack volume create --size 1 late"""
        )
        await_volumes(cloud, "available", "late")
        with contextlib.closing(sqlite3.connect(state / "cloud.sqlite")) as record, record:
            # It was hours ago.
            record.execute("UPDATE servers SET deleted_at = '2026-01-01' WHERE deleted_at > ''")
        kept = next(one for one in backup.vms if "micronova: server=" in str(one.config))
        config = {"name": "theirs", "memory": "512"}
        new = simulator.cluster().vms[vmids(state)["new"]]
        about = {"vmid": new.vmid, "node": new.node, "config": config, "snapshots": {}}
        backup.put_back(dataclasses.replace(kept, **about))
        page = "docs/restored-cluster.md"
        site.player.play(Played(page, "## What is seen"))
        there = set(simulator.cluster().vms)
        site.run("micronova audit || true")
        assert set(simulator.cluster().vms) == there
        site.player.play(Played(page, "## What is done"))


def vmids(state: Path) -> dict[str, int]:
    """Name → VMID of the servers."""
    with contextlib.closing(sqlite3.connect(state / "cloud.sqlite")) as record:
        found = record.execute("SELECT name, vmid FROM servers WHERE deleted_at IS NULL")
        return dict(found.fetchall())
