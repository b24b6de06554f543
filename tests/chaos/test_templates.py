"""A cached template in a whole cloud: there while it is needed, and then gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from conductor.images.templates import TemplateKeeper
from db import schema
from tests.chaos.world import World, world


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[World]:
    """One whose templates go as soon as nobody needs them."""
    with world(tmp_path, {"conductor": {"template_grace_seconds": "0"}}) as running:
        yield running


def templates(cloud: World) -> dict[int, Any]:
    """Those in the cluster, by VMID."""
    vms = cloud.simulator.state()["sim1"]["vms"]
    return {vm["vmid"]: vm for vm in vms if vm["config"].get("template")}


def recorded(cloud: World) -> set[int]:
    """VMIDs of templates by the record."""
    return {row.vmid for row in cloud.rows(sa.select(schema.templates))}


def look(cloud: World) -> None:
    """As every conductor does now and then."""
    service: Any = cloud._services["conductor"]
    for task in service.runner.periodic.tasks:
        keeper = getattr(task.work, "__self__", None)
        if isinstance(keeper, TemplateKeeper):
            keeper.tidy()


def test_a_template_goes_when_its_image_and_its_servers_have_gone(cloud: World) -> None:
    first = cloud.built("first")
    assert first.vm_state == "active"
    made = set(templates(cloud))
    assert made == recorded(cloud)
    for _ in range(3):
        look(cloud)
    assert set(templates(cloud)) == made

    # Somebody removes the image's file from the storage; the server lives on.
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        for volume in list(cluster.volumes.all()):
            if "cirros" in volume.name and volume.content == "import":
                cluster.remove_volume(volume)
    image = sa.select(schema.images.c.id).where(schema.images.c.id == first.image_id)
    cloud.until(lambda: not cloud.rows(image))
    for _ in range(3):
        look(cloud)
    assert set(templates(cloud)) == made, "a linked clone hangs on it"

    cloud.delete(first.uuid)
    cloud.until(lambda: cloud.gone(first.uuid))
    look(cloud)
    look(cloud)
    cloud.until(lambda: not templates(cloud))
    cloud.until(lambda: not recorded(cloud))
    kept = cloud.rows(sa.select(schema.vmids.c.vmid).where(schema.vmids.c.vmid.in_(made)))
    assert kept == []
    assert cloud.differences() == []


SHARED = {"proxmox:sim1": {"vm_storage": "shared", "iso_storage": "shared"}}


@pytest.fixture
def wide(tmp_path: Path) -> Iterator[World]:
    """Three nodes, so that two are a quorum; disks and the one template on shared storage."""
    with world(tmp_path, SHARED, nodes=3) as running:
        yield running


@pytest.mark.parametrize("noticed", [True, False], ids=["noticed", "unnoticed"])
@pytest.mark.parametrize("known", [True, False], ids=["known", "agent-restarted"])
def test_a_lost_node_takes_no_template_along(wide: World, noticed: bool, known: bool) -> None:
    hosts = {row.node: row.host for row in wide.rows(sa.select(schema.hosts))}
    first = wide.built("first", host=hosts["pve2"])
    assert (first.vm_state, first.node) == ("active", "pve2")
    (template,) = templates(wide)
    if not known:
        wide.restart("compute")
    order = wide.simulator.fault(action="node-down", node="pve2")
    if noticed:
        wide.until(lambda: not _snapshot(wide).nodes["pve2"].online)
    others = [
        wide.built(name, host=hosts[node])
        for name, node in (("second", "pve1"), ("third", "pve3"), ("fourth", "pve1"))
    ]
    assert [row.vm_state for row in others] == ["active"] * 3, wide.faults(others[0].uuid)
    assert [row.node for row in others] == ["pve1", "pve3", "pve1"]
    assert [len(wide.faults(row.uuid)) for row in others] == [0, 0, 0]
    assert set(templates(wide)) == {template}, "it is there, as it was, and no other"
    wide.simulator.take_back(order)
    wide.until(lambda: _snapshot(wide).nodes["pve2"].online)
    # It is cloned from again.
    last = wide.built("last", host=hosts["pve3"])
    assert last.vm_state == "active"
    assert f"base-{template}-" in disk(wide, last.vmid)


def test_a_template_that_somebody_moved_is_cloned_from_where_it_is(wide: World) -> None:
    hosts = {row.node: row.host for row in wide.rows(sa.select(schema.hosts))}
    assert wide.built("first", host=hosts["pve2"]).vm_state == "active"
    (template,) = templates(wide)
    cluster = wide.simulator.cluster()
    with cluster.turn():
        cluster.edit(cluster.vms[template]).node = "pve3"
    second = wide.built("second", host=hosts["pve1"])
    assert (second.vm_state, second.node) == ("active", "pve1")
    assert f"base-{template}-" in disk(wide, second.vmid)
    assert set(templates(wide)) == {template}


def _snapshot(cloud: World) -> Any:
    service: Any = cloud._services["compute"]
    (hypervisor,) = service._hypervisors.values()
    return hypervisor.shared.snapshot


def disk(cloud: World, vmid: int) -> str:
    """The value of a machine's root disk."""
    vms = cloud.simulator.state()["sim1"]["vms"]
    return str(next(vm for vm in vms if vm["vmid"] == vmid)["config"]["scsi0"])
