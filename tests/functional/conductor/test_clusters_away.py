"""Clusters that don't answer while the record is compared with all of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from common import clock, ids
from common.messages.commands import Build
from common.messages.facts import LAST, OtherVm, VmFacts, VmStates
from common.messages.questions import Reachable
from conductor.endpoints.networks.networks import NetworkEndpoint
from conductor.endpoints.networks.ports import PortEndpoint
from conductor.engine.settling import Settling
from conductor.restore_guard import comparing
from conductor.rpc.networks.networks import NewNetwork
from conductor.rpc.networks.ports import NewPort
from conductor.rpc.servers.servers import RequestedNetwork
from conductor.servers.auto_network import AutoNetwork
from conductor.store import restored
from conductor.store.networks import networks, unknown_vms
from conductor.store.networks.pools import Unsettled
from conductor.sync import other_vms
from conductor.sync.other_vms import OtherVms
from db import schema
from tests.functional.conductor.harness import World
from tests.functional.conductor.test_other_vms import nic
from tests.functional.waiting import eventually

SUBNET = "vmbr0=10.0.0.0/24;pool=10.0.0.50-10.0.0.53"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Two clusters of a node each, by one worker; periodic tasks don't run by themselves."""
    made = World(tmp_path)
    made.clusters = {"pve2": "sim2"}
    made.beat()
    parsed = networks.parse_subnet(SUBNET)
    made.conductor.store.run(lambda c: networks.ensure_subnet(c, parsed))
    yield made
    made.close()


def compare(world: World, operation: int = 1) -> None:
    """Another server of the database has taken over: the record may have lost something."""
    row = {"id": 1, "cloud_id": ids.new_uuid(), "compare_operation": operation}

    def work(connection: restored.sa.Connection) -> None:
        connection.execute(schema.cloud_identity.delete())
        connection.execute(
            schema.cloud_identity.insert().values(compare_since=clock.utcnow(), **row)
        )

    world.conductor.store.run(work)
    world.conductor.cloud.guard.was_held()


def shown(cluster: str, *vms: VmFacts) -> VmStates:
    return VmStates(
        *("w1", cluster, clock.utcnow(), ("pve1",), True, vms), low=0, high=LAST, asked=True
    )


def open_clusters(world: World) -> set[str]:
    with world.conductor.store.read() as connection:
        return unknown_vms.open_clusters(connection, world.conductor.cloud.since)


def port(world: World) -> str:
    endpoint = PortEndpoint(world.conductor.cloud, world.conductor.runner)
    network = next(row for row in world.rows(schema.networks) if row.bridge == "vmbr0")
    [made] = endpoint.create_ports(world.ctxt, [NewPort("p", network.id)])
    return str(next(row.ip for row in world.rows(schema.ports) if row.id == made))


def looks(world: World, patience_seconds: float = other_vms.PATIENCE_SECONDS) -> OtherVms:
    return OtherVms(world.conductor.cloud, world.conductor.followed.take, patience_seconds)


def test_one_that_does_not_answer_its_agent_holds_up_nobody(world: World) -> None:
    """The agent lives, and may do so for days until the cluster answers."""
    compare(world)
    world.compute.shown["sim1"] = shown("sim1")
    world.beat(lost="pve2")
    task = looks(world)
    assert task.look() == other_vms.AGAIN_SECONDS
    eventually(lambda: open_clusters(world) == {"sim2"})
    guard = world.conductor.cloud.guard
    guard.expire()
    assert guard.held is None
    assert port(world) == "10.0.0.50"
    # Then it answers: what destroys waits until it is compared, too.
    world.beat()
    assert guard.held == comparing(["sim2"])
    world.compute.shown["sim2"] = shown("sim2")
    task.look()
    eventually(lambda: not open_clusters(world))
    assert guard.held is None


