"""Storages of each type as agents see them: added while they work, and templates on them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from common.messages.commands import Image, PowerAction, Template
from common.messages.reports import Category
from compute.hypervisor.proxmox import settings
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.driver import ProxmoxHypervisor
from compute.hypervisor.proxmox.settings import ClusterSettings
from tests.fixtures.storages import CHAIN, STORAGES, each
from tests.functional.compute.conftest import (
    IMAGE,
    Cluster,
    Worker,
    a_build,
    a_destroy,
    a_power,
    a_removal,
    a_volume,
    as_root,
    configuration,
    proxmox_text,
    template_vmid,
)
from tests.functional.compute.test_templates import IMAGE_ID, retire
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually


def made(worker: Worker, **more: Any) -> tuple[Any, str]:
    volume = a_volume(**more)
    outcome = worker.run(volume)
    assert outcome.volume is not None, outcome
    return volume, outcome.volume.volid


@pytest.mark.sampled(8)
@each()
def test_a_template_and_what_is_cloned_of_it(
    kind: str, simulator: RunningSimulator, worker: Worker, cluster: Cluster
) -> None:
    one, storage = STORAGES[kind], f"of-{kind}"
    one.add(simulator.control, storage)
    worker.hypervisors[0].observe()
    template = Template(template_vmid(), "pve1", storage)
    build = a_build(template=template, storage=storage)
    assert worker.run(build).ok
    root = str(cluster.vm(build.placed.vmid)["config"]["scsi0"]).partition(",")[0]
    assert root.endswith(one.volid(storage, build.placed.vmid).partition(":")[2])
    way = worker.conductor.steps(build)["compute_ensure_image"].detail["way"]
    assert way == ("linked_clone" if one.linked else "import_from")
    gone = retire(worker).gone
    assert gone == (one.clones_apart or not one.linked)
    assert (cluster.vm(template_vmid()) is None) == gone
    # Whether or not the template is gone, the server works.
    assert worker.run(a_power(build, PowerAction.REBOOT_HARD)).ok
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)
    assert retire(worker).gone
    assert cluster.is_empty(template_vmid())


def test_a_storage_that_is_added_while_the_agent_runs(
    simulator: RunningSimulator, worker: Worker, cluster: Cluster
) -> None:
    driver: Any = worker.hypervisors[0]
    root = as_root(simulator)
    given = {"vgname": "vg", CHAIN: 1, "content": "images", "shared": 1}
    root.storage.post(storage="san", type="lvm", **given)
    root.storage.post(storage="thick", type="lvm", vgname="other", content="images")
    driver.observe()
    seen = driver.shared.snapshot.nodes["pve1"].storages
    assert (seen["san"].kind, seen["thick"].kind) == ("lvm-chain", "lvm")
    volume, volid = made(worker, storage="san")
    assert volid == f"san:vm-{volume.placed.vmid}-disk-0.qcow2"
    # What nobody has open isn't readable, and is there nevertheless.
    again = worker.run(volume)
    assert again.volume is not None
    assert (again.volume.volid, again.volume.size_bytes) == (volid, 2 << 30)
    assert worker.run(a_removal(volume, volid)).gone
    assert cluster.is_empty(volume.placed.vmid)
    # Removed, it is none any more.
    root.storage("san").delete()
    driver.observe()
    assert "san" not in driver.shared.snapshot.nodes["pve1"].storages
    refused = worker.run(a_volume(storage="san"))
    assert refused.failure is not None
    assert refused.failure.category is Category.CONFIGURATION


def configurations(cluster: Cluster) -> int:
    """How often the configuration of all storages was read."""
    return sum("/nodes/" not in one["path"] for one in cluster.calls("GET", "/storage"))


def test_how_lvm_keeps_snapshots_is_asked_where_there_is_one_only(
    simulator: RunningSimulator, worker: Worker, cluster: Cluster
) -> None:
    driver: Any = worker.hypervisors[0]
    for _ in range(3):
        driver.observe()
    assert configurations(cluster) == 0
    STORAGES["lvm"].add(simulator.control, "asked")
    driver.observe()
    assert configurations(cluster) >= 1


class Interrupted(Client):
    """A client that calls ``before`` before it reads the configuration of all storages."""

    def __init__(self, of: ClusterSettings) -> None:
        super().__init__(of)
        self.before: Callable[[], object] = lambda: None

    def get(self, path: str, **params: Any) -> Any:
        if path == "storage":
            self.before()
        return super().get(path, **params)


@pytest.fixture
def slow(
    simulator: RunningSimulator,
    worker: Worker,
    tmp_path: Path,
) -> Iterator[ProxmoxHypervisor]:
    """A driver that reads how storages keep snapshots once in an hour, or where it must."""
    text = proxmox_text(simulator).replace("content_seconds = 1", "content_seconds = 3600")
    conf = configuration(tmp_path, text)
    cluster = settings.clusters(conf)[0]
    driver = ProxmoxHypervisor(conf, cluster, Interrupted(cluster))
    yield driver
    driver.close()


def seen_by(driver: Any) -> str:
    """How that storage is seen now; empty: it isn't."""
    driver.observe()
    seen = driver.shared.snapshot.storage("pve1", "san")
    return "" if seen is None else seen.kind


