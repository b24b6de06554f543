"""Every leak path and every kind of fault, ordered and seen."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from proxmoxer import ResourceException

from simulator.errors import PveError
from tests.functional.simulator.conftest import Lab, connect
from tests.functional.simulator.test_life_of_a_machine import post, refusal

NODE = "pve1"
BIG: dict[str, Any] = {"scsi0": "shared:0,import-from=shared:import/debian-12.qcow2"}


def test_l1_no_worker_leaves_a_locked_shell(lab: Lab) -> None:
    lab.simulator.fault(leak="L1")
    status, text = refusal(lambda: lab.api.nodes(NODE).qemu.post(vmid=100, memory=64))
    assert (status, text) == (500, "got no worker upid - start worker failed")
    assert lab.lock_of(100) == "create"


def test_l2_a_failing_pool_leaves_disks_without_a_machine(lab: Lab) -> None:
    lab.api.pools.post(poolid="p1")
    lab.simulator.fault(leak="L2")
    assert "file-user_cfg" in lab.create(pool="p1")
    assert lab.lock_of(100) is None
    assert lab.volumes(100) == ["shared:100/vm-100-disk-0.qcow2"]


def test_l3_a_failing_disk_leaves_orphans(lab: Lab) -> None:
    lab.simulator.fault(leak="L3")
    assert lab.create(ide2="shared:cloudinit").startswith("unable to create VM 100 - ")
    assert lab.lock_of(100) is None
    assert len(lab.volumes(100)) == 2
    assert lab.create(ide2="shared:cloudinit").endswith("already exists")


def test_l4_a_killed_worker_leaves_lock_and_volumes(lab: Lab) -> None:
    lab.simulator.fault(action="task-kill", path=r"/qemu$", method="POST", seconds=1)
    assert lab.create(**BIG) == "unexpected status"
    assert lab.lock_of(100) == "create"
    assert lab.volumes(100) == ["shared:100/vm-100-disk-0.qcow2"]


def test_l4_is_an_order_of_its_own_too(lab: Lab) -> None:
    lab.simulator.fault(leak="L4", vmid=100)
    assert lab.create() == "unexpected status"
    assert lab.lock_of(100) == "create"
    assert lab.volumes(100) == ["shared:100/vm-100-disk-0.qcow2"]


def test_l5_a_failing_start_is_not_the_creates_failure(lab: Lab) -> None:
    lab.simulator.fault(leak="L5")
    assert lab.create(start=1) == "OK"
    assert lab.api.nodes(NODE).qemu(100).status.current.get()["status"] == "stopped"


def test_l6_a_clone_loses_its_disks_but_keeps_its_config(lab: Lab) -> None:
    assert lab.create() == "OK"
    lab.api.pools.post(poolid="p1")
    lab.simulator.fault(leak="L6")
    upid = lab.api.nodes(NODE).qemu(100).clone.post(newid=101, full=1, target="pve2", pool="p1")
    assert lab.done(upid).startswith("clone failed: ")
    assert lab.volumes(101) == []
    assert "scsi0" in lab.api.nodes("pve2").qemu(101).config.get()


def test_l7_a_disk_that_stays_is_only_a_warning(lab: Lab) -> None:
    assert lab.create() == "OK"
    lab.simulator.fault(leak="L7")
    assert lab.done(lab.api.nodes(NODE).qemu(100).delete(purge=1)) == "WARNINGS: 1"
    assert lab.lock_of(100) is None
    assert lab.volumes(100) == ["shared:100/vm-100-disk-0.qcow2"]


def test_what_is_on_a_storage_out_of_reach_stays(lab: Lab) -> None:
    assert lab.create() == "OK"
    lab.simulator.fault(action="storage-offline", storage="shared", node=NODE)
    storages = {one["storage"]: one for one in lab.api.nodes(NODE).storage.get()}
    assert (storages["shared"]["active"], storages["shared"]["total"]) == (0, 0)
    assert storages["local"]["active"] == 1
    content = lab.api.nodes(NODE).storage("shared").content
    assert refusal(content.get) == (500, "storage 'shared' is not online")
    assert lab.done(lab.api.nodes(NODE).qemu(100).delete(purge=1)) == "WARNINGS: 1"
    assert lab.volumes(100) == ["shared:100/vm-100-disk-0.qcow2"]


def test_a_lost_answer_comes_after_the_deed(lab: Lab) -> None:
    lab.simulator.fault(action="lose-answer", method="POST", path=r"/qemu$")
    assert refusal(lambda: lab.api.nodes(NODE).qemu.post(vmid=100, memory=64))[0] == 596
    assert lab.lock_of(100) is not None
    lab.simulator.fault(action="lose-answer", method="POST", path=r"/qemu$", how="drop")
    with pytest.raises(requests.ConnectionError):
        lab.api.nodes(NODE).qemu.post(vmid=101, memory=64)
    assert lab.lock_of(101) is not None


def test_faults_strike_the_nth_call_and_so_many_times(lab: Lab) -> None:
    order = {"action": "fail", "path": "/version$", "nth": 2, "times": 2, "text": "out of order"}
    post(lab.simulator, "faults", order)
    outcomes = []
    for _number in range(5):
        try:
            lab.api.version.get()
            outcomes.append(True)
        except ResourceException as error:
            outcomes.append(error.content != "out of order")
    assert outcomes == [True, False, False, True, True]


def test_a_task_fails_as_ordered_and_cleans_up(lab: Lab) -> None:
    lab.simulator.fault(
        action="task-fail", path=r"/qemu$", method="POST", seconds=1, text="disk on fire"
    )
    assert "disk on fire" in lab.create(**BIG)
    assert lab.lock_of(100) is None
    assert lab.volumes(100) == []


def test_hanging_and_slow_calls(lab: Lab) -> None:
    lab.simulator.fault(action="slow", path="/version$", seconds=20)
    lab.simulator.fault(action="hang", path="/nodes$", seconds=40)
    assert lab.api.version.get()["release"] == "9.2"
    assert refusal(lab.api.nodes.get)[0] == 596


def test_a_full_storage(lab: Lab) -> None:
    lab.simulator.fault(action="storage-full", storage="shared")
    assert lab.create().endswith("No space left on device")
    assert lab.lock_of(100) is None
    assert lab.api.nodes(NODE).storage("shared").status.get()["avail"] == 0


def test_without_quorum_a_delete_loses_the_disks_and_keeps_the_config(lab: Lab) -> None:
    assert lab.create() == "OK"
    lab.simulator.fault(action="no-quorum")
    status, text = refusal(lambda: lab.api.nodes(NODE).qemu.post(vmid=101, memory=64))
    assert (status, text) == (500, "cluster not ready - no quorum?")
    assert "Permission denied" in lab.done(lab.api.nodes(NODE).qemu(100).delete())
    assert lab.volumes(100) == []
    assert "scsi0" in lab.api.nodes(NODE).qemu(100).config.get()


def test_a_dead_node_and_its_machines(lab: Lab) -> None:
    assert lab.create(node="pve2") == "OK"
    lab.simulator.fault(action="node-down", node="pve2")
    assert refusal(lab.api.nodes("pve2").status.get)[0] == 595
    nodes = {one["node"]: one["status"] for one in lab.api.nodes.get()}
    assert nodes == {"pve1": "online", "pve2": "offline", "pve3": "online"}
    assert lab.api.cluster.resources.get(type="vm")[0]["status"] == "unknown"
    dead = lab.simulator.endpoints[0]["node_urls"]["pve2"]
    with pytest.raises(requests.ConnectionError):
        connect(lab.simulator, dead).version.get()


def test_the_daemon_restarts(lab: Lab) -> None:
    lab.simulator.fault(action="daemon-restart", node=NODE, seconds=100)
    assert refusal(lab.api.nodes(NODE).qemu.get)[0] == 595
    assert lab.api.version.get()["release"] == "9.2"
    lab.simulator.clear_faults()
    assert lab.api.nodes(NODE).qemu.get() == []


def test_a_revoked_token(lab: Lab) -> None:
    lab.simulator.fault(action="token-revoked")
    assert refusal(lab.api.version.get)[0] == 401
    lab.simulator.clear_faults()
    assert lab.api.version.get()["release"] == "9.2"


def test_calls_are_recorded(lab: Lab) -> None:
    lab.api.version.get()
    calls = lab.simulator.recorder.since(0)
    assert calls[-1]["path"] == "/api2/json/version"
    assert calls[-1]["status"] == 200


def test_an_order_that_makes_no_sense_is_refused(lab: Lab) -> None:
    with pytest.raises(ValueError, match="no leak path"):
        lab.simulator.fault(leak="L10")
    with pytest.raises(ValueError, match="no action"):
        lab.simulator.fault(action="explode")
    assert issubclass(PveError, Exception)


def test_a_killed_holder_keeps_a_shared_storage_locked_for_a_while(lab: Lab) -> None:
    lab.simulator.engine.set_speed(20)
    lab.simulator.fault(action="storage-slow", storage="shared", seconds=20, times=1)
    upid = lab.api.nodes(NODE).qemu.post(vmid=100, memory=64, scsi0="shared:1")
    while not lab.volumes(100):
        lab.api.version.get()
    post(lab.simulator, "task", {"upid": upid})
    lab.simulator.clear_faults()
    lab.simulator.engine.set_speed(200)
    ended = lab.create(101, node="pve2", scsi0="shared:1")
    assert ended.endswith("cfs-lock 'storage-shared' error: got lock request timeout")
    assert lab.create(102, scsi0="local:1") == "OK"
    lab.simulator.engine.set_speed(2000)
    while lab.simulator.state()["sim1"]["locks"]:
        lab.api.version.get()
    assert lab.create(103, scsi0="shared:1") == "OK"


def test_work_under_a_storages_lock_is_capped(lab: Lab) -> None:
    lab.simulator.fault(action="storage-slow", storage="shared", seconds=90)
    ended = lab.create(scsi0="shared:1")
    assert ended.endswith("'storage-shared'-locked command timed out - aborting")
    assert lab.volumes(100) == ["shared:100/vm-100-disk-0.raw"]


def test_a_create_that_is_stopped_cleans_up(lab: Lab) -> None:
    lab.simulator.engine.set_speed(20)
    upid = lab.api.nodes(NODE).qemu.post(vmid=100, **BIG)
    while not lab.volumes(100):
        lab.api.version.get()
    lab.api.nodes(NODE).tasks(upid).delete()
    assert lab.done(upid).endswith("received interrupt")
    assert lab.volumes(100) == []
    assert lab.lock_of(100) is None