def test_a_build_waits_until_the_vms_of_all_clusters_were_looked_at(world: World) -> None:
    """They may have addresses of the same network."""
    looked_at = schema.clusters.update().values(looked_at=clock.utcnow())
    world.conductor.store.run(lambda c: c.execute(looked_at))
    compare(world, operation=0)
    world.compute.shown["sim1"] = shown("sim1")
    world.conductor.runner.start()
    eventually(lambda: open_clusters(world) == {"sim2"})
    network = next(row for row in world.rows(schema.networks) if row.bridge == "vmbr0")
    world.create(networks=(RequestedNetwork(network.id),))
    world.until_operation("queued")
    assert world.rows(schema.ports) == []
    world.compute.others[556] = OtherVm(556, "pve2", nics=(nic("10.0.0.50"),))
    world.compute.shown["sim2"] = shown("sim2", VmFacts(556, "pve2", 1))
    eventually(lambda: not open_clusters(world))
    world.make_due()
    command = world.compute.wait_for(1)
    assert command.placed.cluster == "sim1"
    assert isinstance(command, Build)
    assert [one.ip for one in command.nics] == ["10.0.0.51"]


def test_a_lost_vm_is_known_though_a_build_has_reserved_its_vmid(world: World) -> None:
    """The record has lost that it gave it, too, and builds reserve the next before they wait."""
    looked_at = schema.clusters.update().values(looked_at=clock.utcnow())
    world.conductor.store.run(lambda c: c.execute(looked_at))
    world.beat(lost="pve2")
    compare(world, operation=0)
    world.conductor.runner.start()
    network = next(row for row in world.rows(schema.networks) if row.bridge == "vmbr0")
    world.create(networks=(RequestedNetwork(network.id),))
    world.until_operation("queued")
    [reserved] = world.rows(schema.vmids)
    lost = VmFacts(reserved.vmid, "pve1", 1)
    world.compute.others[lost.vmid] = OtherVm(lost.vmid, "pve1", nics=(nic("10.0.0.50"),))
    world.compute.shown["sim1"] = shown("sim1", lost)
    eventually(lambda: open_clusters(world) == {"sim2"})
    # Nor does a later report end it, before the build has seen it.
    world.conductor.followed.take(shown("sim1", lost))
    world.make_due()
    command = world.compute.wait_for(1)
    assert isinstance(command, Build)
    assert [one.ip for one in command.nics] == ["10.0.0.51"]
    # Then its VM is the server's, or it has another VMID.
    world.answer(command)
    world.until(command.resource_id, "active")
    world.conductor.followed.take(shown("sim1", lost))
    assert world.rows(schema.other_vms) == []


@pytest.mark.parametrize("how", ["made", "automatic", "with a server"])
def test_no_vlan_tag_is_given_before_the_vms_of_all_clusters_are_known(
    world: World, how: str
) -> None:
    """A network that the record has lost has servers on it: another project's would see them."""
    cloud = world.conductor.cloud
    cloud.conf.set_override("tenant_vlans", ["vmbr0:100-102"], group="networks")
    cloud.conf.set_override("auto", "vmbr9", group="networks")
    world.beat(lost="pve2")
    compare(world)
    endpoint = NetworkEndpoint(cloud)

    def make() -> object:
        if how == "made":
            return endpoint.create_networks(world.ctxt, [NewNetwork("p", "mine")])
        if how == "automatic":
            return endpoint.auto_network(world.ctxt, "p", dry_run=False)
        auto = AutoNetwork(cloud)
        return cloud.store.run(lambda c: auto.of_server(c, world.ctxt, needed=True, make=True))

    endpoint._settling = Settling(cloud, 0)
    with pytest.raises(Unsettled):
        make()
    world.compute.others[556] = OtherVm(556, "pve1", nics=(nic(vlan=100),))
    world.compute.shown["sim1"] = shown("sim1", VmFacts(556, "pve1", 1))
    task = looks(world)
    eventually(lambda: task.look() is not None and open_clusters(world) == {"sim2"})
    make()
    assert [row.vlan for row in world.rows(schema.networks) if not row.discovered] == [101]


@pytest.mark.parametrize("away", ["no agent", "no answer"])
def test_one_that_is_away_is_not_asked_about_again_and_again(
    world: World, monkeypatch: pytest.MonkeyPatch, away: str
) -> None:
    """Nor do all agents show everything for it, every ten seconds, for ever."""
    compare(world)
    world.compute.shown["sim1"] = shown("sim1")
    if away == "no agent":
        world.silence("pve2")
    else:
        world.beat(lost="pve2")
    task = looks(world, patience_seconds=0.001)
    task.look()
    eventually(lambda: open_clusters(world) == {"sim2"})
    asked: list[Reachable] = []
    monkeypatch.setattr(world.compute, "before_look", asked.append)
    announced = world.compute.announced
    assert task.look() == 0.001
    assert (asked, world.compute.announced) == ([], announced)


