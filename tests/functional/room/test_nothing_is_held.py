"""A server that waits for room holds its part of the quota, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.functional.test_costs import HOSTS, Cloud, look, read_state
from tests.functional.test_waiting_for_room import LARGE, creating, delete, rows, running, waits
from tests.functional.waiting import eventually

#: what a server has once it has a host; the record of a volume that is to be made is its request
HELD = {
    "vmids": "TRUE",
    "ports": "TRUE",
    "port_addresses": "TRUE",
    "volumes": "COALESCE(host, cluster, node, storage, vmid, volid) IS NOT NULL",
}


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    subnets = ("networks", "subnets", ["vmbr0=10.0.0.0/28"])
    with running(tmp_path, subnets) as made:
        yield made
        for uuid in rows(tmp_path, "SELECT uuid FROM servers WHERE deleted_at IS NULL"):
            delete(made, uuid)


def counted(folder: Path) -> dict[str, int]:
    return {
        name: look(folder, f"SELECT count(*) FROM {name} WHERE {held}")
        for name, held in HELD.items()
    }


def test_nothing_but_the_quota_is_held(cloud: Cloud, tmp_path: Path) -> None:
    """Neither a claim, a VMID, a port with its address, nor a volume, which all exist later."""
    create = creating(cloud, tmp_path)
    network = look(tmp_path, "SELECT id FROM networks WHERE bridge = 'vmbr0'")
    image = look(tmp_path, "SELECT id FROM images LIMIT 1")
    disk = {"boot_index": 0, "source_type": "image", "destination_type": "volume"}
    disk |= {"uuid": image, "volume_size": 1, "delete_on_termination": True}
    more: dict[str, Any] = {
        "networks": [{"uuid": network}],
        "imageRef": "",
        "block_device_mapping_v2": [disk],
    }
    full = [create(f"full-{n}", wait=None) for n in range(HOSTS)]
    eventually(lambda: {read_state(tmp_path, one) for one in full} == {"active"})
    before, used = counted(tmp_path), _used(cloud)
    uuid = create("patient", **more)
    eventually(lambda: waits(tmp_path, uuid))
    assert cloud.placement.allocations_of(uuid).by_provider == {}
    assert counted(tmp_path) == before
    taken = {name: amount - used[name] for name, amount in _used(cloud).items()}
    assert taken == {"instances": 1, "cores": int(LARGE), "ram": 2048}

    delete(cloud, full[0])
    eventually(lambda: read_state(tmp_path, uuid) == "active")
    assert cloud.placement.allocations_of(uuid).by_provider
    now = counted(tmp_path)
    assert all(now[name] > before[name] for name in ("vmids", "ports", "volumes")), now


def _used(cloud: Cloud) -> dict[str, int]:
    found = cloud.call("GET", "/v2.1/limits")["limits"]["absolute"]
    names = {"instances": "Instances", "cores": "Cores", "ram": "RAM"}
    return {name: found[f"total{said}Used"] for name, said in names.items()}