def is_seen(driver: Any, kind: str) -> bool:
    return seen_by(driver) == kind


def test_one_that_cannot_be_read_is_read_with_the_next_look(
    simulator: RunningSimulator, slow: ProxmoxHypervisor
) -> None:
    STORAGES["lvm-chain"].add(simulator.control, "san")
    simulator.control("POST", "faults", {"action": "fail", "method": "GET", "path": "^/storage$"})
    assert seen_by(slow) == "lvm"
    simulator.control("DELETE", "faults")
    assert seen_by(slow) == "lvm-chain"


def test_one_that_is_removed_while_it_is_looked_at(
    simulator: RunningSimulator, slow: ProxmoxHypervisor
) -> None:
    root = as_root(simulator)
    client = slow.shared.client
    assert isinstance(client, Interrupted)
    STORAGES["lvm-chain"].add(simulator.control, "san")
    client.before = lambda: root.storage("san").delete()
    assert seen_by(slow) == "lvm"
    client.before = lambda: None
    STORAGES["lvm-chain"].add(simulator.control, "san")
    assert seen_by(slow) == "lvm-chain"
    # After it was seen to be removed, a storage of that name may be another one.
    root.storage("san").delete()
    assert seen_by(slow) == ""
    STORAGES["lvm"].add(simulator.control, "san")
    assert seen_by(slow) == "lvm"


def test_how_snapshots_are_made_is_asked_again_of_another_type(
    simulator: RunningSimulator, worker: Worker, cluster: Cluster
) -> None:
    root = as_root(simulator)
    for kind in ("lvm", "lvm-chain", "lvm"):
        STORAGES[kind].add(simulator.control, "san")
        eventually(functools.partial(is_seen, worker.hypervisors[0], kind))
        volume = a_volume(storage="san")
        outcome = worker.run(volume)
        assert outcome.volume is not None, outcome
        assert outcome.volume.snapshots == STORAGES[kind].way
        assert worker.run(a_removal(volume, outcome.volume.volid)).gone
        root.storage("san").delete()


@each("lvm", "lvm-chain")
def test_no_room_on_a_thick_storage(
    kind: str, simulator: RunningSimulator, worker: Worker, cluster: Cluster
) -> None:
    storage = f"of-{kind}"
    STORAGES[kind].add(simulator.control, storage)
    worker.hypervisors[0].observe()
    image = Image(IMAGE_ID, IMAGE, f"shared:import/{IMAGE}.qcow2", 1 << 24)
    build = a_build(image=image, template=None, storage=storage, disk_gib=5000)
    outcome = worker.run(build)
    assert outcome.failure is not None
    assert outcome.failure.category is Category.STORAGE_FULL
    assert cluster.is_empty(build.placed.vmid)
