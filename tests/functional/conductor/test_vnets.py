"""Networks on SDN vnets by the record: races on SQLite and PostgreSQL, refusals, the audit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common import ids
from common.context import RequestContext
from common.errors import Conflict, Invalid
from common.failures import Verdict
from common.messages.commands import Command, MakeVnet, RemoveVnet
from common.messages.inventory import ClusterInventory, SeenVnet
from common.messages.reports import Category, Failure
from conductor.endpoints.networks.networks import NetworkEndpoint
from conductor.networks.stale_zone_retry import StaleZoneRetry
from conductor.rpc.networks.networks import NewNetwork
from db import schema
from tests.functional.conductor.harness import World
from tests.functional.conductor.test_security_groups import at_once
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401
from tests.functional.waiting import eventually

pytestmark = pytest.mark.sampled(2)

OURS = RequestContext(user_id="u", project_id="p", roles=["member"])
RANGE = "sim1:tenants:5000-5004"


@pytest.fixture(params=["sqlite", "postgresql"])
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    made = World(tmp_path, url=url, audit_heals=True)
    made.conductor.cloud.conf.set_override("tenant_vnets", [RANGE], "networks")
    made.conductor.runner.start()
    yield made
    made.close()
    for pool in (made.conductor.store._writer, made.conductor.store._reader):
        pool.dispose()


@pytest.fixture
def networks(world: World) -> NetworkEndpoint:
    return NetworkEndpoint(world.conductor.cloud)


def create(networks: NetworkEndpoint, **asked: Any) -> str:
    [made] = networks.create_networks(OURS, [NewNetwork("p", **asked)])
    return made


def row(world: World, network_id: str) -> Any:
    return next((one for one in world.rows(schema.networks) if one.id == network_id), None)


def vnets(world: World) -> list[tuple[str, str]]:
    return [(one.network_id, one.state) for one in world.rows(schema.vnets)]


def last(world: World, kind: type[Any], network_id: str) -> Any:
    """The last command about a network."""

    def found() -> Any:
        mine = [one for _, one in world.compute.sent if one.resource_id == network_id]
        return mine[-1] if mine and type(mine[-1]) is kind else None

    eventually(found)
    return found()


def test_everybody_gets_another_vni(world: World, networks: NetworkEndpoint) -> None:
    ends = at_once(*[lambda: create(networks)] * 8)
    made = [one for one in ends if isinstance(one, str)]
    refused = [one for one in ends if isinstance(one, Conflict)]
    assert (len(made), len(refused)) == (5, 3), ends
    rows = [row(world, one) for one in made]
    assert sorted(one.vni for one in rows) == [5000, 5001, 5002, 5003, 5004]
    assert {one.status for one in rows} == {"BUILD"}
    commands = [last(world, MakeVnet, one) for one in made]
    assert sorted(one.vnet for one in commands) == sorted(one.bridge for one in rows)
    assert {(one.zone, one.placed.cluster) for one in commands} == {("tenants", "sim1")}
    removed = rows[1]
    # Two words of agents, and a delete beside them.
    world.answer(commands[0], ok=True, mtu=8950)
    eventually(lambda: row(world, made[0]).status == "ACTIVE")
    assert row(world, made[0]).mtu == 8950
    at_once(
        lambda: world.answer(commands[1], ok=True, mtu=1450),
        lambda: networks.delete_network(OURS, made[1]),
    )
    removal = last(world, RemoveVnet, made[1])
    # Its VNI is in use until it was seen gone.
    with pytest.raises(Conflict, match="No project network"):
        create(networks)
    world.answer(removal, ok=True, gone=True)
    eventually(lambda: len(vnets(world)) == 4)
    assert row(world, create(networks)).vni == removed.vni


def test_what_administrators_ask_for(world: World, networks: NetworkEndpoint) -> None:
    for asked, type_ in (
        ({"network_type": "vxlan", "bridge": "vmbr0"}, "InvalidInput"),
        ({"network_type": "vxlan", "vlan": 2**24}, "InvalidInput"),
        ({"network_type": "vxlan", "vlan": 0}, "InvalidInput"),
        ({"network_type": "gre"}, "InvalidInput"),
        ({"mtu": 1451}, "InvalidInput"),
    ):
        with pytest.raises(Invalid) as refused:
            create(networks, **asked)  # type: ignore[arg-type]
        assert refused.value.details["type"] == type_
    mine = create(networks, network_type="vxlan", vlan=77, mtu=1400)
    assert (row(world, mine).vni, row(world, mine).mtu) == (77, 1400)
    with pytest.raises(Conflict, match="tunnel ID 77 is in use") as taken:
        create(networks, network_type="vxlan", vlan=77)
    assert taken.value.details["type"] == "TunnelIdInUse"
    # The zone's MTU is no news for who has said one.
    world.answer(last(world, MakeVnet, mine), ok=True, mtu=8950)
    eventually(lambda: row(world, mine).status == "ACTIVE")
    assert row(world, mine).mtu == 1400


def test_without_the_option_nothing_is_made(world: World) -> None:
    conf = world.conductor.cloud.conf
    conf.clear_override("tenant_vnets", "networks")
    plain = NetworkEndpoint(world.conductor.cloud)
    with pytest.raises(Conflict, match="not enabled"):
        create(plain)
    with pytest.raises(Invalid, match="'vxlan' not supported"):
        create(plain, network_type="vxlan")
    conf.set_override("tenant_vlans", ["vmbr0:7-8"], "networks")
    made = create(NetworkEndpoint(world.conductor.cloud))
    assert (row(world, made).vlan, row(world, made).status) == (7, "ACTIVE")
    assert world.rows(schema.operations) == []
    assert vnets(world) == []


def test_one_that_cannot_be_made_is_in_error_and_goes(
    world: World, networks: NetworkEndpoint
) -> None:
    network = create(networks)
    taken = Failure(Category.PROTECTED, "VNI 5000 of zone tenants is vnet blue's.", host="pve1")
    world.answer(last(world, MakeVnet, network), ok=False, failure=taken)
    eventually(lambda: row(world, network).status == "ERROR")
    networks.delete_network(OURS, network)
    world.answer(last(world, RemoveVnet, network), ok=True, gone=True)
    eventually(lambda: vnets(world) == [])


def refused(vni: int) -> Failure:
    text = f"VNI {vni} of zone tenants is vnet blue's."
    return Failure(Category.PROTECTED, text, host="pve1", verdict=Verdict.OTHER_VNI)


def given(world: World, network: str, vni: int) -> MakeVnet:
    """The command that makes a network's vnet with a VNI."""

    def found() -> MakeVnet | None:
        sent = [one for _, one in world.compute.sent if one.resource_id == network]
        mine = [one for one in sent if isinstance(one, MakeVnet) and one.vni == vni]
        return mine[-1] if mine else None

    eventually(found)
    made = found()
    assert made is not None
    return made


