"""Ports that users make: given to servers by their ids, and kept when the server is deleted."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from common.context import RequestContext
from common.errors import Conflict, Invalid, MicronovaError, NetworkNotFound, PortNotFound
from common.messages.commands import Build, Destroy, Plug
from common.messages.reports import Category, Failure
from common.resources.states import PowerState
from conductor.endpoints.networks.ports import PortEndpoint
from conductor.endpoints.servers.interfaces import InterfaceEndpoint
from conductor.rpc.networks.ports import FixedIp, NewPort, PortChange
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.interfaces import Attachment
from conductor.rpc.servers.servers import CreateServers, RequestedNetwork
from conductor.store.networks import networks, project_networks, user_ports
from db import schema
from tests.fixtures.listings import counted
from tests.functional.conductor.harness import IMAGE, World
from tests.functional.waiting import eventually

STRANGER = RequestContext(user_id="s", project_id="strangers", roles=["member"])
BROKEN = Failure(Category.CONFIGURATION, "It is broken.", "compute_create")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    subnet = networks.parse_subnet("vmbr0=10.0.0.0/29")
    made.conductor.store.run(lambda c: networks.ensure_subnet(c, subnet))
    made.conductor.runner.start()
    yield made
    made.close()


@pytest.fixture
def network(world: World) -> str:
    return next(str(row.id) for row in world.rows(schema.networks) if row.bridge == "vmbr0")


@pytest.fixture
def ports(world: World) -> PortEndpoint:
    return PortEndpoint(world.conductor.cloud, world.conductor.runner)


Make = Callable[..., str]


@pytest.fixture
def make(world: World, ports: PortEndpoint, network: str) -> Make:
    """Make a port of the user's."""

    def made(**asked: Any) -> str:
        values = {"project_id": "p", "network_id": network, **asked}
        return ports.create_ports(world.ctxt, [NewPort(**values)])[0]

    return made


def row(world: World, port_id: str) -> Any:
    return next((one for one in world.rows(schema.ports) if one.id == port_id), None)


def holder(world: World, port_id: str) -> str:
    return str(row(world, port_id).server_uuid)


def a_request(port_id: str) -> CreateServers:
    flavor = FlavorSnapshot("1", "m1.tiny", 1, 512, 1)
    asked = (RequestedNetwork("", port_id=port_id),)
    return CreateServers("web", flavor, IMAGE, networks=asked)


def build(world: World, *port_ids: str) -> tuple[str, Build]:
    """Ask for a server with these ports; the agent has the order."""
    asked = tuple(RequestedNetwork("", port_id=one) for one in port_ids)
    (uuid,) = world.create(networks=asked)
    command = world.compute.wait_for(1)
    assert isinstance(command, Build)
    return uuid, command


def test_a_server_has_the_ports_that_it_names_and_they_outlive_it(
    world: World, make: Make, network: str
) -> None:
    first, second = make(name="front"), make(fixed_ips=(FixedIp(ip_address="10.0.0.6"),))
    asked = (
        RequestedNetwork("", port_id=second, tag="b"),
        RequestedNetwork(network),
        RequestedNetwork("", port_id=first),
    )
    (uuid,) = world.create(networks=asked)
    command = world.compute.wait_for(1)
    assert isinstance(command, Build)
    assert [nic.ip for nic in command.nics] == ["10.0.0.6", "10.0.0.3", "10.0.0.2"]
    assert [nic.port_id for nic in command.nics][::2] == [second, first]
    assert command.nics[0].tag == "b"
    assert {holder(world, one) for one in (first, second)} == {uuid}
    world.answer(command, ok=True, power_state=PowerState.RUNNING)
    world.until(uuid, "active")
    world.act(uuid, "delete")
    destroy = world.compute.wait_for(2)
    assert isinstance(destroy, Destroy)
    world.answer(destroy, ok=True, gone=True)
    world.until(uuid, "deleted")
    left = world.rows(schema.ports)
    assert {(one.id, one.server_uuid, one.tag) for one in left} == {
        (first, "", None),
        (second, "", None),
    }
    assert row(world, first).name == "front"


