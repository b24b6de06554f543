"""Ports of servers that a restored record lacks, beside those that it has."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from common import clock
from common.messages.facts import Inspection, MarkedAddress, MarkedPort, NicFacts, OtherVm
from common.messages.inventory import ClusterInventory, SeenVm
from common.resources.states import PowerState
from conductor.audit.gather import Gatherer
from conductor.audit.restoring.restorer import Restorer
from conductor.endpoints.networks.ports import PortEndpoint
from conductor.rpc.networks.ports import NewPort
from conductor.store.networks import networks, unknown_vms
from db import schema
from tests.functional.conductor.harness import World

CLOUD = "5a3c1b7e-0000-4000-8000-0000000000c1"
MADE = "5a3c1b7e-0000-4000-8000-000000000001"
PORT = "5a3c1b7e-0000-4000-8000-0000000000e1"
MAC = "fa:16:3e:00:00:01"
VMID = 100_007


@pytest.fixture
def network(world: World) -> str:
    """A network with few addresses; the record is this cloud's."""
    row = {"id": 1, "cloud_id": CLOUD}
    world.conductor.store.run(lambda c: c.execute(schema.cloud_identity.insert(), row))
    subnet = networks.parse_subnet("vmbr0=10.0.0.0/24;pool=10.0.0.50-10.0.0.53")
    world.conductor.store.run(lambda c: networks.ensure_subnet(c, subnet))
    [found] = [one.id for one in world.rows(schema.networks) if one.bridge == "vmbr0"]
    return str(found)


def nic(*ips: str, port: str = PORT, mac: str = MAC) -> NicFacts:
    """An interface whose port its VM's description names."""
    addresses = tuple(MarkedAddress(ip, "10.0.0.0/24") for ip in ips)
    return NicFacts(mac, "vmbr0", None, ips, MarkedPort(port, mac, addresses=addresses))


def show(world: World, uuid: str, vmid: int, *nics: NicFacts) -> None:
    """Have the cluster show the VM of a server, made since, and no other one."""
    marks = {"read": True, "server_uuid": uuid, "cloud": CLOUD, "proven": True}
    about = {"project_id": world.ctxt.project_id, "user_id": "u", "status": "running"}
    vm = SeenVm(vmid, "pve1", nics=nics, **{**marks, **about})  # type: ignore[arg-type]
    world.compute.seen["sim1"] = ClusterInventory("sim1", (vm,), ())
    world.compute.vms[vmid] = Inspection(
        *(vmid, True, "pve1"),
        **{"marked_by": uuid, "cloud": CLOUD, "power_state": PowerState.RUNNING},
        **{"vcpus": 1, "memory_mib": 64, "nics": nics},
    )


def decide(world: World, *, apply: bool = True) -> dict[str, Any]:
    cloud = world.conductor.cloud
    cloud.guard.expire()
    found = Restorer(cloud, Gatherer(cloud), world.conductor.runner).run(apply=apply)
    return {one["resource"]: one for one in found["items"]}


def ports(world: World) -> dict[str, Any]:
    return {one.mac: one for one in world.rows(schema.ports)}


def a_port(world: World, network: str) -> Any:
    """Return a port that a user has made, which no server has."""
    endpoint = PortEndpoint(world.conductor.cloud, world.conductor.runner)
    [made] = endpoint.create_ports(world.ctxt, [NewPort(world.ctxt.project_id, network)])
    [row] = [one for one in world.rows(schema.ports) if one.id == made]
    return row


def test_an_address_that_a_server_of_the_record_had_is_not_taken_from_who_has_it(
    world: World, network: str
) -> None:
    """The server was deleted since: when it is deleted again, its address would be free."""
    [old] = world.create()
    world.answer(world.compute.wait_for(1))
    world.until(old, "active")
    had = a_port(world, network)
    plugged = schema.ports.update().values(server_uuid=old, kept=False)
    world.conductor.store.run(lambda c: c.execute(plugged))
    show(world, MADE, VMID, nic(had.ip))
    for apply in (False, True):
        item = decide(world, apply=apply)[f"server {MADE}"]
        assert item["verdict"] == "leave", item
        assert f"address {had.ip} is that of a port of server {old}" in item["why"]
    assert [one.uuid for one in world.rows(schema.servers)] == [old]
    world.conductor.store.run(
        lambda c: c.execute(schema.ports.delete().where(schema.ports.c.id == had.id))
    )
    assert decide(world)[f"server {MADE}"]["verdict"] == "adopt"
    [port] = world.rows(schema.ports)
    assert (port.id, port.server_uuid, port.ip) == (PORT, MADE, had.ip)


