"""Disks that no VM has: whose they are is proven, or nothing is said to be ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import ids
from db import schema
from simulator.state.model import MIB, Vm, Volume
from tests.chaos.world import World, world


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[World]:
    """Two nodes."""
    with world(tmp_path) as running:
        yield running


def findings(cloud: World) -> list[Any]:
    """What the last audit left."""
    cloud.audited()
    return cloud.rows(sa.select(schema.findings).where(schema.findings.c.healed_at.is_(None)))


def disk(cloud: World, vmid: int, node: str = "pve1") -> Volume:
    """Somebody's disk, on a storage of a node, of a VM that isn't there."""
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        name = f"{vmid}/vm-{vmid}-disk-0.qcow2"
        return cluster.add_volume(
            Volume(*cluster.place("local", node), name, "images", "qcow2", MIB, MIB, vmid)
        )


def free(cloud: World, volume: Volume) -> None:
    """Its owner removes it."""
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        cluster.remove_volume(volume)


def test_a_disk_at_a_vmid_that_a_build_was_refused_is_nobodys_of_ours(cloud: World) -> None:
    assert cloud.built("warm-up", host="pve1").vm_state == "active"
    low = cloud.next_vmid()
    theirs = disk(cloud, low)
    row = cloud.built("web", host="pve1")
    assert (row.vm_state, row.vmid) == ("active", low + 1)
    for _ in range(2):
        # While the server is there, and when it was deleted: it was never the server's.
        (found,) = findings(cloud)
        assert (found.kind, found.severity, found.heal) == ("volume_foreign", "notice", None)
        assert "pvesm" not in found.remedy
        assert "reap" not in found.remedy
        cloud.delete(row.uuid)
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        assert cluster.volume(theirs.volid, "pve1") is not None
    assert not cloud.rows(sa.select(schema.operations).where(schema.operations.c.action == "reap"))
    free(cloud, theirs)
    assert findings(cloud) == []


def test_disks_are_nobodys_while_vms_are_hidden(cloud: World) -> None:
    row = cloud.built("web")
    assert row.vm_state == "active"
    assert findings(cloud) == []
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        roles = cluster.access.roles
        kept = dict(roles)
        roles.update({name: granted - {"VM.Audit"} for name, granted in kept.items()})
        cluster.access.changed()
    report = cloud.audited()
    assert not report["complete"]
    assert report["open"] == {}
    assert cloud.server(row.uuid).vm_state == "active"
    with cluster.turn():
        roles.update(kept)
        cluster.access.changed()
    cloud.until(lambda: cloud.audited()["complete"])
    assert findings(cloud) == []


def test_another_clouds_vm_and_its_disks_are_not_ours(cloud: World) -> None:
    assert cloud.built("warm-up", host="pve1").vm_state == "active"
    low, theirs = cloud.next_vmid(), ids.new_uuid()
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        vm = cluster.add_vm(
            Vm(
                low,
                "pve1",
                {
                    "name": "theirs",
                    "description": f"micronova: server={theirs}\nmicronova: cloud=south",
                    "smbios1": f"uuid={theirs}",
                },
            )
        )
    left = disk(cloud, low + 1)
    row = cloud.built("web", host="pve1")
    assert row.vmid not in (low, low + 1)
    found = {one.kind: one for one in findings(cloud)}
    assert set(found) == {"band_shared", "volume_foreign"}
    assert "of cloud south" in found["band_shared"].cause
    assert all(one.heal is None and "destroy" not in one.remedy for one in found.values())
    with cluster.turn():
        cluster.remove_vm(vm)
    free(cloud, left)
    assert findings(cloud) == []