def test_a_failed_build_gives_its_ports_back(world: World, make: Make) -> None:
    port_id = make()
    uuid, _ = build(world, port_id)
    for count in (1, 2):
        command = world.compute.wait_for(count)
        assert isinstance(command, Build)
        assert [nic.port_id for nic in command.nics] == [port_id]
        world.answer(command, ok=False, gone=True, failure=BROKEN)
    world.until(uuid, "error")
    assert holder(world, port_id) == ""


def test_a_port_has_one_server(world: World, make: Make) -> None:
    port_id = make()
    build(world, port_id)
    with pytest.raises(Conflict, match=f"Port {port_id} is still in use"):
        world.create(networks=(RequestedNetwork("", port_id=port_id),))
    other = make()
    with pytest.raises(Conflict, match="still in use"):
        world.create(networks=(RequestedNetwork("", port_id=other),) * 2)
    assert (len(world.rows(schema.servers)), holder(world, other)) == (1, "")


def test_others_ports_are_not_there(world: World, make: Make, ports: PortEndpoint) -> None:
    theirs = make(project_id="strangers")
    with pytest.raises(PortNotFound, match=f"Port id {theirs} could not be found"):
        world.create(networks=(RequestedNetwork("", port_id=theirs),))
    boss = RequestContext(user_id="a", project_id="p", roles=["admin"], is_admin=True)
    with pytest.raises(Invalid, match=f"Port {theirs} not usable for instance web"):
        world.conductor.creates.create(boss, a_request(theirs))
    mine = make()
    with pytest.raises(PortNotFound):
        ports.update_port(STRANGER, mine, PortChange(name="stolen"))
    with pytest.raises(PortNotFound):
        ports.delete_port(STRANGER, mine)
    assert row(world, mine).name == ""


def plugged(world: World, count: int, on: bool) -> None:
    """The agent carries out the command."""
    command = world.compute.wait_for(count)
    assert isinstance(command, Plug)
    assert command.on is on
    world.answer(command, ok=True, power_state=PowerState.RUNNING)
    eventually(lambda: world.rows(schema.operations)[-1].state == "done")


def test_attached_and_detached_it_stays_and_deleted_it_is_detached(
    world: World, make: Make, ports: PortEndpoint
) -> None:
    uuid, command = build(world)
    world.answer(command, ok=True, power_state=PowerState.RUNNING)
    world.until(uuid, "active")
    interfaces = InterfaceEndpoint(world.conductor.cloud, world.conductor.runner)
    port_id = make()
    for count in (2, 4):
        attached = interfaces.attach_interface(
            world.ctxt, uuid, Attachment(port_id=port_id, tag="t"), wait=False
        )
        assert (attached, holder(world, port_id)) == (port_id, uuid)
        plugged(world, count, on=True)
        assert [one["ip"] for one in world.row(uuid).addresses] == ["10.0.0.2"]
        if count == 2:
            interfaces.detach_interface(world.ctxt, uuid, port_id)
            plugged(world, count + 1, on=False)
            assert holder(world, port_id) == ""
    ports.delete_port(world.ctxt, port_id)
    plugged(world, 5, on=False)
    assert world.rows(schema.ports) == []
    assert world.row(uuid).addresses == []


def test_a_port_that_no_server_has_goes_at_once(
    world: World, make: Make, ports: PortEndpoint
) -> None:
    ports.delete_port(world.ctxt, make())
    assert world.rows(schema.ports) == []
    assert row(world, make()).ip == "10.0.0.3"