def test_a_vni_that_others_have_taken_is_replaced(world: World, networks: NetworkEndpoint) -> None:
    """Each is refused in turn: the network gets the next one, until none is left."""
    network = create(networks)
    for vni in (5000, 5001, 5002):
        assert (row(world, network).vni, row(world, network).status) == (vni, "BUILD")
        command = given(world, network, vni)
        world.answer(command, ok=False, failure=refused(vni))
        eventually(lambda vni=vni: row(world, network).vni != vni)  # type: ignore[misc]
        # An outcome that comes twice replaces nothing more.
        world.answer(command, ok=False, failure=refused(vni))
    world.answer(given(world, network, 5003), ok=True, mtu=1450)
    eventually(lambda: row(world, network).status == "ACTIVE")
    assert [one.vni for one in world.rows(schema.vnets)] == [5003]
    # 5003 is the first one's; what was refused to it may be free by now.
    other = create(networks)
    for vni in (5000, 5001, 5002, 5004):
        world.answer(given(world, other, vni), ok=False, failure=refused(vni))
    eventually(lambda: row(world, other).status == "ERROR")
    networks.delete_network(OURS, other)
    world.answer(last(world, RemoveVnet, other), ok=True, gone=True)
    eventually(lambda: vnets(world) == [(network, "active")])


def test_a_vni_that_was_asked_for_is_not_replaced(world: World, networks: NetworkEndpoint) -> None:
    network = create(networks, network_type="vxlan", vlan=5002)
    world.answer(given(world, network, 5002), ok=False, failure=refused(5002))
    eventually(lambda: row(world, network).status == "ERROR")
    assert row(world, network).vni == 5002


def test_clusters_have_one_vni_for_a_network(world: World) -> None:
    """One cluster has the network already: the others use its VNI, or do without."""
    cloud = world.conductor.cloud
    cloud.conf.set_override("tenant_vnets", ["*:tenants:5000-5004"], "networks")
    add_host(world, "far", "sim2")
    networks = NetworkEndpoint(cloud)
    split, refused_twice = create(networks), create(networks)

    def command(network: str, cluster: str, vni: int) -> MakeVnet:
        def found() -> list[MakeVnet]:
            sent = [one for _, one in world.compute.sent if isinstance(one, MakeVnet)]
            mine = [one for one in sent if (one.resource_id, one.vni) == (network, vni)]
            return [one for one in mine if one.placed.cluster == cluster]

        eventually(found)
        return found()[-1]

    world.answer(command(split, "sim1", 5000), ok=False, failure=refused(5000))
    world.answer(command(split, "sim2", 5000), ok=True, mtu=1450)
    eventually(lambda: row(world, split).status == "ACTIVE")
    eventually(lambda: sorted(vnets(world)).count((split, "error")) == 1)
    mine = [one for one in world.rows(schema.vnets) if one.network_id == split]
    assert {(one.vni, one.state) for one in mine} == {(5000, "active"), (5000, "error")}
    for cluster in ("sim1", "sim2"):
        one = command(refused_twice, cluster, 5001)
        world.answer(one, ok=False, failure=refused(5001))
    for cluster in ("sim1", "sim2"):
        world.answer(command(refused_twice, cluster, 5002), ok=True, mtu=1450)
    eventually(lambda: sorted(vnets(world)).count((refused_twice, "active")) == 2)
    assert row(world, refused_twice).vni == 5002


