"""Five incidents of others (``../shared/incidents``), and what happens here instead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from db import schema
from simulator.state.model import MIB, Vm, Volume
from tests.chaos.world import World, world


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[World]:
    """A cloud of its own for each incident."""
    with world(tmp_path) as running:
        yield running


def writes(cloud: World, suffix: str, since: int = 0) -> list[Any]:
    """Requests to Proxmox VE that change something and whose path ends so."""
    return [
        call
        for call in cloud.simulator.recorder.since(since)
        if call["method"] != "GET" and call["path"].endswith(suffix)
    ]


def now(cloud: World) -> Any:
    """What is in the cluster."""
    return cloud.simulator.state()["sim1"]


def orphan(cloud: World, vmid: int, node: str) -> str:
    """A volume of an earlier life: its machine is gone."""
    cluster = cloud.simulator.cluster()
    name = f"{vmid}/vm-{vmid}-cloudinit.qcow2"
    with cluster.turn():
        made = cluster.add_volume(
            Volume(*cluster.place("local", node), name, "images", "qcow2", 4 * MIB, MIB, vmid)
        )
    return made.volid


def test_incident_1_sixty_six_orphans_by_a_retry_loop(cloud: World) -> None:
    """A create that succeeded was followed by a call that Proxmox VE has never had (501); the
    VMID was not kept, so that each retry made a new VM, 66 of them.

    Here the VMID is written down before Proxmox VE is asked, a method that isn't there ends the
    attempt, what was made is removed, and attempts are bounded.
    """
    text = "Method 'POST /nodes/pve1/qemu/100000/config' not implemented"
    for path in (r"/qemu/\d+/config$", r"/qemu$"):
        cloud.simulator.fault(
            action="fail", status=501, method="POST", path=path, text=text, times=0
        )
    row = cloud.built("sankofa")
    assert row.vm_state == "error"
    faults = cloud.faults(row.uuid)
    assert faults[0].category == "api_not_supported"
    assert text in faults[0].message
    assert len(faults) <= 1 + int(cloud.conf.conductor.max_attempts)
    tried = len(writes(cloud, "/qemu")) + len(writes(cloud, "/clone"))
    assert tried <= 2 * int(cloud.conf.conductor.max_attempts)
    cloud.until(lambda: not [vm for vm in now(cloud)["vms"] if not vm["config"].get("template")])
    done = len(cloud.simulator.recorder.since(0))
    # And nothing more is done: there is no loop.
    cloud.until(lambda: not cloud.open_operations())
    assert writes(cloud, "/qemu", done) == []


def test_incident_2_all_recommendations_implemented(cloud: World) -> None:
    """The repair asked for a version ("6 or newer"), looked for orphans by name, and
    unlocked ten times before it deleted by force.

    Here names mean nothing: a stranger's VM with our server's name, and even with our tag, is
    left as it is; a lock is never forced; nothing asks for ``importdisk``.
    """
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        cluster.add_vm(Vm(500, "pve1", {"name": "web", "tags": "micronova", "lock": "backup"}))
        before = cluster.vms[500].digest()
    row = cloud.built("web")
    assert row.vm_state == "active"
    cloud.delete(row.uuid)
    with cluster.turn():
        assert cluster.vms[500].digest() == before
    asked = cloud.simulator.recorder.since(0)
    assert not [call for call in asked if "importdisk" in call["path"]]
    assert not [call for call in asked if "skiplock" in call["query"]]
    assert not [call for call in asked if call["method"] != "GET" and "/qemu/500" in call["path"]]
    with cluster.turn():
        cluster.remove_vm(cluster.vms[500])


def test_incident_3_disks_left_behind_poison_a_vmid(cloud: World) -> None:
    """``vm-200-cloudinit`` was left without a configuration: every create of VM 200 failed with
    "already exists", for ever, and the retry never looked.

    Here volumes are looked for before anything is made; such a VMID is set aside with the reason
    and the command that would free it, the volume is not touched, and another VMID does it.
    """
    vmid = cloud.next_vmid()
    left = [orphan(cloud, vmid, node) for node in ("pve1", "pve2")]
    row = cloud.built("rancher-server")
    assert row.vm_state == "active"
    assert row.vmid != vmid
    fault = cloud.faults(row.uuid)[0]
    assert fault.category == "storage_conflict"
    assert left[0] in fault.message
    assert "pvesm free" in fault.remedy
    kept = cloud.rows(sa.select(schema.vmids).where(schema.vmids.c.vmid == vmid))[0]
    assert kept.state == "quarantined"
    assert left[0] in kept.reason
    there = {one["volid"] for one in now(cloud)["volumes"]}
    assert set(left) <= there
    # As the operator does it, once for each node.
    cluster = cloud.simulator.cluster()
    with cluster.turn():
        for node in ("pve1", "pve2"):
            volume = cluster.volume(left[0], node)
            assert volume is not None
            cluster.remove_volume(volume)


def test_incident_4_a_template_deleted_and_made_again_for_ever(cloud: World) -> None:
    """A shared template was locked; a controller tried to delete it before making it again, and
    did so for ever, for every cluster that used it.

    Here a template is named by its image, made once, and never deleted to be made again; a
    locked one is passed over: the image is imported.
    """
    first = cloud.built("first")
    assert first.vm_state == "active"
    templates = [vm for vm in now(cloud)["vms"] if vm["config"].get("template")]
    orders = [
        cloud.simulator.fault(action="config-lock", vmid=vm["vmid"], lock="backup")
        for vm in templates
    ]
    cluster = cloud.simulator.cluster()
    # The other node has a template that is locked before it is ready.
    cloud.restart("compute")
    began = cloud.simulator.recorder.since(0)[-1]["n"]
    row = cloud.built("second")
    made = {vm["vmid"] for vm in templates}
    for vm in templates:
        deletes = [
            call
            for call in cloud.simulator.recorder.since(began)
            if call["method"] == "DELETE" and call["path"].endswith(f"/qemu/{vm['vmid']}")
        ]
        assert deletes == []
        assert cluster.vms[vm["vmid"]].lock == "backup"
    assert row.vm_state == "active"
    assert cloud.faults(row.uuid) == []
    # Where the locked one is the only one, too.
    pinned = cloud.built("pinned", host=first.host)
    assert pinned.vm_state == "active"
    assert cloud.faults(pinned.uuid) == []
    for order in orders:
        cloud.simulator.take_back(order)
    assert cloud.built("third").vm_state == "active"
    assert made <= {vm["vmid"] for vm in now(cloud)["vms"]}


def test_incident_5_hours_of_grepping_logs(cloud: World) -> None:
    """A guide has operators follow a request ID through five services' logs, by hand.

    Here one row says what failed, where, in which task, with its log, and what was cleaned up;
    the events of the operation say the order of things.
    """
    cloud.simulator.fault(
        action="task-fail", method="POST", path=r"/status/start$", times=0, text="no KVM today"
    )
    row = cloud.built("failed-to-deploy")
    assert row.vm_state == "error"
    fault = cloud.faults(row.uuid)[0]
    assert "no KVM today" in fault.message
    assert fault.host in {"pve1", "pve2"}
    assert fault.upid.startswith(f"UPID:{fault.host}:")
    assert any("no KVM today" in line for line in fault.log_tail)
    assert fault.cleaned
    operation = cloud.rows(
        sa.select(schema.operations).where(schema.operations.c.resource_id == row.uuid)
    )[0]
    assert operation.request_id == fault.request_id
    events = cloud.rows(
        sa.select(schema.operation_events)
        .where(schema.operation_events.c.operation_id == operation.id)
        .order_by(schema.operation_events.c.attempt, schema.operation_events.c.started_at)
    )
    first = {event.name: event.result for event in events if event.attempt == 1}
    assert list(first)[:3] == [
        "conductor_take_quota",
        "conductor_schedule",
        "conductor_allocate_network",
    ]
    assert first["compute_start_vm"] == "Error"
    assert first["compute_destroy_vm"] == "Success"
    decision = cloud.rows(
        sa.select(schema.decisions).where(schema.decisions.c.request_id == fault.request_id)
    )
    assert decision