@pytest.mark.parametrize("away", ["no agent", "no answer", "refuses"])
def test_one_that_can_t_be_read_delays_no_other(world: World, away: str) -> None:
    """However many VMs of it are to be read, and come first."""
    rows = [
        {"cluster": cluster, "vmid": vmid, "node": node, "kind": "VM"}
        for cluster, node, vmids in (
            ("sim1", "pve1", range(other_vms.MOST)),
            ("sim2", "pve2", range(other_vms.MOST + 1)),
        )
        for vmid in vmids
    ]
    world.conductor.store.run(lambda c: c.execute(schema.other_vms.insert(), rows))
    if away == "no agent":
        world.silence("pve1")
    elif away == "no answer":
        world.beat(lost="pve1")
    else:
        world.compute.unreadable = {"sim1"}
    task = looks(world)
    turns = [task.look() for _ in range(3)]
    assert {row.cluster for row in world.rows(schema.other_vms) if row.read_at is None} == {"sim1"}
    assert 0.0 in turns


def test_a_look_that_began_before_another_fail_over_is_no_comparison(world: World) -> None:
    asked: list[Reachable] = []

    def before_look(at: Reachable) -> None:
        asked.append(at)
        if len(asked) == 1:
            compare(world)
        else:
            world.compute.shown["sim1"] = shown("sim1", VmFacts(556, "pve1", 1))

    compare(world)
    world.beat(lost="pve2")
    world.compute.others[556] = OtherVm(556, "pve1", nics=(nic("10.0.0.50"),))
    world.compute.shown["sim1"] = shown("sim1")
    world.compute.before_look = before_look
    task = looks(world)
    task.look()
    eventually(lambda: asked and not task._looking)
    assert "sim1" in open_clusters(world)
    task.look()
    eventually(lambda: world.rows(schema.other_vms) != [])
    task.look()
    eventually(lambda: "sim1" not in open_clusters(world))
    assert port(world) == "10.0.0.51"


def test_a_worker_that_takes_over_is_asked_beside_one_that_is_frozen(world: World) -> None:
    thawed = threading.Event()
    compare(world)
    world.compute.before_look = lambda at: at.worker == "w1" and thawed.wait(600)
    world.compute.shown = {name: shown(name) for name in ("sim1", "sim2")}
    task = looks(world)
    try:
        task.look()
        assert open_clusters(world) == {"sim1", "sim2"}
        world.beat("w2")
        task.look()
        eventually(lambda: not open_clusters(world))
    finally:
        thawed.set()


def test_a_worker_is_asked_about_few_clusters_at_a_time(tmp_path: Path) -> None:
    """It has threads for commands then, too; and each is asked in turn."""
    names = [f"pve{number}" for number in range(1, 10)]
    world = World(tmp_path, hosts=tuple(names))
    world.clusters = {name: f"cluster-{name}" for name in names}
    world.beat()
    compare(world)
    asked: list[str] = []
    gate = threading.Semaphore(0)

    def before_look(at: Reachable) -> None:
        asked.append(at.cluster)
        gate.acquire(timeout=60)

    world.compute.before_look = before_look
    task = looks(world)
    for turn in (1, 2):
        task.look()
        eventually(lambda turn=turn: len(asked) == turn * other_vms.OF_ONE_WORKER)
        gate.release(other_vms.OF_ONE_WORKER)
        eventually(lambda: not task._looking)
    assert len(set(asked)) == 2 * other_vms.OF_ONE_WORKER
    world.close()


def test_many_vms_are_compared_in_parts(world: World) -> None:
    """No transaction is long, and no statement has more values than a database takes."""
    compare(world)
    world.beat(lost="pve2")
    vms = tuple(VmFacts(vmid, "pve1", 1) for vmid in range(2 * other_vms.VMS_AT_ONCE + 1))
    world.compute.shown["sim1"] = shown("sim1", *vms)
    parts: list[VmStates] = []
    OtherVms(world.conductor.cloud, lambda part, _: parts.append(part)).look()
    eventually(lambda: len(parts) == 3)
    assert tuple(vm for part in parts for vm in part.vms) == vms
    assert [(part.low, part.high) for part in parts] == [(0, 499), (500, 999), (1000, LAST)]
