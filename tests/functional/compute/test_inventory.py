"""The inventory that the audit asks for: what it shows of VMs, marks, locks and volumes."""

from __future__ import annotations

from typing import Any

import pytest

from common import ids
from common.context import internal
from common.errors import Unavailable
from common.messages.commands import PowerAction
from common.messages.inventory import ClusterInventory, SeenVm
from common.messages.questions import Agent, ReadInventory
from common.messages.reports import Category
from compute.hypervisor.proxmox.api.client import Client
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_destroy,
    a_power,
    template_vmid,
)
from tests.functional.compute.reckoning import Reckoning
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually


def take_inventory(worker: Worker, *known: int, read: tuple[int, ...] = ()) -> ClusterInventory:
    return worker.client.ask(
        internal(), Agent(worker.service.worker, "c1"), ReadInventory(known, read)
    )


def vms(inventory: ClusterInventory) -> dict[int, SeenVm]:
    return {vm.vmid: vm for vm in inventory.vms}


@pytest.fixture
def client(worker: Worker) -> Client:
    """What a person would do, with the token of the agent."""
    shared: Any = worker.hypervisors[0]
    made: Client = shared.shared.client
    return made


def make(client: Client, vmid: int, **config: Any) -> None:
    """A VM, seen made."""
    client.post("nodes/pve1/qemu", vmid=vmid, memory=128, scsi0="local:1", **config)

    def made() -> bool:
        listed = client.get("cluster/resources", type="vm")
        return any(one["vmid"] == vmid and "lock" not in one for one in listed)

    eventually(made, 20)


