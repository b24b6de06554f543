"""Servers on networks of projects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from common import clock
from common.context import RequestContext
from common.errors import ConfigurationError, Conflict, Invalid, NetworkNotFound
from common.messages.commands import Build, Plug
from common.messages.facts import LAST, NicFacts, OtherVm, VmFacts, VmStates
from common.messages.inventory import ClusterInventory, SeenTag
from common.resources.states import PowerState
from conductor.endpoints.networks.networks import NetworkEndpoint
from conductor.endpoints.networks.ports import PortEndpoint
from conductor.endpoints.servers.interfaces import InterfaceEndpoint
from conductor.rpc.networks.networks import NewNetwork, NewSubnet
from conductor.rpc.networks.ports import NewPort
from conductor.rpc.servers.interfaces import Attachment
from conductor.rpc.servers.servers import RequestedNetwork
from conductor.servers.create.begin_create import CreateAcceptance
from conductor.store.networks import networks as of_bridges
from db import schema
from tests.fixtures.listings import counted
from tests.functional.conductor.harness import World
from tests.functional.waiting import eventually

OURS = RequestContext(user_id="u", project_id="p", roles=["member"])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    conf = made.conductor.cloud.conf
    conf.set_override("tenant_vlans", ["vmbr1:1000-1001"], group="networks")
    made.conductor.creates = CreateAcceptance(made.conductor.cloud)
    made.conductor.runner.start()
    yield made
    made.close()


@pytest.fixture
def networks(world: World) -> NetworkEndpoint:
    return NetworkEndpoint(world.conductor.cloud)


def made_by(networks: NetworkEndpoint, project_id: str) -> str:
    [network] = networks.create_networks(OURS, [NewNetwork(project_id, "mine", mtu=1400)])
    attributes = {
        "cidr": "192.168.7.0/24",
        "ip_version": 4,
        "host_routes": [["10.9.0.0/16", "192.168.7.254"]],
        "dns_nameservers": ["9.9.9.9"],
    }
    six = {"cidr": "fd00:7::/64", "ip_version": 6}
    networks.create_subnets(
        OURS, [NewSubnet(project_id, network, attributes=each) for each in (six, attributes)]
    )
    return network


def test_a_server_and_an_interface_on_a_network_of_the_project(
    world: World, networks: NetworkEndpoint
) -> None:
    network = made_by(networks, "p")
    [server] = world.create(networks=(RequestedNetwork(network),))
    command = world.compute.wait_for(1)
    assert isinstance(command, Build)
    assert command.config_drive is not None
    [nic] = command.nics
    assert (nic.bridge, nic.vlan, nic.mtu, nic.ip) == ("vmbr1", 1000, 1400, "192.168.7.2")
    assert nic.second is not None
    assert (nic.second.ip, nic.second.gateway) == ("fd00:7::2", "fd00:7::1")
    there, six = command.config_drive.network_data["networks"]
    assert (six["link"], six["type"], six["ip_address"]) == ("interface0", "ipv6", "fd00:7::2")
    assert (there["id"], six["id"]) == ("network0", "network1")
    assert [route["network"] for route in six["routes"]] == ["::"]
    assert [(route["network"], route["gateway"]) for route in there["routes"]] == [
        ("0.0.0.0", "192.168.7.1"),
        ("10.9.0.0", "192.168.7.254"),
    ]
    assert command.config_drive.network_data["links"][0]["mtu"] == 1400
    [asked] = world.scheduler.asked
    assert (asked.networks, asked.vlans) == (("vmbr1",), (("vmbr1", 1000),))
    world.answer(command, ok=True, power_state=PowerState.RUNNING)
    world.until(server, "active")
    shown = [(one["version"], one["ip"]) for one in world.row(server).addresses]
    assert shown == [(4, "192.168.7.2"), (6, "fd00:7::2")]
    plugs = InterfaceEndpoint(world.conductor.cloud, world.conductor.runner)
    theirs = made_by(networks, "theirs")
    with pytest.raises(NetworkNotFound):
        plugs.attach_interface(OURS, server, Attachment(network_id=theirs), wait=False)
    plugs.attach_interface(OURS, server, Attachment(network_id=network), wait=False)
    plugged = world.compute.wait_for(2)
    assert isinstance(plugged, Plug)
    assert (plugged.nic.vlan, plugged.nic.ip) == (1000, "192.168.7.3")
    with pytest.raises(Conflict, match="ports still in use"):
        networks.delete_network(OURS, network)


def test_networks_of_others_are_not_there(world: World, networks: NetworkEndpoint) -> None:
    theirs = made_by(networks, "theirs")
    with pytest.raises(NetworkNotFound):
        world.create(networks=(RequestedNetwork(theirs),))
    assert world.rows(schema.servers) == []


def test_a_network_that_goes_before_its_server_has_a_port(
    world: World, networks: NetworkEndpoint
) -> None:
    network = made_by(networks, "p")
    world.scheduler.gate.clear()
    [server] = world.create(networks=(RequestedNetwork(network),))
    networks.delete_network(OURS, network)
    world.scheduler.gate.set()
    world.until(server, "error")
    [fault] = world.rows(schema.faults)
    assert network in fault.message
    assert world.rows(schema.ports) == []


def test_a_network_for_those_who_name_none(world: World, networks: NetworkEndpoint) -> None:
    with world.conductor.store._writer.begin() as connection:
        connection.execute(schema.networks.delete())
    world.create(auto_network=True, needs_network=True)
    command = world.compute.wait_for(1)
    assert isinstance(command, Build)
    [nic] = command.nics
    assert (nic.network_name, nic.vlan, nic.ip) == ("auto_allocated_network", 1000, "10.255.0.1")
    [row] = world.rows(schema.networks)
    assert (row.project_id, row.auto_allocated) == ("p", True)
    conf = world.conductor.cloud.conf
    with world.conductor.store._writer.begin() as connection:
        connection.execute(schema.networks.update().values(auto_allocated=False, project_id="x"))
    conf.set_override("networks", 0, group="quota")
    with pytest.raises(Invalid, match="automatically allocate a network for project p: Quota"):
        world.create(auto_network=True, needs_network=True)


def test_many_ports_of_pools_with_holes_take_few_statements(
    world: World, networks: NetworkEndpoint
) -> None:
    [network] = networks.create_networks(OURS, [NewNetwork("p")])
    pools = [[f"10.1.{n}.10", f"10.1.{n}.59"] for n in range(5)]
    attributes = {"cidr": "10.1.0.0/16", "ip_version": 4, "allocation_pools": pools}
    networks.create_subnets(OURS, [NewSubnet("p", network, attributes=attributes)])
    ports = PortEndpoint(world.conductor.cloud, world.conductor.runner)
    made = ports.create_ports(OURS, [NewPort("p", network)] * 250)
    addresses = {row.ip: row.id for row in world.rows(schema.ports)}
    assert len(addresses) == len(made) == 250
    assert {ip.split(".")[2] for ip in addresses} == set("01234")
    holes = [f"10.1.{n}.{host}" for n in range(5) for host in range(11, 60, 2)]
    for ip in holes:
        ports.delete_port(OURS, addresses[ip])
    with counted(world.conductor.store._writer) as statements:
        ports.create_ports(OURS, [NewPort("p", network)] * len(holes))
    # The conductor's periodic tasks are among them.
    assert statements() < 25
    assert {row.ip for row in world.rows(schema.ports)} == set(addresses)
    with pytest.raises(Conflict, match="No more IP addresses available"):
        ports.create_ports(OURS, [NewPort("p", network)])


def test_what_the_configuration_and_clusters_say_spares_what_projects_made(
    world: World, networks: NetworkEndpoint
) -> None:
    store = world.conductor.store
    network = made_by(networks, "p")
    with pytest.raises(ConfigurationError, match=f"VLAN 1000 of vmbr1 is network {network}"):
        store.run(lambda c: of_bridges.set_vlans(c, {"vmbr1": 1000}))
    store.run(lambda c: of_bridges.set_vlans(c, {"vmbr1": 7}))
    flat = NewNetwork("p", network_type="flat", bridge="vmbr1")
    [untagged] = networks.create_networks(OURS, [flat])
    with pytest.raises(ConfigurationError, match=f"untagged traffic of vmbr1 is .* {untagged}"):
        store.run(lambda c: of_bridges.set_vlans(c, {}))
    bridge = next(row.id for row in world.rows(schema.networks) if row.name == "vmbr0")
    attributes = {"cidr": "10.8.0.0/24", "ip_version": 4}
    networks.create_subnets(OURS, [NewSubnet("p", bridge, attributes=attributes)])
    over = of_bridges.parse_subnet("vmbr0=10.8.0.0/16")
    with pytest.raises(ConfigurationError, match="overlaps a subnet of network"):
        store.run(lambda c: of_bridges.ensure_subnet(c, over))


def seen(world: World, *vms: VmFacts) -> None:
    """All VMs that the cluster shows, and what is read of those that the record doesn't know."""
    states = VmStates("w1", "sim1", clock.utcnow(), ("pve1",), True, vms, low=0, high=LAST)
    world.conductor.followed.take(states)
    eventually(lambda: all(row.read_at for row in world.rows(schema.other_vms)))


