"""Storages of each type as agents see them: added while they work, and templates on them."""

from __future__ import annotations

from typing import Any

import pytest

from common.messages.commands import Image, PowerAction, Template
from common.messages.reports import Category
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
    template_vmid,
)
from tests.functional.compute.test_templates import IMAGE_ID, retire
from tests.functional.simulator_fixture import RunningSimulator


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
    # Whether or not the template is gone, the server goes on.
    assert worker.run(a_power(build, PowerAction.REBOOT_HARD)).ok
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)
    assert retire(worker).gone
    assert cluster.is_empty(template_vmid())


def test_a_storage_that_is_added_meanwhile(
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
