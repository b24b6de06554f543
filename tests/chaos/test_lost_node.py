"""A node is lost: HA has its machines go on elsewhere, and the record follows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.world import World, world

SHARED = {"proxmox:sim1": {"vm_storage": "shared", "iso_storage": "shared"}}


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[World]:
    """Three nodes, so that two are a quorum; disks on shared storage."""
    with world(tmp_path, SHARED, nodes=3) as running:
        yield running


def machine(cloud: World, vmid: int) -> Any:
    found: list[Any] = cloud.simulator.state()["sim1"]["vms"]
    return next(vm for vm in found if vm["vmid"] == vmid)


def test_ha_restarts_it_elsewhere_and_the_record_follows(cloud: World) -> None:
    row = cloud.built("guarded")
    assert row.vm_state == "active"
    order = cloud.simulator.fault(action="node-down", node=row.node, ha=True)
    cloud.until(lambda: machine(cloud, row.vmid)["status"] == "running")
    moved = machine(cloud, row.vmid)["node"]
    assert moved != row.node
    cloud.until(lambda: cloud.server(row.uuid).node == moved)
    cloud.simulator.take_back(order)
    assert cloud.left() == ""
    assert cloud.server(row.uuid).vm_state == "active"
    # Nothing was made a second time.
    assert (
        len([vm for vm in cloud.simulator.state()["sim1"]["vms"] if vm["vmid"] == row.vmid]) == 1
    )