def test_a_port_made_before_that_a_server_made_since_has(world: World, network: str) -> None:
    row = a_port(world, network)
    show(world, MADE, VMID, nic(row.ip, port=row.id, mac=row.mac))
    item = decide(world)[f"server {MADE}"]
    assert item["verdict"] == "adopt", item
    [port] = world.rows(schema.ports)
    assert (port.id, port.ip, port.kept) == (row.id, row.ip, True)
    assert port.server_uuid == MADE


def test_a_port_made_before_that_a_server_of_the_record_got_since(
    world: World, network: str
) -> None:
    """With the address that it got since, too."""
    [old] = world.create()
    world.answer(world.compute.wait_for(1))
    row, server = a_port(world, network), world.until(old, "active")
    its = nic("10.0.0.99", port=row.id, mac=row.mac)
    show(world, old, server.vmid, its)
    item = decide(world)[f"server {old}"]
    assert item["verdict"] == "adopt", item
    port = ports(world)[row.mac]
    assert (port.server_uuid, port.ip, port.position) == (old, "10.0.0.99", 0)
    assert "10.0.0.99" in [one["ip"] for one in world.row(old).addresses]


@pytest.mark.parametrize("changed", [{"port": PORT}, {}], ids=["another port", "another server"])
def test_a_port_of_another_one_is_left(
    world: World, network: str, changed: dict[str, str]
) -> None:
    row = a_port(world, network)
    if not changed:
        taken = schema.ports.update().values(server_uuid="another")
        world.conductor.store.run(lambda c: c.execute(taken))
        world.leaves = {"port_without_server"}
    show(world, MADE, VMID, nic(port=changed.get("port", row.id), mac=row.mac))
    item = decide(world)[f"server {MADE}"]
    assert (item["verdict"], "MAC address" in item["why"]) == ("leave", True)


def test_all_addresses_of_a_port_are_its_again(world: World, network: str) -> None:
    """Also those that are recorded for a VM which was not distinguished from it."""
    all_of_it = ("10.0.0.50", "10.0.0.51", "10.0.0.99")
    show(world, MADE, VMID, nic(*all_of_it))
    other = OtherVm(7, "pve1", nics=(dataclasses.replace(nic("10.0.0.50"), port=None),))

    def seen(connection: Any) -> None:
        row = {"cluster": "sim1", "vmid": 7, "node": "pve1", "kind": "VM"}
        connection.execute(schema.other_vms.insert(), row)
        unknown_vms.keep(connection, "sim1", [other])

    world.conductor.store.run(seen)
    assert decide(world)[f"server {MADE}"]["verdict"] == "adopt"
    [port] = world.rows(schema.ports)
    assert (port.ip, [ip for _, ip in port.more_addresses]) == (all_of_it[0], [*all_of_it[1:]])
    assert a_port(world, network).ip not in all_of_it
    assert [one["ip"] for one in world.row(MADE).addresses] == [*all_of_it]


@pytest.mark.parametrize("action", ["delete", "reboot"])
def test_an_interface_of_a_server_on_which_an_operation_works(
    world: World, network: str, action: str
) -> None:
    """All is held for it, but not for what waits for the decision."""
    [old] = world.create()
    world.answer(world.compute.wait_for(1))
    server = world.until(old, "active")
    last = world.rows(schema.operations)[-1].id
    held = {"held_at": clock.utcnow(), "held_because": {}, "compare_operation": last}
    world.conductor.store.run(lambda c: c.execute(schema.cloud_identity.update(), held))
    world.conductor.cloud.guard.expire()
    world.act(old, action)
    if action == "delete":
        world.until_paused()
    else:
        world.compute.wait_for(2)
    show(world, old, server.vmid, nic("10.0.0.50"))
    item = decide(world)[f"server {old}"]
    assert item["verdict"] == ("adopt" if action == "delete" else "leave"), item
    [row] = world.rows(schema.cloud_identity)
    assert (row.held_at is None) is (action == "delete")
    assert [one.ip for one in world.rows(schema.ports)] == ["10.0.0.50"] * (action == "delete")
    if action == "delete":
        world.make_due()
        world.answer(world.compute.wait_for(2), gone=True)
        world.until(old, "deleted")
        assert world.rows(schema.ports) == []
