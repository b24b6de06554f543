"""VMIDs that others have: passed over, whether they were seen in time or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from common import ids
from db import schema
from simulator.state.model import MIB, Vm, Volume
from tests.chaos.world import World, world

STRANGERS = 12


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[World]:
    """Two nodes."""
    with world(tmp_path) as running:
        yield running


def band(cloud: World) -> int:
    """The next VMID that would be given out, were all of them free."""
    return int(cloud.rows(sa.select(schema.vmid_bands.c.next))[0].next)


def states(cloud: World) -> dict[int, str]:
    """VMIDs that are not free."""
    return {row.vmid: row.state for row in cloud.rows(sa.select(schema.vmids))}


def put(cloud: World, vmid: int, node: str = "pve1", **config: str) -> None:
    """Somebody else's VM; with marks, that of another cloud."""
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        cluster.add_vm(Vm(vmid, node, dict(config)))


def of_another_cloud() -> dict[str, str]:
    """The configuration of a server of another cloud."""
    uuid = ids.new_uuid()
    return {
        "name": "theirs",
        "description": f"micronova: server={uuid}\nmicronova: cloud=another",
        "smbios1": f"uuid={uuid}",
        "tags": "micronova",
    }


def remove(cloud: World, *vmids: int) -> None:
    """They go as they came."""
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        for vmid in vmids:
            cluster.remove_vm(cluster.vms[vmid])


def test_a_row_of_taken_ids_is_no_attempt(cloud: World) -> None:
    low = band(cloud)
    taken = range(low, low + STRANGERS)
    for vmid in taken:
        put(cloud, vmid, ("pve1", "pve2")[vmid % 2], **of_another_cloud())
    cloud.until(lambda: {vmid for vmid in taken if states(cloud).get(vmid) == "taken"} == {*taken})
    row = cloud.built("web")
    assert row.vm_state == "active"
    assert row.vmid not in taken
    assert cloud.faults(row.uuid) == []
    # When they are gone their VMIDs are free.
    remove(cloud, *taken)
    cloud.until(lambda: not states(cloud).keys() & {*taken})


def test_ids_that_are_taken_between_look_and_create_are_no_attempts_either(cloud: World) -> None:
    assert cloud.built("warm-up", host="pve1").vm_state == "active"
    low = band(cloud)
    taken = range(low, low + STRANGERS)
    # Nobody looks at the cluster in between: the agent's own look before a create must do.
    cloud.simulator.fault(action="hold", path=r"/cluster/status$", times=0)
    for vmid in taken:
        put(cloud, vmid, **of_another_cloud())
    row = cloud.built("server", host="pve1")
    assert (row.vm_state, row.vmid) == ("active", low + STRANGERS)
    faults = cloud.faults(row.uuid)
    assert len(faults) == STRANGERS > int(cloud.conf.conductor.max_attempts)
    assert {fault.category for fault in faults} == {"storage_conflict"}
    journal = cloud.rows(
        sa.select(schema.vmid_journal).where(schema.vmid_journal.c.server_uuid == row.uuid)
    )
    assert {one.vmid for one in journal if one.refused} == {*taken}
    assert {one.vmid for one in journal if not one.refused} == {row.vmid}
    cloud.calm()
    remove(cloud, *taken)


def test_a_band_that_is_full_of_others_ends_in_a_clear_fault(tmp_path: Path) -> None:
    narrow = {"proxmox:sim1": {"vmid_low": "500000", "vmid_high": "500005"}}
    with world(tmp_path, narrow) as cloud:
        for vmid in range(500_000, 500_006):
            put(cloud, vmid, **of_another_cloud())
        row = cloud.built("server")
        assert row.vm_state == "error"
        fault = cloud.faults(row.uuid)[-1]
        assert fault.category == "configuration"
        assert "500000 to 500005, is used up" in fault.message
        assert "vmid_high" in fault.remedy
        remove(cloud, *range(500_000, 500_006))
        cloud.until(lambda: "taken" not in states(cloud).values())


def test_two_clouds_on_one_cluster_and_one_band(cloud: World) -> None:
    """The other cloud takes each VMID right after it was reserved here."""
    assert cloud.built("warm-up", host="pve1").vm_state == "active"
    low = band(cloud)
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        # What the other one left: a disk of a VM that it moved away.
        stray = cluster.add_volume(
            Volume("shared", "", f"{low}/vm-{low}-disk-0.raw", "images", "raw", MIB, MIB, low)
        )
    for vmid in range(low + 1, low + 5):
        put(cloud, vmid, **of_another_cloud())
    row = cloud.built("server", host="pve1")
    assert row.vm_state == "active"
    assert row.vmid not in range(low, low + 5)
    with cluster.turn():
        assert cluster.volume(stray.volid, "pve1") is not None, "never touched"
        cluster.remove_volume(stray)
    remove(cloud, *range(low + 1, low + 5))
