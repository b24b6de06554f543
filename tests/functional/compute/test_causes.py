"""What the bulk looks show of causes that end: locks, silent nodes, missing privileges."""

from __future__ import annotations

from typing import Any

import pytest

from compute.hypervisor.proxmox.api.errors import ApiError
from tests.functional.compute.conftest import Cluster, Worker, a_build, a_destroy, as_root
from tests.functional.simulator_fixture import RunningSimulator


@pytest.fixture
def hypervisor(worker: Worker) -> Any:
    """The driver, whose looks the test takes as well."""
    return worker.hypervisors[0]


def test_a_locked_vm_shows_in_a_look(
    worker: Worker, simulator: RunningSimulator, hypervisor: Any
) -> None:
    build = a_build(template=None)
    assert worker.run(build).ok
    vmid = build.placed.vmid
    assert vmid not in hypervisor.observe().locked
    simulator.fault(action="config-lock", vmid=vmid, lock="backup")
    assert vmid in hypervisor.observe().locked
    simulator.control("DELETE", "faults")
    assert vmid not in hypervisor.observe().locked
    assert worker.run(a_destroy(build)).gone


def test_a_node_that_did_not_answer_is_asked_until_it_does(
    simulator: RunningSimulator, cluster: Cluster, hypervisor: Any
) -> None:
    client = hypervisor.shared.client
    assert set(hypervisor.observe().usable) == {"pve1", "pve2"}
    assert cluster.calls("GET", "/lxc") == []
    simulator.fault(action="daemon-down", node="pve2")
    with pytest.raises(ApiError) as refused:
        client.get("nodes/pve2/qemu")
    assert refused.value.status == 595
    assert hypervisor.observe().usable == ("pve1",)
    # What its other daemon still answers proves nothing.
    client.get("nodes/pve2/version")
    assert hypervisor.observe().usable == ("pve1",)
    simulator.control("DELETE", "faults")
    assert set(hypervisor.observe().usable) == {"pve1", "pve2"}
    asked = len(cluster.calls("GET", "/lxc"))
    hypervisor.observe()
    assert len(cluster.calls("GET", "/lxc")) == asked


def test_privileges_are_read_with_each_look_while_some_are_missing(
    simulator: RunningSimulator, cluster: Cluster, hypervisor: Any
) -> None:
    path = "/access/permissions"
    hypervisor.observe()
    before = len(cluster.calls("GET", path))
    for _ in range(3):
        hypervisor.observe()
    assert len(cluster.calls("GET", path)) == before
    access = as_root(simulator).access
    mine = [
        one
        for one in access.acl.get()
        if one["path"] == "/vms" and one["ugid"].startswith("micronova@")
    ]
    assert mine
    for one in mine:
        kind = "tokens" if one["type"] == "token" else "users"
        access.acl.put(path="/vms", roles=one["roleid"], delete=1, **{kind: one["ugid"]})
    try:
        with pytest.raises(ApiError):
            hypervisor.shared.client.post("nodes/pve1/qemu", vmid=190_999)
        seen = hypervisor.observe()
        assert (seen.usable, seen.whole) == ((), False)
    finally:
        for one in mine:
            kind = "tokens" if one["type"] == "token" else "users"
            access.acl.put(path="/vms", roles=one["roleid"], **{kind: one["ugid"]})
    assert set(hypervisor.observe().usable) == {"pve1", "pve2"}
    before = len(cluster.calls("GET", path))
    hypervisor.observe()
    assert len(cluster.calls("GET", path)) == before
