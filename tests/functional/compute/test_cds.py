"""ISO images on a simulated cluster: servers are made, rebuilt and rescued from a CD, which is
used where it lies."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from common import ids
from common.messages.commands import Build, Image, PowerAction, Swap
from common.messages.reports import Category
from tests.functional.compute.conftest import (
    Cluster,
    RunningSimulator,
    Worker,
    a_build,
    a_destroy,
    a_power,
    a_swap,
    an_end,
    as_root,
)

MIB = 1 << 20
DISK = a_build().image
DEVICES = ("scsi0", "scsi15", "ide0", "ide2", "sata5", "boot")


@pytest.fixture
def cd(simulator: RunningSimulator, worker: Worker) -> Image:
    volid = "shared:iso/install.iso"
    simulator.control("POST", "volume", {"volid": volid, "size": 16 * MIB, "used": 16 * MIB})
    image_id = ids.named("image", "install.iso")
    return Image(image_id, "install.iso", volid, 16 * MIB, min_disk_gib=1, cd=True)


def devices(cluster: Cluster, build: Build) -> dict[str, Any]:
    """The drives of a VM without their sizes, and what it boots from."""
    config = cluster.vm(build.placed.vmid)["config"]
    return {
        # Proxmox VE appends each CD that is inserted to the boot order.
        name: value.split(",size=")[0].removesuffix(";ide2")
        for name, value in config.items()
        if name in DEVICES or name.startswith("unused")
    }


def volumes(cluster: Cluster, build: Build) -> set[str]:
    return set(cluster.volumes(build.placed.vmid))


def test_isos_are_images(worker: Worker, cd: Image) -> None:
    assert worker.run(a_build()).ok  # with a config drive, which is no image
    hypervisor = worker.hypervisors[0]
    hypervisor._refresher._images.clear()  # type: ignore[attr-defined]
    seen = hypervisor.observe()
    [image] = [one for one in seen.cluster.images if one.disk_format == "iso"]
    assert (image.id, image.name, image.volid) == (cd.id, cd.name, cd.volid)
    assert image.virtual_size_bytes == image.size_bytes == 16 * MIB
    assert all(image.id in host.images for host in seen.hosts)


def test_a_server_made_from_a_cd(worker: Worker, cluster: Cluster, cd: Image) -> None:
    build = a_build(image=cd, template=None)
    outcome = worker.run(build)
    assert outcome.failure is None
    has = devices(cluster, build)
    assert has["boot"] == "order=scsi0;ide0"
    assert has["ide0"].startswith(f"{cd.volid},media=cdrom")
    assert "media=cdrom" in has["ide2"]
    assert "size=2G" in cluster.vm(build.placed.vmid)["config"]["scsi0"]
    assert not cluster.calls("POST", "/clone")
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)
    assert cd.volid in {one["volid"] for one in cluster._now["volumes"]}


@pytest.mark.parametrize("name", ["live #1.iso", "live?.iso", "50%23.iso", "a;b&c.iso"])
def test_a_cd_of_any_name(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, name: str
) -> None:
    volid = f"shared:iso/{name}"
    simulator.control("POST", "volume", {"volid": volid, "size": 16 * MIB, "used": 16 * MIB})
    image_id = ids.named("image", name)
    cd = Image(image_id, name, volid, 16 * MIB, min_disk_gib=1, cd=True)
    build = a_build(image=cd, template=None)
    outcome = worker.run(build)
    assert outcome.failure is None
    assert devices(cluster, build)["ide0"].startswith(f"{volid},media=cdrom")
    assert worker.run(a_destroy(build)).gone


def test_a_cd_that_is_gone(worker: Worker, cluster: Cluster, cd: Image) -> None:
    gone = dataclasses.replace(cd, name="gone.iso", volid="shared:iso/gone.iso")
    build = a_build(image=gone, template=None)
    outcome = worker.run(build)
    assert outcome.failure is not None
    assert outcome.failure.category == Category.IMAGE_NOT_FOUND
    assert cluster.is_empty(build.placed.vmid)


@pytest.mark.parametrize("keep", [True, False])
def test_a_rebuild_to_a_cd_and_back(
    worker: Worker, cluster: Cluster, cd: Image, keep: bool
) -> None:
    build = a_build()
    assert worker.run(build).ok
    was, had = devices(cluster, build), volumes(cluster, build)
    swap = a_swap(build, image=cd)
    for _ in range(2):
        assert worker.run(swap).failure is None
    now = devices(cluster, build)
    assert now["boot"] == "order=scsi0;ide0"
    assert now["ide0"].startswith(cd.volid)
    assert now["scsi0"] != was["scsi0"] == now["unused0"]
    assert worker.run(an_end(build, keep=keep)).failure is None
    if not keep:
        assert devices(cluster, build) == was
        assert volumes(cluster, build) == had
        return
    assert "unused0" not in devices(cluster, build)
    assert worker.run(a_swap(build, image=DISK)).failure is None
    back = devices(cluster, build)
    assert "ide0" not in back
    assert "ide0" not in back["boot"]
    assert worker.run(an_end(build, keep=False)).failure is None
    undone = devices(cluster, build)
    assert undone["ide0"].startswith(cd.volid)
    assert undone["boot"] == "order=scsi0;ide0"
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)


def a_rescue(build: Build, image: Image, **changes: Any) -> Swap:
    return a_swap(build, rescue=True, disk_gib=0, image=image, **changes)


@pytest.mark.parametrize(("bus", "slot"), [(None, "sata5"), ("ide", "ide0"), ("scsi", "scsi14")])
@pytest.mark.parametrize("of_cd", [False, True], ids=["of a disk", "of a CD"])
def test_a_rescue_from_a_cd(
    worker: Worker, cluster: Cluster, cd: Image, bus: str | None, slot: str, of_cd: bool
) -> None:
    build = a_build(image=cd, template=None) if of_cd else a_build()
    assert worker.run(build).ok
    was, had = devices(cluster, build), volumes(cluster, build)
    other = dataclasses.replace(cd, properties={"hw_rescue_bus": bus} if bus else {})
    rescue = a_rescue(build, other)
    for _ in range(2):
        assert worker.run(rescue).failure is None
    config = cluster.vm(build.placed.vmid)["config"]
    assert config["boot"].startswith(f"order={slot}")
    assert config[slot].startswith(cd.volid)
    assert config["scsi0"].split(",size=")[0] == was["scsi0"]
    assert len(volumes(cluster, build)) == len(had) + 1  # the config drive
    assert worker.run(an_end(build, keep=False, rescued=True)).failure is None
    assert (devices(cluster, build), volumes(cluster, build)) == (was, had)


@pytest.mark.parametrize("rescue", [True, False])
def test_a_disk_is_never_taken_out_for_a_cd(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, cd: Image, rescue: bool
) -> None:
    """An operator gave the VM a disk there."""
    build = a_build()
    assert worker.run(build).ok
    assert worker.run(a_power(build, PowerAction.STOP)).ok
    as_root(simulator).nodes("pve1").qemu(build.placed.vmid).config.put(ide0="local:1")
    assert worker.run(a_power(build, PowerAction.START)).ok
    config = cluster.vm(build.placed.vmid)["config"]
    other = dataclasses.replace(cd, properties={"hw_rescue_bus": "ide"})
    swap = a_rescue(build, other) if rescue else a_swap(build, image=other)
    outcome = worker.run(swap)
    assert outcome.failure is not None
    assert outcome.failure.category == Category.API_NOT_SUPPORTED
    assert "ide0" in config
    assert cluster.vm(build.placed.vmid)["config"] == config
    if not rescue:
        assert worker.run(a_swap(build)).failure is None
        assert worker.run(an_end(build, keep=True)).failure is None
        assert cluster.vm(build.placed.vmid)["config"]["ide0"] == config["ide0"]
