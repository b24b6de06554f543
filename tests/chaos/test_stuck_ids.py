"""A machine that was never finished has the VMID that a build was given: only root can help."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from db import schema
from simulator.state.model import Vm, Volume
from tests.chaos.world import World, world


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[World]:
    """Two nodes."""
    with world(tmp_path) as running:
        yield running


def shell(cloud: World, vmid: int, node: str) -> None:
    """Somebody's create died."""
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        cluster.add_vm(Vm(vmid, node, config={"lock": "create"}))


def quarantined(cloud: World) -> dict[int, Any]:
    """By VMID, the row."""
    found = cloud.rows(sa.select(schema.vmids).where(schema.vmids.c.state == "quarantined"))
    return {row.vmid: row for row in found}


def test_a_strangers_shell_costs_its_vmid_and_nothing_else(cloud: World) -> None:
    assert cloud.built("warm-up", host="pve1").vm_state == "active"
    first = cloud.next_vmid()
    for vmid in (first, first + 1):
        shell(cloud, vmid, "pve1")
    row = cloud.built("server", host="pve1")
    assert (row.vm_state, row.vmid, row.host) == ("active", first + 2, "pve1")
    faults = cloud.faults(row.uuid)
    # An ID that the agent reported in time was not even tried.
    assert {fault.category for fault in faults} <= {"lock"}
    assert all("No task of this token is known" in fault.message for fault in faults)
    kept = quarantined(cloud)
    assert set(kept) <= {first, first + 1}
    for number, vmid in enumerate(sorted(kept)):
        assert kept[vmid].reason == faults[number].message
        assert kept[vmid].since is not None
    cluster = cloud.simulator.cluster()
    for vmid in (first, first + 1):
        assert dict(cluster.vms[vmid].config) == {"lock": "create"}, "never touched"
        with cluster.turn():
            cluster.remove_vm(cluster.vms[vmid])


def test_strangers_shells_are_no_attempts(cloud: World) -> None:
    assert cloud.built("warm-up", host="pve1").vm_state == "active"
    first = cloud.next_vmid()
    stuck = range(first, first + 10)
    for vmid in stuck:
        shell(cloud, vmid, "pve1")
    seen = schema.vmids.c.state == "taken"
    cloud.until(lambda: len(cloud.rows(sa.select(schema.vmids.c.vmid).where(seen))) == len(stuck))
    row = cloud.built("server", host="pve1")
    assert (row.vm_state, row.vmid) == ("active", first + 10)
    assert cloud.faults(row.uuid) == []
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        for vmid in stuck:
            cluster.remove_vm(cluster.vms[vmid])


def test_attempts_that_leave_a_shell_are_bounded(cloud: World) -> None:
    assert cloud.built("warm-up", host="pve1").vm_state == "active"
    first = cloud.next_vmid()
    for vmid in range(first, first + 10):
        cloud.simulator.fault(leak="L4", vmid=vmid)
    row = cloud.built("server", host="pve1")
    assert (row.vm_state, row.vmid) == ("error", None)
    most = int(cloud.conf.conductor.max_attempts)
    assert len(cloud.faults(row.uuid)) == most
    assert set(quarantined(cloud)) == set(range(first, first + most))
    cloud.until(lambda: not cloud.open_operations())


def test_a_volume_on_another_nodes_storage_costs_its_vmid(cloud: World) -> None:
    assert cloud.built("warm-up", host="pve1").vm_state == "active"
    first = cloud.next_vmid()
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        name = f"{first}/vm-{first}-cloudinit.qcow2"
        stray = cluster.add_volume(
            Volume("local", "pve2", name, "images", "qcow2", 1 << 23, 1 << 20, first)
        )
    row = cloud.built("server", host="pve1")
    assert (row.vm_state, row.vmid, row.host) == ("active", first + 1, "pve1")
    (fault,) = cloud.faults(row.uuid)
    assert fault.category == "storage_conflict"
    assert fault.remedy == f"as root on pve2: pvesm free {stray.volid}"
    (kept,) = quarantined(cloud).values()
    assert (kept.vmid, kept.reason) == (first, fault.message)
    assert cluster.volume(stray.volid, "pve2") == stray, "never touched"
    with cluster.turn():
        cluster.remove_volume(stray)


def test_what_a_build_itself_left_half_made_does_not_end_it(cloud: World) -> None:
    assert cloud.built("warm-up", host="pve1").vm_state == "active"
    first = cloud.next_vmid()
    cloud.simulator.fault(leak="L4", vmid=first)
    row = cloud.built("server", host="pve1")
    assert (row.vm_state, row.host, row.vmid) == ("active", "pve1", first + 1)
    (fault,) = cloud.faults(row.uuid)
    assert fault.remedy == f"as root on pve1: qm unlock {first} && qm destroy {first} --purge"
    assert set(quarantined(cloud)) == {first}