def add_host(world: World, host: str, cluster: str) -> None:
    """Give a further cluster a host like the first one."""
    far = {"host": host, "cluster": cluster, "uuid": ids.new_uuid()}
    other = {**world.rows(schema.hosts)[0]._mapping, **far}
    facts = {**other["facts"], **far}
    del other["id"]
    values = {**other, "facts": facts}
    world.conductor.cloud.store.run(lambda c: c.execute(schema.hosts.insert().values(**values)))


def test_a_cluster_that_gets_the_zone_later_gets_the_vnets(world: World) -> None:
    cloud = world.conductor.cloud
    cloud.conf.set_override("tenant_vnets", ["*:tenants:5000-5004"], "networks")
    networks, late = NetworkEndpoint(cloud), StaleZoneRetry(cloud)
    kept, gone = create(networks), create(networks)
    for one in (kept, gone):
        world.answer(last(world, MakeVnet, one), ok=True, mtu=1450)
        eventually(lambda one=one: row(world, one).status == "ACTIVE")  # type: ignore[misc]
    late.look()
    assert len(vnets(world)) == 2
    networks.delete_network(OURS, gone)
    world.answer(last(world, RemoveVnet, gone), ok=True, gone=True)
    eventually(lambda: len(vnets(world)) == 1)
    add_host(world, "far", "sim2")
    at_once(late.look, late.look)
    late.look()
    assert sorted(vnets(world)) == [(kept, "active"), (kept, "making")]
    # The network is usable as before, and reported so.
    assert row(world, kept).status == "ACTIVE"
    eventually(lambda: sum(isinstance(one, MakeVnet) for _, one in world.compute.sent) == 3)
    world.answer(last(world, MakeVnet, kept), ok=True, mtu=1450)
    eventually(lambda: vnets(world) == [(kept, "active")] * 2)


def test_who_names_no_network_gets_a_vnet_where_there_are_no_tags(
    world: World, networks: NetworkEndpoint
) -> None:
    world.bridges = ()
    world.conductor.cloud.store.run(lambda c: c.execute(schema.networks.delete()))
    assert networks.auto_network(OURS, "p", dry_run=True) == ""
    assert vnets(world) == []
    made = at_once(*[lambda: networks.auto_network(OURS, "p", dry_run=False)] * 3)
    assert len(set(made)) == 1, made
    network = str(made[0])
    assert row(world, network).status == "BUILD"
    world.answer(last(world, MakeVnet, network), ok=True, mtu=1450)
    eventually(lambda: row(world, network).status == "ACTIVE")
    # A server of the project gets it, and no second network is made.
    [server] = world.create(auto_network=True)
    eventually(lambda: [one.network_id for one in world.rows(schema.ports)] == [network])
    assert world.row(server).project_id == "p"
    with pytest.raises(Conflict, match="in use"):
        networks.delete_auto_network(OURS, "p")
    assert networks.auto_network(OURS, "q", dry_run=False) != network
    networks.delete_auto_network(OURS, "q")
    assert len(world.rows(schema.networks)) == 1


def test_the_audit_makes_what_is_missing_and_removes_what_is_left(
    world: World, networks: NetworkEndpoint
) -> None:
    here, gone = create(networks), create(networks)
    for one in (here, gone):
        world.answer(last(world, MakeVnet, one), ok=True, mtu=1450)
        eventually(lambda one=one: row(world, one).status == "ACTIVE")  # type: ignore[misc]
    left = row(world, gone).bridge
    networks.delete_network(OURS, gone)
    world.answer(last(world, RemoveVnet, gone), ok=True, gone=True)
    eventually(lambda: len(vnets(world)) == 1)
    other = "6f9619ff-8b86-4011-b42d-00cf4fc964ff"
    stranger = SeenVnet("mnabcdef", "tenants", other, "")
    theirs = SeenVnet("mnabcdeg", "tenants", other, "another cloud")
    seen = (SeenVnet(left, "tenants", gone, ""), stranger, theirs)
    world.compute.seen["sim1"] = ClusterInventory("sim1", vnets=seen)
    sent: list[Command] = []

    def heal(command: Command) -> None:
        sent.append(command)
        there = SeenVnet(row(world, here).bridge, "tenants", here, "")
        world.compute.seen["sim1"] = ClusterInventory("sim1", vnets=(stranger, theirs, there))
        world.answer(command, ok=True, gone=isinstance(command, RemoveVnet), mtu=1450)

    world.compute.answering = heal
    report = world.conductor.auditor.audit()
    # A vnet that the ledger doesn't know is only reported, another cloud's isn't.
    assert (report["healed"], report["open"]) == (2, {"vnet_without_network": 1})
    assert {(type(one), one.resource_id) for one in sent} == {(MakeVnet, here), (RemoveVnet, gone)}
    assert row(world, here).status == "ACTIVE"
    kept = world.rows(schema.findings)
    assert [one.evidence["network"] for one in kept if one.healed_at is None] == [other]
