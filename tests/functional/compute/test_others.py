"""What the agent reads of VMs that the record doesn't know: interfaces and their addresses."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from common.context import internal
from common.errors import Unavailable
from common.messages.commands import Address, Nic
from common.messages.facts import (
    LAST,
    MarkedAddress,
    MarkedPort,
    NicFacts,
    OtherVm,
    OwnerMark,
    VmStates,
)
from common.messages.questions import Agent, LookAtAll, LookAtOthers
from common.resources.states import ResourceType
from compute.hypervisor.proxmox.inspect.others import containers
from tests.functional.compute.conftest import (
    Cluster,
    Worker,
    a_build,
    a_plug,
    as_root,
    configuration,
    proxmox_text,
)
from tests.functional.simulator_fixture import RunningSimulator

MAC, SECOND = "fa:16:3e:00:00:01", "fa:16:3e:00:00:02"
NIC = Nic(
    "port-1", "n", "net", "vmbr0", MAC, ip="10.0.0.5", second=Address("fd00::5", "fd00::/64")
)
MORE = Nic("port-2", "n", "net", "vmbr0", SECOND, vlan=7, ip="10.0.0.6")


def looked_at(worker: Worker, *wanted: OtherVm) -> list[OtherVm]:
    return worker.client.ask(internal(), Agent(worker.service.worker, "c1"), LookAtOthers(wanted))


def test_all_vms_are_seen_again_when_that_is_asked(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as they were at the last refresh."""
    agent = Agent(worker.service.worker, "c1")
    build = a_build()

    def seen() -> VmStates:
        return worker.client.ask(internal(), agent, LookAtAll())

    assert build.placed.vmid not in {one.vmid for one in seen().vms}
    assert worker.run(build).ok
    report = seen()
    assert build.placed.vmid in {one.vmid for one in report.vms}
    assert (report.asked, report.low, report.high, report.operations) == (True, 0, LAST, ())
    # It names the operations in progress: this one asks whether its VM may be started.
    found: list[tuple[int, ...]] = []
    again = a_build()
    monkeypatch.setattr(worker.conductor, "before_start", lambda: found.append(seen().operations))
    assert worker.run(again).ok
    assert found == [(again.operation_id,)]


def test_a_servers_vm_shows_the_addresses_of_its_ports(worker: Worker, cluster: Cluster) -> None:
    build = a_build(nics=(NIC,))
    assert worker.run(build).ok
    one = OtherVm(build.placed.vmid, "pve1")
    vmid = build.placed.vmid
    made = (build.operation_id, vmid)
    mark = OwnerMark(build.cloud, ResourceType.SERVER, build.resource_id, *made)
    their = (MarkedAddress("10.0.0.5"), MarkedAddress("fd00::5", "fd00::/64"))
    port = MarkedPort("port-1", MAC, addresses=their)
    first = NicFacts(MAC, "vmbr0", None, ("10.0.0.5", "fd00::5"), port=port)
    assert looked_at(worker, one) == [dataclasses.replace(one, nics=(first,), mark=mark)]
    # An interface attached later is written as well, and a detached one has no address.
    assert worker.run(a_plug(build, MORE)).ok
    port = MarkedPort("port-2", SECOND, addresses=(MarkedAddress("10.0.0.6"),))
    second = NicFacts(SECOND, "vmbr0", 7, ("10.0.0.6",), port=port)
    assert looked_at(worker, one) == [dataclasses.replace(one, nics=(first, second), mark=mark)]
    assert worker.run(a_plug(build, NIC, on=False)).ok
    assert looked_at(worker, one) == [dataclasses.replace(one, nics=(second,), mark=mark)]
    lines = cluster.vm(build.placed.vmid)["config"]["description"].splitlines()
    assert lines[0] == f"micronova: server={build.resource_id}"
    assert f"micronova: cloud={build.cloud}" in lines
    assert f"micronova: port=port-2 {SECOND} 10.0.0.6" in lines
    assert f"micronova: epoch={build.operation_id} vmid={vmid}" in lines
    # The next change of its interfaces drops the line of a removed one.
    assert worker.run(a_plug(build, dataclasses.replace(NIC, mac="fa:16:3e:00:00:03"))).ok
    assert MAC not in cluster.vm(build.placed.vmid)["config"]["description"]


def test_a_vm_of_others(worker: Worker, simulator: RunningSimulator) -> None:
    node = as_root(simulator).nodes("pve1")
    node.qemu.post(
        vmid=901,
        net0="virtio=BC:24:11:00:00:01,bridge=vmbr0",
        ipconfig0="ip=10.0.0.7/24,gw=10.0.0.1,ip6=dhcp",
        net1="e1000=BC:24:11:00:00:02,bridge=vmbr1,tag=9,firewall=1",
        ipconfig1="ip=dhcp,ip6=fd00:0::7/64",
    )
    sets = node.qemu(901).firewall.ipset
    sets.post(name="ipfilter-net1")
    for entry in ("10.0.0.8", "10.1.0.0/16", "fd00::8/128"):
        sets("ipfilter-net1").post(cidr=entry)
    sets("ipfilter-net1").post(cidr="10.0.0.9", nomatch=1)
    seen = looked_at(worker, OtherVm(901, "pve1"), OtherVm(902, "pve1"), OtherVm(3, "no-node"))
    assert seen == [
        OtherVm(
            901,
            "pve1",
            nics=(
                NicFacts("bc:24:11:00:00:01", "vmbr0", None, ("10.0.0.7",)),
                NicFacts("bc:24:11:00:00:02", "vmbr1", 9, ("fd00::7", "10.0.0.8", "fd00::8")),
            ),
        ),
        OtherVm(902, "pve1"),
        OtherVm(3, "no-node", unread=True),
    ]


def test_a_container() -> None:
    config = {
        "hostname": "web",
        "net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:0A,ip=10.0.0.4/24,ip6=auto",
        "net1": "name=eth1,bridge=vmbr1,hwaddr=BC:24:11:00:00:0B,ip=dhcp,tag=12",
        "network": "is nothing",
    }
    assert list(containers(config)) == [
        NicFacts("bc:24:11:00:00:0a", "vmbr0", None, ("10.0.0.4",)),
        NicFacts("bc:24:11:00:00:0b", "vmbr1", 12),
    ]


def test_a_cluster_that_is_away_is_not_looked_at_because_that_is_asked(
    simulator: RunningSimulator, tmp_path: Path
) -> None:
    """Conductors ask again and again, and each question would hold a thread until it is back."""
    text = proxmox_text(simulator).replace("observe_seconds = 1", "observe_seconds = 300")
    alone = Worker(configuration(tmp_path, text))
    alone.start()
    agent = Agent(alone.service.worker, "c1")
    observer = alone.service._observers["c1"]
    try:
        alone.client.ask(internal(), agent, LookAtAll())
        simulator.fault(action="fail", path="/cluster/resources", times=0, status=500)
        with pytest.raises(Unavailable):
            alone.client.ask(internal(), agent, LookAtAll())
        # It would wait for this.
        with observer._one_look, pytest.raises(Unavailable, match="can't be looked at"):
            alone.client.ask(internal(), agent, LookAtAll())
        simulator.control("DELETE", "faults")
        observer.look()
        assert alone.client.ask(internal(), agent, LookAtAll()).asked
    finally:
        alone.stop()
