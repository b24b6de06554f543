"""Root disks on the bus that an image asks for, other devices of images, and flavors' bounds."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from common.guest.hardware import with_root_bus
from common.messages.commands import Build, RetireTemplate, Size
from common.resources.local_disks import EPHEMERAL_SLOTS, SWAP_SLOT, LocalDisk
from common.resources.states import ResourceType
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_copy,
    a_destroy,
    a_growth,
    a_shape,
    a_swap,
    an_end,
    clock,
)

ROOTS = ("scsi0", "virtio0", "sata0", "ide0")
BOUNDS = {
    "quota:disk_read_iops_sec": "500",
    "quota:disk_write_bytes_sec": "10485760",
    "quota:vif_inbound_average": "2048",
    "quota:vif_outbound_average": "2048",
    "quota:vif_outbound_burst": "4096",
}


def config_of(cluster: Cluster, build: Build) -> dict[str, Any]:
    config: dict[str, Any] = cluster.vm(build.placed.vmid)["config"]
    return config


def roots(config: dict[str, Any]) -> list[str]:
    return [slot for slot in ROOTS if slot in config]


def bounds(value: str) -> list[str]:
    return [part for part in value.split(",") if part.startswith(("iops", "mbps"))]


@pytest.mark.parametrize(("cloned", "named"), [(True, False), (False, False), (True, True)])
@pytest.mark.parametrize("bus", ["scsi", "virtio", "sata", "ide"])
def test_a_root_disk_is_on_its_bus_for_life(
    worker: Worker, cluster: Cluster, bus: str, cloned: bool, named: bool
) -> None:
    """``named``: by the create's block device mapping, and the image names another one."""
    more: dict[str, Any] = {} if cloned else {"template": None}
    properties = {"hw_disk_bus": bus}
    if named:
        properties = with_root_bus({"hw_disk_bus": "ide" if bus == "sata" else "sata"}, bus)
    build = a_build(image_properties=properties, **more)
    outcome = worker.run(build)
    assert outcome.ok, outcome
    config = config_of(cluster, build)
    slot = f"{bus}0"
    assert roots(config) == [slot]
    assert config["boot"].split(";")[0] == f"order={slot}"
    assert "size=2G" in config[slot]
    assert not [name for name in config if name.startswith("unused")]
    assert worker.run(a_growth(build, 3)).ok
    assert "size=3G" in config_of(cluster, build)[slot]
    copy = a_copy(build, 195_000 + build.operation_id)
    assert worker.run(copy).ok
    retire = RetireTemplate(
        *(
            copy.operation_id + 100_000,
            1,
            ResourceType.TEMPLATE,
            "c1/1",
            copy.placed,
            clock.after(60),
        ),
        image_id=copy.image_id,
        cloud=copy.cloud,
    )
    assert worker.run(retire).gone
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(
    ("first", "then"), [("scsi", "virtio"), ("virtio", "scsi"), ("ide", "sata")]
)
def test_a_rebuild_changes_the_bus(
    worker: Worker, cluster: Cluster, first: str, then: str, keep: bool
) -> None:
    build = a_build(image_properties={"hw_disk_bus": first})
    assert worker.run(build).ok
    was = config_of(cluster, build)
    swap = a_swap(
        build, image_properties={"hw_disk_bus": then}, former_properties=build.image_properties
    )
    outcome = worker.run(swap)
    assert outcome.ok, outcome
    config = config_of(cluster, build)
    assert roots(config) == [f"{then}0"]
    assert config["boot"].startswith(f"order={then}0")
    assert config["unused0"] == was[f"{first}0"].partition(",")[0]
    assert worker.run(an_end(build, keep=keep)).ok
    config = config_of(cluster, build)
    assert roots(config) == [f"{then if keep else first}0"]
    assert "unused0" not in config
    if not keep:
        assert config["boot"] == was["boot"]
    assert worker.run(a_destroy(build)).gone
    assert cluster.is_empty(build.placed.vmid)


def test_a_server_is_rescued_from_beside_its_bus(worker: Worker, cluster: Cluster) -> None:
    build = a_build(image_properties={"hw_disk_bus": "virtio"})
    assert worker.run(build).ok
    assert worker.run(a_swap(build, rescue=True)).ok
    config = config_of(cluster, build)
    assert (config["boot"].split(";")[0], roots(config)) == ("order=scsi15", ["virtio0"])
    assert worker.run(a_growth(build, 4)).ok
    assert "size=4G" in config_of(cluster, build)["virtio0"]
    assert worker.run(an_end(build, keep=False, rescued=True)).ok
    assert config_of(cluster, build)["boot"].split(";")[0] == "order=virtio0"
    assert worker.run(a_destroy(build)).gone


def test_an_image_s_devices_are_there(worker: Worker, cluster: Cluster) -> None:
    build = a_build(
        image_properties={
            "hw_rng_model": "virtio",
            "hw_video_ram": "64",
            "hw_boot_menu": "true",
            "hw_cdrom_bus": "sata",
        },
        extra_specs={"hw_rng:allowed": "True", "hw_rng:rate_bytes": "2048"},
    )
    outcome = worker.run(build)
    assert outcome.ok, outcome
    config = config_of(cluster, build)
    assert config["rng0"] == "source=/dev/urandom,max_bytes=2048,period=1000"
    assert config["vga"] == "std,memory=64"
    assert worker.run(a_destroy(build)).gone


@pytest.mark.parametrize("cloned", [True, False])
def test_a_flavor_bounds_disks_and_interfaces(
    worker: Worker, cluster: Cluster, cloned: bool
) -> None:
    more: dict[str, Any] = {} if cloned else {"template": None}
    disks = (LocalDisk(EPHEMERAL_SLOTS[0], 1024), LocalDisk(SWAP_SLOT, 64))
    build = a_build(extra_specs=BOUNDS, local_disks=disks, storage="local", **more)
    outcome = worker.run(build)
    assert outcome.ok, outcome
    config = config_of(cluster, build)
    for slot in ("scsi0", "scsi27", "scsi30"):
        assert bounds(config[slot]) == ["iops_rd=500", "mbps_wr=10"], slot
    assert "rate=2" in config["net0"].split(",")

    free = Size(build.vcpus, build.memory_mib, {})
    assert worker.run(a_shape(build, free)).ok
    config = config_of(cluster, build)
    assert not [slot for slot in ("scsi0", "scsi27", "scsi30") if bounds(config[slot])]
    assert "rate=" not in config["net0"]
    again = a_shape(build, Size(2, 512, BOUNDS), former=free)
    assert worker.run(again).ok
    assert bounds(config_of(cluster, build)["scsi0"]) == ["iops_rd=500", "mbps_wr=10"]

    assert worker.run(a_swap(build)).ok
    assert worker.run(an_end(build, keep=True)).ok
    assert bounds(config_of(cluster, build)["scsi0"]) == ["iops_rd=500", "mbps_wr=10"]
    assert worker.run(a_destroy(build)).gone


def test_what_others_bound_is_left(worker: Worker, cluster: Cluster) -> None:
    """A resize between flavors that bound nothing leaves an operator's bounds."""
    build = a_build()
    assert worker.run(build).ok
    config = config_of(cluster, build)
    larger = dataclasses.replace(Size(build.vcpus, build.memory_mib, {}), memory_mib=1024)
    assert worker.run(a_shape(build, larger)).ok
    assert config_of(cluster, build)["scsi0"] == config["scsi0"]
    assert worker.run(a_destroy(build)).gone
