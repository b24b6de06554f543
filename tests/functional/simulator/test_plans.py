"""High availability and SDN as they are configured: what is kept, checked, and then there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from proxmoxer import ResourceException

from simulator.server import Simulator
from tests.functional.simulator.conftest import Lab, connect
from tests.functional.waiting import eventually


@pytest.fixture
def root(lab: Lab) -> Any:
    return connect(lab.simulator, user="root@pam", password=lab.simulator.password)


def test_rules_bind_managed_guests_only(lab: Lab, root: Any) -> None:
    for vmid in (100, 101):
        assert lab.create(vmid) == "OK"
    rules = root.cluster.ha.rules
    with pytest.raises(ResourceException, match="unmanaged resource"):
        rules.post(rule="gold", type="node-affinity", resources="vm:100", nodes="pve1")
    root.cluster.ha.resources.post(sid="vm:100", state="ignored")
    root.cluster.ha.resources.post(sid="101", state="ignored")
    with pytest.raises(ResourceException, match="already defined"):
        root.cluster.ha.resources.post(sid="vm:100")
    with pytest.raises(ResourceException, match="non-existent node"):
        rules.post(rule="gold", type="node-affinity", resources="vm:100", nodes="pve9")
    rules.post(rule="gold", type="node-affinity", resources="vm:100", nodes="pve1:2", strict=1)
    with pytest.raises(ResourceException, match="Rule 'apart' is invalid"):
        rules.post(rule="apart", type="resource-affinity", affinity="negative", resources="vm:100")
    rules.post(
        rule="apart", type="resource-affinity", affinity="negative", resources="vm:100,vm:101"
    )
    [gold] = rules.get(type="node-affinity")
    assert (gold["rule"], gold["nodes"], gold["strict"]) == ("gold", "pve1:2", 1)
    assert [one["rule"] for one in rules.get(resource="vm:101")] == ["apart"]
    with pytest.raises(ResourceException, match="403"):
        lab.api.cluster.ha.rules.post(
            rule="mine", type="node-affinity", resources="vm:100", nodes="pve1"
        )


def test_a_purged_guest_is_in_no_rule(lab: Lab, root: Any) -> None:
    for vmid in (100, 101):
        assert lab.create(vmid) == "OK"
        root.cluster.ha.resources.post(sid=f"vm:{vmid}", state="ignored")
    root.cluster.ha.rules.post(
        rule="apart", type="resource-affinity", affinity="negative", resources="vm:100,vm:101"
    )
    with pytest.raises(ResourceException, match="purge parameter not set"):
        lab.api.nodes("pve1").qemu(100).delete()
    assert lab.done(lab.api.nodes("pve1").qemu(100).delete(purge=1)) == "OK"
    [left] = root.cluster.ha.rules.get()
    assert left["resources"] == "vm:101"
    assert "less than two" in str(left["errors"])
    assert lab.done(lab.api.nodes("pve1").qemu(101).delete(purge=1)) == "OK"
    assert root.cluster.ha.rules.get() == root.cluster.ha.resources.get() == []


def test_groups_before_version_nine(make_simulator: Callable[..., Simulator]) -> None:
    simulator = make_simulator(pve_version="8.4")
    root = connect(simulator, user="root@pam", password=simulator.password)
    root.cluster.ha.groups.post(group="gold", nodes="pve1:2,pve2", restricted=1)
    [gold] = root.cluster.ha.groups.get()
    assert (gold["group"], gold["nodes"], gold["restricted"]) == ("gold", "pve1:2,pve2", 1)
    with pytest.raises(ResourceException, match="501"):
        root.cluster.ha.rules.get()


def zone_status(root: Any, node: str) -> dict[str, str]:
    return {one["zone"]: one["status"] for one in root.nodes(node).sdn.zones.get()}


def apply(lab: Lab, root: Any) -> str:
    return lab.done(root.cluster.sdn.put())


def test_a_vnet_is_there_once_it_was_applied(lab: Lab, root: Any) -> None:
    root.cluster.sdn.zones.post(zone="z1", type="simple", nodes="pve1,pve2")
    root.cluster.sdn.vnets.post(vnet="blue", zone="z1")
    assert lab.create(100, net0="virtio,bridge=blue") == "OK"
    start = lab.api.nodes("pve1").qemu(100).status.start
    assert "bridge 'blue' does not exist" in lab.done(start.post())
    assert apply(lab, root) == "OK"
    assert lab.done(start.post()) == "OK"
    assert zone_status(root, "pve1") == {"z1": "available"}
    assert zone_status(root, "pve3") == {}
    seen = {
        (one["node"], one["network"]): one["status"]
        for one in lab.api.cluster.resources.get()
        if one["type"] == "network"
    }
    assert seen[("pve1", "z1")] == "available"
    assert ("pve3", "z1") not in seen
    listed = lab.api.nodes("pve1").network.get(type="any_bridge")
    assert {one["iface"] for one in listed} == {"vmbr0", "vmbr1", "blue"}


def test_a_node_that_did_not_reload_waits_for_it(lab: Lab, root: Any) -> None:
    root.cluster.sdn.zones.post(zone="z1", type="simple")
    root.cluster.sdn.vnets.post(vnet="blue", zone="z1")
    lab.simulator.fault(action="no-reload", node="pve2")
    assert apply(lab, root) == "WARNINGS: 1"
    assert zone_status(root, "pve1") == {"z1": "available"}
    assert zone_status(root, "pve2") == {"z1": "pending"}
    lab.simulator.fault(action="vnet-error", node="pve1", vnet="blue")
    assert zone_status(root, "pve1") == {"z1": "error"}
    [content] = root.nodes("pve1").sdn.zones("z1").content.get()
    assert content == {"vnet": "blue", "status": "error", "statusmsg": "missing blue"}
    # The list of bridges doesn't look.
    listed = root.nodes("pve2").network.get(type="any_bridge")
    assert "blue" in {one["iface"] for one in listed}


def test_a_managed_guest_is_started_and_stopped_by_the_manager(lab: Lab, root: Any) -> None:
    """The task ends at once and well, and says nothing of what becomes of it."""
    assert lab.create(100) == "OK"
    root.cluster.ha.resources.post(sid="vm:100", state="stopped")
    vm = lab.api.nodes("pve1").qemu(100)
    for verb, running in (("start", True), ("shutdown", False), ("start", True), ("stop", False)):
        upid = getattr(vm.status, verb).post()
        assert upid.split(":")[5] == ("hastart" if running else "hastop")
        assert lab.done(upid) == "OK"
        eventually(
            lambda status="running" if running else "stopped": (
                vm.status.current.get()["status"] == status
            ),
            20,
        )
        state = "started" if running else "stopped"
        assert vm.status.current.get()["ha"] == {"managed": 1, "state": state}
        assert root.cluster.ha.resources("vm:100").get()["state"] == state
    root.cluster.ha.resources("vm:100").put(state="ignored")
    upid = vm.status.start.post()
    assert upid.split(":")[5] == "qmstart"
    assert lab.done(upid) == "OK"
    assert vm.status.current.get()["ha"] == {"managed": 0}


def test_what_the_manager_cannot_start_is_in_error(lab: Lab, root: Any) -> None:
    assert lab.create(100, net0="virtio,bridge=vmbr0,tag=5") == "OK"
    root.cluster.ha.resources.post(sid="vm:100", state="stopped")
    vm = lab.api.nodes("pve1").qemu(100)
    lab.simulator.fault(action="config-lock", vmid=100, lock="backup")
    assert lab.done(vm.status.start.post()) == "OK"
    eventually(lambda: vm.status.current.get()["ha"]["state"] == "error", 20)
    assert vm.status.current.get()["status"] == "stopped"
