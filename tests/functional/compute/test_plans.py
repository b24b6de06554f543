"""High availability's rules and SDN vnets: an agent reports them, and builds on present vnets."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from common.messages.commands import Nic
from common.messages.facts import HaRule, HostFacts
from common.messages.reports import Category
from tests.functional.compute.conftest import Cluster, Worker, a_build, as_root, granted
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually


@pytest.fixture
def root(simulator: RunningSimulator, worker: Worker) -> Any:
    """What an administrator does beside the agent, which may use its vnets."""
    granted(simulator, "zones")
    return as_root(simulator)


def facts(worker: Worker) -> dict[str, HostFacts]:
    """As a survey in which everything is due sees them."""
    hypervisor: Any = worker.hypervisors[0]
    hypervisor._refresher._details.clear()
    hypervisor._refresher._clusterwide._plans_due = 0.0
    return {one.node: one for one in hypervisor.observe().hosts}


def done(root: Any, upid: str) -> None:
    node = upid.split(":")[1]
    eventually(lambda: root.nodes(node).tasks(upid).status.get()["status"] == "stopped")


def on(bridge: str, **more: Any) -> Any:
    build = a_build(**more)
    return dataclasses.replace(
        build, nics=(Nic("port", "net-id", bridge, bridge, "fa:16:3e:00:00:02", 1450, None),)
    )


def test_rules_are_reported(worker: Worker, root: Any) -> None:
    build = a_build()
    assert worker.run(build).failure is None
    sid = f"vm:{build.placed.vmid}"
    root.cluster.ha.resources.post(sid=sid, state="ignored")
    root.cluster.ha.rules.post(
        rule="gold", type="node-affinity", resources=sid, nodes="pve1:2", strict=1
    )
    found = facts(worker)
    assert found["pve1"].ha_rules == (HaRule("gold", True, 1, 2),)
    assert found["pve2"].ha_rules == (HaRule("gold", True, 1, None, (build.placed.vmid,)),)


def test_a_node_in_maintenance_takes_nothing_new(
    worker: Worker, simulator: RunningSimulator
) -> None:
    simulator.fault(action="maintenance", node="pve2")
    found = facts(worker)
    assert found["pve1"].healthy
    assert found["pve2"].online
    assert found["pve2"].health == "The node is in maintenance (ha-manager)."
    assert not found["pve2"].healthy


def test_a_refusal_of_rules_and_vnets_spoils_no_survey(
    worker: Worker, simulator: RunningSimulator, caplog: pytest.LogCaptureFixture
) -> None:
    for path in ("/cluster/ha/rules", "/cluster/sdn/vnets"):
        simulator.fault(action="fail", path=path, status=403, times=0, text="Permission denied")
    for _ in range(2):
        found = facts(worker)
    assert all(one.healthy and not one.ha_rules for one in found.values())
    warnings = [one.getMessage() for one in caplog.records if "can't be read" in one.getMessage()]
    assert len([one for one in warnings if one.startswith("The rules of high")]) == 1


def test_a_vnet_is_a_network_where_it_is_there(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, root: Any
) -> None:
    root.cluster.sdn.zones.post(zone="z1", type="simple")
    root.cluster.sdn.vnets.post(vnet="blue", zone="z1")
    simulator.fault(action="no-reload", node="pve2")
    done(root, root.cluster.sdn.put())
    found = facts(worker)
    assert "blue" in found["pve1"].bridges
    assert found["pve1"].unready_bridges == {}
    assert "blue" not in found["pve2"].bridges
    assert found["pve2"].unready_bridges == {"blue": "zone z1: pending"}

    build = on("blue")
    assert worker.run(build).failure is None
    assert "bridge=blue" in cluster.vm(build.placed.vmid)["config"]["net0"]

    other = on("blue")
    other = dataclasses.replace(
        other, placed=dataclasses.replace(other.placed, host="pve2", node="pve2")
    )
    failure = worker.run(other).failure
    assert failure is not None
    assert failure.category == Category.NETWORK
    assert failure.message == "Node pve2 has no vnet blue (zone z1: pending)."


def test_a_new_vnet_is_seen_without_waiting_for_a_look_at_every_node(
    worker: Worker, cluster: Cluster, root: Any
) -> None:
    hypervisor: Any = worker.hypervisors[0]
    facts(worker)
    root.cluster.sdn.zones.post(zone="z1", type="simple")
    root.cluster.sdn.vnets.post(vnet="blue", zone="z1")
    done(root, root.cluster.sdn.put())
    hypervisor._refresher._clusterwide._plans_due = 0.0
    seen = [
        {one.node: "blue" in one.bridges for one in hypervisor.observe().hosts} for _ in range(2)
    ]
    assert seen[1] == {"pve1": True, "pve2": True}
    before = len(cluster.calls("GET", "/nodes/pve1/network"))
    hypervisor.observe()
    assert len(cluster.calls("GET", "/nodes/pve1/network")) == before


def test_of_a_zone_in_error_only_the_vnet_that_is_missing(
    worker: Worker, cluster: Cluster, simulator: RunningSimulator, root: Any
) -> None:
    root.cluster.sdn.zones.post(zone="z1", type="simple")
    for name in ("blue", "green"):
        root.cluster.sdn.vnets.post(vnet=name, zone="z1")
    done(root, root.cluster.sdn.put())
    simulator.fault(action="vnet-error", node="pve1", vnet="blue")
    before = len(cluster.calls("GET", "/sdn/zones/z1/content"))
    found = facts(worker)
    assert found["pve1"].unready_bridges == {"blue": "zone z1: error, missing blue"}
    assert "green" in found["pve1"].bridges
    assert found["pve2"].unready_bridges == {}
    # Asked of the node with the error alone, and once for all vnets of the zone.
    assert len(cluster.calls("GET", "/sdn/zones/z1/content")) == before + 1
