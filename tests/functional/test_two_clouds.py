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
from tests.functional.cloud import EmbeddedCloud, embedded_cloud
from tests.functional.waiting import eventually

pytestmark = pytest.mark.long

MIB = 1 << 20
BAND = ("proxmox:proxmox.vmid_low=300000", "proxmox:proxmox.vmid_high=309999")


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[tuple[Simulator, dict[str, Any]]]:
    with Simulator(Options(folder, nodes=2, bridges=1, tls=True, speed=100)) as running:
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
