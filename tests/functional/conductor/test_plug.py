"""Interfaces attached and detached: ports, addresses, tags; servers deleted in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.errors import Conflict, Unavailable
from common.messages.commands import Build, Destroy, Plug
from common.messages.reports import Category, Failure
from common.resources.states import PowerState
from conductor.endpoints.servers.interfaces import InterfaceEndpoint
from conductor.rpc.servers.interfaces import Attachment
from conductor.rpc.servers.servers import RequestedNetwork
from conductor.store.networks import networks
from db import schema
from tests.functional.conductor.harness import World
from tests.functional.waiting import eventually

REFUSED = Failure(Category.CONFIGURATION, "It takes none.", "compute_attach_interface")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    subnet = networks.parse_subnet("vmbr0=10.0.0.0/24")
    made.conductor.store.run(lambda c: networks.ensure_subnet(c, subnet))
    made.conductor.runner.start()
    yield made
    made.close()


@pytest.fixture
def network(world: World) -> str:
    return next(str(row.id) for row in world.rows(schema.networks) if row.bridge == "vmbr0")


@pytest.fixture
def server(world: World, network: str) -> str:
    """An active server, with an interface that has a tag."""
    (uuid,) = world.create(networks=(RequestedNetwork(network, tag="front"),))
    command = world.compute.wait_for(1)
    assert isinstance(command, Build)
    assert command.config_drive is not None
    [device] = command.config_drive.meta_data["devices"]
    assert (device["type"], device["tags"]) == ("nic", ["front"])
    assert device["mac"] == command.nics[0].mac
    world.answer(command, ok=True, power_state=PowerState.RUNNING)
    world.until(uuid, "active")
    return uuid


def endpoint(world: World, wait_seconds: float = 20) -> InterfaceEndpoint:
    conductor = world.conductor
    return InterfaceEndpoint(conductor.cloud, conductor.runner, wait_seconds=wait_seconds)


def attach(world: World, uuid: str, **asked: Any) -> str:
    attachment = Attachment(**asked)
    return endpoint(world).attach_interface(world.ctxt, uuid, attachment, wait=False)


def sent(world: World, count: int) -> Plug:
    command = world.compute.wait_for(count)
    assert isinstance(command, Plug)
    return command


def ended(world: World, state: str) -> None:
    eventually(lambda: world.rows(schema.operations)[-1].state == state)


def ips(world: World, uuid: str) -> list[str]:
    return [one["ip"] for one in world.row(uuid).addresses]


def test_an_interface_comes_and_goes(world: World, server: str, network: str) -> None:
    port_id = attach(world, server, network_id=network, tag="back")
    command = sent(world, 2)
    assert (command.on, command.slot, command.nic.port_id) == (True, 1, port_id)
    assert (command.nic.ip, command.nic.tag) == ("10.0.0.3", "back")
    assert command.size.vcpus == world.row(server).vcpus
    # Other actions may begin at the same time, and the address is taken.
    assert world.row(server).task_state is None
    assert [row.ip for row in world.rows(schema.ports)].count("10.0.0.3") == 1
    world.answer(command, ok=True, power_state=PowerState.RUNNING)
    ended(world, "done")
    assert ips(world, server) == ["10.0.0.2", "10.0.0.3"]
    endpoint(world).detach_interface(world.ctxt, server, port_id)
    command = sent(world, 3)
    assert (command.on, command.nic.mac != "") == (False, True)
    assert len(world.rows(schema.ports)) == 2
    world.answer(command, ok=True, power_state=PowerState.RUNNING)
    ended(world, "done")
    assert (ips(world, server), len(world.rows(schema.ports))) == (["10.0.0.2"], 1)


def test_a_refused_one_gives_its_address_back_once_it_is_seen_gone(
    world: World, server: str, network: str
) -> None:
    attach(world, server, network_id=network)
    world.answer(sent(world, 2), ok=False, failure=REFUSED)
    command = sent(world, 3)
    assert command.on is False
    assert len(world.rows(schema.ports)) == 2
    world.answer(command, ok=True, power_state=PowerState.RUNNING)
    ended(world, "failed")
    assert (ips(world, server), len(world.rows(schema.ports))) == (["10.0.0.2"], 1)
    assert world.row(server).vm_state == "active"
    [fault] = world.rows(schema.faults)
    assert fault.category == "configuration"


def test_one_that_the_guest_keeps_stays(world: World, server: str) -> None:
    [port] = world.rows(schema.ports)
    endpoint(world).detach_interface(world.ctxt, server, port.id)
    kept = Failure(Category.CONFIGURATION, "The guest does not let go.", verdict="fatal")
    world.answer(sent(world, 2), ok=False, failure=kept)
    ended(world, "failed")
    assert (ips(world, server), len(world.rows(schema.ports))) == (["10.0.0.2"], 1)


def test_a_delete_takes_all_of_it(world: World, server: str, network: str) -> None:
    attach(world, server, network_id=network)
    late = sent(world, 2)
    world.act(server, "delete")
    command = world.compute.wait_for(3)
    assert isinstance(command, Destroy)
    world.answer(late, ok=True, power_state=PowerState.RUNNING)
    world.answer(command, ok=True, gone=True)
    world.until(server, "deleted")
    eventually(lambda: {row.state for row in world.rows(schema.operations)} <= {"done", "failed"})
    assert world.rows(schema.ports) == []
    assert world.row(server).addresses == []


def test_a_request_waits_for_the_end(world: World, server: str, network: str) -> None:
    world.compute.answering = lambda command: world.answer(
        command, ok=True, power_state=PowerState.RUNNING
    )
    asked = Attachment(network)
    assert endpoint(world).attach_interface(world.ctxt, server, asked, wait=True)
    assert len(ips(world, server)) == 2
    world.compute.answering = None
    with pytest.raises(Unavailable, match="still being attached"):
        endpoint(world, wait_seconds=0.1).attach_interface(world.ctxt, server, asked, wait=True)


def test_without_an_agent_nothing_is_taken(world: World, server: str, network: str) -> None:
    change = schema.services.update().values(forced_down=True)
    world.conductor.store.run(lambda c: c.execute(change))
    with pytest.raises(Conflict, match="Service is unavailable"):
        attach(world, server, network_id=network)
    assert len(world.rows(schema.ports)) == 1