def test_a_tag_that_a_vm_of_others_has_is_reported_and_not_given_out(
    world: World, networks: NetworkEndpoint
) -> None:
    def audited(*tags: SeenTag, complete: bool = True) -> set[str]:
        world.compute.seen["sim1"] = ClusterInventory(
            "sim1", other_tags=tags, other_tags_complete=complete
        )
        world.conductor.auditor.audit()
        found = [one for one in world.rows(schema.findings) if one.healed_at is None]
        return {one.subject for one in found if one.kind == "vlan_of_others"}

    def tags() -> set[int | None]:
        return {one.vlan for one in world.rows(schema.networks) if one.project_id == "p"}

    theirs = SeenTag(900, "pve1", "vmbr1", 1000)
    assert audited(theirs) == {"sim1/900/vmbr1/1000"}
    nic = NicFacts("bc:24:11:00:00:01", "vmbr1", 1000)
    world.compute.others[900] = OtherVm(900, "pve1", nics=(nic,))
    seen(world, VmFacts(900, "pve1", 1))
    made_by(networks, "p")
    assert tags() == {1001}
    with pytest.raises(Conflict, match="No project network is available"):
        networks.create_networks(OURS, [NewNetwork("p", "second", mtu=1400)])
    # A restarted agent has not read that VM yet.
    assert audited(complete=False) == {"sim1/900/vmbr1/1000"}
    assert audited() == set()
    seen(world)
    networks.create_networks(OURS, [NewNetwork("p", "second", mtu=1400)])
    assert tags() == {1000, 1001}