def test_what_the_record_explains_is_not_read(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    build = a_build()
    vmid = build.placed.vmid
    assert worker.run(build).ok
    simulator.control("DELETE", "calls")
    simulator.control("POST", "clock", {"statistics": True})
    inventory = take_inventory(worker, vmid, template_vmid())
    assert inventory.unseen == ()
    seen = vms(inventory)[vmid]
    assert (seen.read, seen.status, seen.vcpus, seen.memory_mib) == (False, "running", 2, 512)
    assert vms(inventory)[template_vmid()].template
    assert cluster.calls("GET", "/config") == []
    stranger = vms(take_inventory(worker, template_vmid()))[vmid]
    assert (stranger.server_uuid, stranger.proven) == (build.resource_id, True)
    assert seen.nics is None
    [nic], [wanted] = stranger.nics or (), build.nics
    assert (nic.mac, nic.bridge, nic.vlan) == (wanted.mac, wanted.bridge, wanted.vlan)
    [drive] = [one for one in inventory.volumes if one.server_uuid]
    assert (drive.vmid, drive.server_uuid, drive.shared) == (vmid, build.resource_id, False)
    disks = {one.vmid for one in inventory.volumes if not one.server_uuid}
    assert disks == {vmid, template_vmid()}
    assert worker.run(a_destroy(build)).gone


def test_a_template_says_whose_it_is(worker: Worker, cluster: Cluster) -> None:
    build = a_build()
    assert worker.run(build).ok
    template = vms(take_inventory(worker))[template_vmid()]
    assert build.image is not None
    assert (template.image_id, template.proven) == (build.image.id, True)


def test_marks_that_do_not_agree_prove_nothing(
    worker: Worker, cluster: Cluster, client: Client
) -> None:
    server = ids.new_uuid()
    named = {"description": f"micronova: server={server}"}
    make(client, 100_801, tags="micronova", **named)
    make(client, 100_802, tags="micronova")
    make(client, 901, tags="micronova")
    make(client, 902, tags="a;micronova", smbios1=f"uuid={server}", **named)
    make(client, 903, **named)
    seen = vms(take_inventory(worker))
    assert (seen[100_801].server_uuid, seen[100_801].proven) == (server, False)
    assert (seen[100_802].server_uuid, seen[100_802].proven) == (None, False)
    # Outside of the band the tag only says where to look, and alone it says nothing.
    assert 901 not in seen
    assert seen[902].proven
    assert 903 not in seen
    # What the record names is looked for wherever it is.
    assert vms(take_inventory(worker, 903))[903].read


def test_locks_and_who_left_them(
    worker: Worker,
    cluster: Cluster,
    client: Client,
    simulator: RunningSimulator,
    reckoning: Reckoning,
) -> None:
    reckoning.expect("VM 100803")
    simulator.fault(leak="L4", vmid=100_803)
    client.post("nodes/pve1/qemu", vmid=100_803, memory=128, scsi0="local:1")

    def left() -> SeenVm | None:
        shell = vms(take_inventory(worker)).get(100_803)
        return shell if shell is not None and not shell.lock_live else None

    shell = eventually(left, 20)
    assert shell.lock == "create"
    assert shell.server_uuid is None
    assert shell.maker.split(":")[5:7] == ["qmcreate", "100803"]
    assert [one.vmid for one in take_inventory(worker).volumes if one.vmid == 100_803]


def test_a_lock_that_a_task_holds_is_explained(
    worker: Worker, cluster: Cluster, client: Client, simulator: RunningSimulator
) -> None:
    simulator.control("POST", "clock", {"speed": 0.05})
    try:
        client.post("nodes/pve1/qemu", vmid=100_804, memory=128, scsi0="local:1")
        assert vms(take_inventory(worker))[100_804].lock_live
    finally:
        simulator.control("POST", "clock", {"speed": 50})


def test_an_open_console_explains_no_lock(
    worker: Worker, cluster: Cluster, client: Client, simulator: RunningSimulator
) -> None:
    build = a_build(template=None)
    assert worker.run(build).ok
    vmid = build.placed.vmid
    assert client.post(f"nodes/pve1/qemu/{vmid}/vncproxy", websocket=1)["upid"]
    simulator.fault(action="config-lock", vmid=vmid, lock="backup")
    try:
        seen = vms(take_inventory(worker))[vmid]
        assert (seen.lock, seen.lock_live) == ("backup", False)
        # Nor is it waited for.
        failure = worker.run(a_power(build, PowerAction.STOP)).failure
        assert failure is not None
        assert failure.category is Category.LOCK
        assert failure.remedy == f"as root on pve1: qm unlock {vmid}"
    finally:
        simulator.control("DELETE", "faults")


def test_what_cannot_be_seen_is_reported(
    worker: Worker, cluster: Cluster, client: Client, simulator: RunningSimulator
) -> None:
    make(client, 100_805)
    fault = simulator.fault(action="node-down", node="pve1")
    try:
        inventory = take_inventory(worker)
    finally:
        simulator.control("DELETE", "faults", {"id": fault["id"]})
    assert "Node pve1 is offline." in inventory.unseen
    assert inventory.unseen_nodes == ("pve1",)
    assert not vms(inventory)[100_805].read
    order = {"action": "fail", "method": "GET", "path": "/storage/local/content", "times": 9}
    fault = simulator.fault(**order)
    try:
        inventory = take_inventory(worker)
    finally:
        simulator.control("DELETE", "faults", {"id": fault["id"]})
    assert any("Storage local on pve1" in text for text in inventory.unseen)


def test_a_cluster_that_is_not_carried(worker: Worker) -> None:
    with pytest.raises(Unavailable, match="carries no agent of cluster c9"):
        worker.client.ask(internal(), Agent(worker.service.worker, "c9"), ReadInventory())


def test_replication_jobs_are_known_or_said_to_be_unknown(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    assert take_inventory(worker).replicas == ()
    path = "/cluster/replication"
    simulator.fault(action="fail", method="GET", path=path, status=500, times=0)
    inventory = take_inventory(worker)
    assert inventory.replicas is None
    [said] = inventory.unseen
    assert said.startswith("The replication jobs can't be read: ")


def test_a_vm_of_the_record_is_read_when_it_is_its_turn(worker: Worker, cluster: Cluster) -> None:
    build = a_build()
    vmid = build.placed.vmid
    assert worker.run(build).ok
    seen = vms(take_inventory(worker, vmid, template_vmid(), read=(vmid,)))[vmid]
    assert (seen.read, seen.proven, seen.smbios_uuid) == (True, True, build.resource_id)
    assert not vms(take_inventory(worker, vmid, template_vmid()))[vmid].read
    assert worker.run(a_destroy(build)).gone


def test_a_disk_without_a_vm_says_whether_a_task_of_ours_made_it(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator
) -> None:
    build = a_build(template=None)
    vmid = build.placed.vmid
    assert worker.run(build).ok
    config = cluster.vm(vmid)["config"]
    name = str(config["scsi0"]).partition(",")[0]
    (state,) = simulator.state()["clusters"]
    made = next(one for one in state["volumes"] if one["volid"] == name)
    assert worker.run(a_destroy(build)).gone
    ours = {"volid": name, "node": "pve1", "ctime": made["ctime"]}
    theirs = {
        "volid": f"local:{vmid}/vm-{vmid}-disk-7.raw",
        "node": "pve1",
        "ctime": 1_700_000_000,
    }
    for one in (ours, theirs):
        simulator.control("POST", "volume", one)
    found = {one.volid: one.ours for one in take_inventory(worker).volumes if one.vmid == vmid}
    assert found == {ours["volid"]: True, theirs["volid"]: False}
    for one in (ours, theirs):
        worker.hypervisors[0].shared.client.delete(  # type: ignore[attr-defined]
            f"nodes/pve1/storage/local/content/{one['volid']}"
        )


def test_vlan_tags_of_others_are_seen(worker: Worker, client: Client) -> None:
    """Of VMs outside of the band and without our tag; ours are not among them."""
    make(client, 900, net0="virtio,bridge=vmbr0,tag=77")
    make(client, 901, net0="virtio,bridge=vmbr0")
    build = a_build()
    assert worker.run(build).ok
    inventory = take_inventory(worker, build.placed.vmid, template_vmid())
    assert inventory.other_tags_complete
    assert [(one.vmid, one.bridge, one.vlan) for one in inventory.other_tags or ()] == [
        (900, "vmbr0", 77)
    ]
    assert worker.run(a_destroy(build)).gone