@pytest.mark.parametrize(
    ("asked", "kind", "reason"),
    [
        ({"network_id": "nowhere"}, NetworkNotFound, None),
        ({"fixed_ips": (FixedIp(ip_address="10.0.0.1"),)}, Conflict, "IpAddressAlreadyAllocated"),
        ({"fixed_ips": (FixedIp(ip_address="10.0.9.9"),)}, MicronovaError, "InvalidIpForNetwork"),
        ({"fixed_ips": (FixedIp(ip_address="10.0.0.7"),)}, MicronovaError, "InvalidIpForNetwork"),
        ({"mac": "fa:16:3e:00:00:01"}, Conflict, "MacAddressInUse"),
    ],
)
def test_refusals_change_nothing(
    world: World, make: Make, asked: dict[str, Any], kind: type[MicronovaError], reason: str | None
) -> None:
    make(mac="fa:16:3e:00:00:01")
    with pytest.raises(kind) as refused:
        make(**asked)
    assert refused.value.details.get("type") == reason
    assert len(world.rows(schema.ports)) == 1


def test_a_mac_that_another_gets_in_between(
    world: World, make: Make, ports: PortEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(mac="fa:16:3e:00:00:01")
    other = make()
    require, asked = user_ports._require_free_macs, []

    def late(connection: Any, macs: Any) -> None:
        # Both have looked before either has written.
        asked.append(macs)
        if len(asked) % 2 == 0:
            require(connection, macs)

    monkeypatch.setattr(user_ports, "_require_free_macs", late)
    with pytest.raises(Conflict) as refused:
        make(mac="fa:16:3e:00:00:01")
    assert refused.value.details == {"type": "MacAddressInUse"}
    with pytest.raises(Conflict):
        ports.update_port(world.ctxt, other, PortChange(mac="fa:16:3e:00:00:01"))
    assert len(asked) == 4
    assert len(world.rows(schema.ports)) == 2


def test_a_mac_that_is_named_twice(world: World, ports: PortEndpoint) -> None:
    twice = [NewPort("p", _network(world), mac="fa:16:3e:00:00:01")] * 2
    with pytest.raises(Conflict) as refused:
        ports.create_ports(world.ctxt, twice)
    assert refused.value.details == {"type": "MacAddressInUse"}
    assert world.rows(schema.ports) == []


def test_a_pool_comes_to_its_end(world: World, make: Make, ports: PortEndpoint) -> None:
    many = [NewPort("p", row_id) for row_id in [_network(world)] * 6]
    with pytest.raises(Conflict) as refused:
        ports.create_ports(world.ctxt, many)
    assert refused.value.details == {"type": "IpAddressGenerationFailure"}
    # All or none.
    assert world.rows(schema.ports) == []
    assert len(ports.create_ports(world.ctxt, many[1:])) == 5
    assert row(world, make(fixed_ips=())).ip is None


def test_the_quota_counts_all_ports(world: World, make: Make, ports: PortEndpoint) -> None:
    world.conductor.cloud.conf.set_override("ports", 2, group="quota")
    build(world, make())
    with pytest.raises(Conflict) as refused:
        ports.create_ports(world.ctxt, [NewPort("p", _network(world))] * 2)
    assert refused.value.details == {"type": "OverQuota"}
    assert refused.value.message == "Quota exceeded for resources: ['port']."
    make(project_id="strangers")
    make()
    with pytest.raises(Conflict):
        make()
    assert len(world.rows(schema.ports)) == 3


def _network(world: World) -> str:
    return next(str(one.id) for one in world.rows(schema.networks) if one.bridge == "vmbr0")


def test_changes(world: World, make: Make, ports: PortEndpoint) -> None:
    port_id = make()
    wanted = PortChange(
        "new", "text", "fa:16:3e:00:00:02", (FixedIp(ip_address="10.0.0.5"),), any_address=True
    )
    ports.update_port(world.ctxt, port_id, wanted)
    found = row(world, port_id)
    assert (found.name, found.description, found.mac, found.ip) == (
        *("new", "text", "fa:16:3e:00:00:02"),
        "10.0.0.5",
    )
    build(world, port_id)
    ports.update_port(world.ctxt, port_id, PortChange(name="newer"))
    ports.update_port(world.ctxt, port_id, PortChange(fixed_ips=(FixedIp(ip_address="10.0.0.5"),)))
    for one in (PortChange(mac="fa:16:3e:00:00:03"), PortChange(fixed_ips=())):
        with pytest.raises(Conflict, match="can't be changed while it is attached to server"):
            ports.update_port(world.ctxt, port_id, one)
    found = row(world, port_id)
    assert (found.name, found.mac, found.ip) == ("newer", "fa:16:3e:00:00:02", "10.0.0.5")


def active(world: World, count: int, *port_ids: str) -> str:
    """A server that runs; ``count`` commands have been sent then."""
    asked = tuple(RequestedNetwork("", port_id=one) for one in port_ids)
    (uuid,) = world.create(networks=asked)
    world.answer(world.compute.wait_for(count), ok=True, power_state=PowerState.RUNNING)
    world.until(uuid, "active")
    return uuid


def states(world: World) -> list[str]:
    return [one.state for one in world.rows(schema.operations)]


def test_a_port_that_leaves_its_server_is_detached_once(
    world: World, make: Make, ports: PortEndpoint
) -> None:
    port_id = make()
    uuid = active(world, 1, port_id)
    interfaces = InterfaceEndpoint(world.conductor.cloud, world.conductor.runner)
    interfaces.detach_interface(world.ctxt, uuid, port_id)
    interfaces.detach_interface(world.ctxt, uuid, port_id)
    interfaces.detach_address(world.ctxt, uuid, "10.0.0.2")
    ports.delete_port(world.ctxt, port_id)
    ports.delete_port(world.ctxt, port_id)
    assert len(world.rows(schema.operations)) == 2
    plugged(world, 2, on=False)
    assert world.rows(schema.ports) == []


def test_a_late_unwinding_leaves_the_port_to_its_new_server(
    world: World, make: Make, ports: PortEndpoint
) -> None:
    port_id = make()
    first, second = active(world, 1), active(world, 2)
    interfaces = InterfaceEndpoint(world.conductor.cloud, world.conductor.runner)
    interfaces.attach_interface(world.ctxt, first, Attachment(port_id=port_id), wait=False)
    world.answer(world.compute.wait_for(3), ok=False, failure=BROKEN)
    back = world.compute.wait_for(4)
    assert isinstance(back, Plug)
    assert back.on is False
    world.act(first, "delete")
    destroy = world.compute.wait_for(5)
    world.answer(destroy, ok=True, gone=True)
    world.until(first, "deleted")
    interfaces.attach_interface(world.ctxt, second, Attachment(port_id=port_id), wait=False)
    world.answer(world.compute.wait_for(6), ok=True, power_state=PowerState.RUNNING)
    eventually(lambda: world.row(second).addresses)
    world.answer(back, ok=True, power_state=PowerState.RUNNING)
    eventually(lambda: not {"running", "unwinding", "queued"} & set(states(world)))
    assert holder(world, port_id) == second


def test_many_ports_take_as_few_statements_as_one(
    world: World, network: str, ports: PortEndpoint
) -> None:
    subnet = networks.parse_subnet("vmbr1=10.1.0.0/24")
    world.conductor.store.run(lambda c: networks.ensure_subnet(c, subnet))
    other = next(str(one.id) for one in world.rows(schema.networks) if one.bridge == "vmbr1")
    counts = []
    # The project has its default group.
    ports.delete_port(world.ctxt, ports.create_ports(world.ctxt, [NewPort("p", network)])[0])
    for count in (1, 20):
        asked = [NewPort("p", other, mac=f"fa:16:3e:00:01:{n:02x}") for n in range(count)]
        asked += [NewPort("p", network)]
        with counted(world.conductor.store._writer) as statements:
            made = ports.create_ports(world.ctxt, asked)
        counts.append(statements())
        addresses = [row(world, one).ip for one in made]
        assert len(set(addresses)) == count + 1
        if count == 1:
            for one in made:
                ports.delete_port(world.ctxt, one)
    assert counts == [14, 14]


def test_a_hole_in_a_pool_is_found(world: World, make: Make, ports: PortEndpoint) -> None:
    made = ports.create_ports(world.ctxt, [NewPort("p", _network(world))] * 5)
    for number in (1, 3):
        ports.delete_port(world.ctxt, made[number])
    again = ports.create_ports(world.ctxt, [NewPort("p", _network(world))] * 2)
    assert {row(world, one).ip for one in again} == {"10.0.0.3", "10.0.0.5"}
    with pytest.raises(Conflict):
        make()


def owned_by(world: World, network: str, project: str, **changes: Any) -> None:
    """Make a network a project's, as if it was made through the API."""
    mine = schema.networks.c.id == network
    values = {"project_id": project, "discovered": False, **changes}
    world.conductor.store.run(
        lambda c: c.execute(schema.networks.update().where(mine).values(**values))
    )


def test_the_owner_of_a_network_has_a_foreign_server_s_port_detached(
    world: World, make: Make, ports: PortEndpoint, network: str
) -> None:
    port_id = make()
    uuid, command = build(world, port_id)
    world.answer(command, ok=True, power_state=PowerState.RUNNING)
    world.until(uuid, "active")
    with pytest.raises(PortNotFound):
        ports.delete_port(STRANGER, port_id)
    owned_by(world, network, "strangers")
    owner = RequestContext(user_id="s", project_id="strangers", roles=["member"])
    with pytest.raises(PortNotFound):
        ports.update_port(owner, port_id, PortChange(name="x"))
    assert holder(world, port_id) == uuid
    ports.delete_port(owner, port_id)
    plugged(world, 2, on=False)
    assert world.rows(schema.ports) == []
    owned_by(world, network, "", discovered=True)


def test_a_server_needs_addresses_on_a_network_of_a_project(
    world: World, make: Make, ports: PortEndpoint, network: str
) -> None:
    bare = world.conductor.store.run(lambda c: networks.ensure_network(c, "vmbr1"))
    unaddressed = make(network_id=bare)
    without = make(fixed_ips=())
    # Those of a cluster's own network ask its DHCP server.
    accept = world.conductor.creates.create
    request = CreateServers("web", FlavorSnapshot("1", "m1.tiny", 1, 512, 1), IMAGE)
    for asked, words in (
        (RequestedNetwork("", port_id=without), f"Port {without} requires a FixedIP"),
        (RequestedNetwork("", port_id=unaddressed), f"Port {unaddressed} requires a FixedIP"),
        (RequestedNetwork(bare), f"Network {bare} requires a subnet in order to boot"),
    ):
        if asked.port_id != without:
            owned_by(world, bare, "p")
        before = world.rows(schema.servers)
        with pytest.raises(Invalid, match=words):
            accept(world.ctxt, dataclasses.replace(request, networks=(asked,)))
        assert world.rows(schema.servers) == before
    owned_by(world, bare, "", discovered=True)
    (uuid,) = world.create(networks=(RequestedNetwork("", port_id=unaddressed),))
    command = world.compute.wait_for(1)
    assert isinstance(command, Build)
    assert command.nics[0].ip is None
    world.answer(command, ok=True, power_state=PowerState.RUNNING)
    world.until(uuid, "active")


def test_a_port_that_is_switched_off_is_plugged_in_without_a_link(
    world: World, make: Make, ports: PortEndpoint, network: str
) -> None:
    off, on = make(admin_state_up=False), make()
    uuid, command = build(world, off, on)
    assert [nic.down for nic in command.nics] == [True, False]
    world.answer(command, ok=True, power_state=PowerState.RUNNING)
    world.until(uuid, "active")

    def are(*wanted: bool | None) -> bool:
        """Whether the last filter that an agent got has these links."""
        world.conductor.filters.carry_out()
        return [port.up for port in world.compute.filtered[-1][1].ports] == list(wanted)

    world.conductor.filters.carry_out()
    assert world.compute.filtered == []
    ports.update_port(world.ctxt, off, PortChange(admin_state_up=True))
    eventually(lambda: are(True, None))
    change = {"admin_state_up": False}
    world.conductor.store.run(lambda c: project_networks.change(c, network, change))
    eventually(lambda: are(False, False))
    change = {"admin_state_up": True}
    world.conductor.store.run(lambda c: project_networks.change(c, network, change))
    eventually(lambda: are(True, True))


def test_a_port_has_several_addresses_of_a_family(
    world: World, make: Make, ports: PortEndpoint, network: str
) -> None:
    six = networks.parse_subnet("vmbr0=fd00::/64;gateway=fd00::1;pool=fd00::10-fd00::ff")
    world.conductor.store.run(lambda c: networks.ensure_subnet(c, six))
    (four,) = [one.id for one in world.rows(schema.subnets) if ":" not in one.cidr]
    asked = (
        FixedIp(ip_address="fd00::20"),
        FixedIp(ip_address="10.0.0.5"),
        FixedIp(subnet_id=four),
        FixedIp(ip_address="fd00::21"),
    )
    port_id = make(fixed_ips=asked)
    with pytest.raises(Conflict):
        make(fixed_ips=(FixedIp(ip_address="fd00::21"),))
    with pytest.raises(Conflict):
        make(fixed_ips=(FixedIp(ip_address="10.0.0.2"),))
    others = {row(world, make()).ip for _ in range(2)}
    assert others == {"10.0.0.3", "10.0.0.4"}
    uuid, command = build(world, port_id)
    (nic,) = command.nics
    assert nic.ips == ("10.0.0.5", "fd00::20", "10.0.0.2", "fd00::21")
    assert command.config_drive is not None
    on_drive = command.config_drive.network_data["networks"]
    assert [one["ip_address"] for one in on_drive] == list(nic.ips)
    # One default route of each family.
    assert [len(one["routes"]) for one in on_drive] == [1, 1, 0, 0]
    world.answer(command, ok=True, power_state=PowerState.RUNNING)
    world.until(uuid, "active")
    assert [one["ip"] for one in world.row(uuid).addresses] == list(nic.ips)
    # Deleted, it is detached, and then its addresses are free again.
    ports.delete_port(world.ctxt, port_id)
    with pytest.raises(Conflict):
        make(fixed_ips=(FixedIp(ip_address="fd00::21"),))
    plugged(world, 2, on=False)
    eventually(lambda: row(world, port_id) is None)
    again = make(fixed_ips=(FixedIp(ip_address="10.0.0.2"), FixedIp(ip_address="10.0.0.5")))
    assert [ip for _, ip in row(world, again).more_addresses] == ["10.0.0.5"]
    assert {one.port_id for one in world.rows(schema.port_addresses) if one.ip == "10.0.0.5"} == {
        again
    }


def test_addresses_of_a_port_change(world: World, make: Make, ports: PortEndpoint) -> None:
    port_id = make(fixed_ips=(FixedIp(ip_address="10.0.0.2"), FixedIp(ip_address="10.0.0.3")))
    both = (FixedIp(ip_address="10.0.0.3"), FixedIp(ip_address="10.0.0.4"))
    ports.update_port(world.ctxt, port_id, PortChange(fixed_ips=both))
    found = row(world, port_id)
    assert (found.ip, [ip for _, ip in found.more_addresses]) == ("10.0.0.3", ["10.0.0.4"])
    assert row(world, make()).ip == "10.0.0.2"
    one = (FixedIp(ip_address="10.0.0.4"),)
    ports.update_port(world.ctxt, port_id, PortChange(fixed_ips=one))
    assert (row(world, port_id).ip, row(world, port_id).more_addresses) == ("10.0.0.4", None)
    assert world.rows(schema.port_addresses) == []
    with pytest.raises(Invalid):
        make(fixed_ips=tuple(FixedIp(ip_address=f"10.0.0.{n}") for n in range(1, 7)))
