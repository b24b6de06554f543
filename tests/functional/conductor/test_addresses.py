"""Addresses that are asked for: what a member may have, and what happens when two ask for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from common.errors import Forbidden, Invalid
from conductor.rpc.servers.servers import RequestedNetwork
from conductor.store.networks import networks
from db import schema
from tests.functional.conductor.harness import World

SUBNET = "vmbr0=10.0.0.0/24;pool=10.0.0.50-10.0.0.52"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.conductor.store.run(lambda c: networks.ensure_subnet(c, networks.parse_subnet(SUBNET)))
    made.conductor.runner.start()
    yield made
    made.close()


def wish(world: World, fixed_ip: str | None) -> RequestedNetwork:
    network = next(row.id for row in world.rows(schema.networks) if row.bridge == "vmbr0")
    return RequestedNetwork(network, fixed_ip)


@pytest.mark.parametrize(
    ("fixed_ip", "error", "text"),
    [
        ("10.0.0.0", Invalid, "IP address 10.0.0.0 is not a valid IP for any of the subnets"),
        ("10.0.0.255", Invalid, "IP address 10.0.0.255 is not a valid IP for any of the subnets"),
        ("10.0.1.50", Invalid, "IP address 10.0.1.50 is not a valid IP for any of the subnets"),
        ("fd00::5", Invalid, "IP address fd00::5 is not a valid IP for any of the subnets"),
        ("10.0.0.1", Invalid, "Fixed IP 10.0.0.1 is already in use."),
        ("10.0.0.7", Forbidden, "Policy doesn't allow create_port:fixed_ips:ip_address"),
    ],
)
def test_a_member_chooses_within_the_pool(
    world: World, fixed_ip: str, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        world.create(networks=(wish(world, fixed_ip),))
    assert world.rows(schema.servers) == []
    world.create(networks=(wish(world, "10.0.0.51"),))
    world.compute.wait_for(1)
    assert [row.ip for row in world.rows(schema.ports)] == ["10.0.0.51"]


def test_an_administrator_chooses_anywhere_in_the_subnet(world: World) -> None:
    world.create(networks=(wish(world, "10.0.0.7"),), any_address=True)
    world.compute.wait_for(1)
    assert [row.ip for row in world.rows(schema.ports)] == ["10.0.0.7"]
    with pytest.raises(Invalid, match="not a valid IP"):
        world.create(networks=(wish(world, "10.0.0.255"),), any_address=True)


def test_one_request_asks_for_an_address_once(world: World) -> None:
    with pytest.raises(Invalid, match=r"Fixed IP 10\.0\.0\.50 is already in use\."):
        world.create(networks=(wish(world, "10.0.0.50"), wish(world, "10.0.0.50")))


def test_of_two_that_ask_at_once_one_gets_it_and_the_other_is_refused(world: World) -> None:
    world.scheduler.gate.clear()
    uuids = [world.create(networks=(wish(world, "10.0.0.50"),))[0] for _ in range(2)]
    world.scheduler.gate.set()
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until_faults(1)
    [fault] = world.rows(schema.faults)
    assert fault.server_uuid in uuids
    assert fault.message == fault.owner_message == "Fixed IP 10.0.0.50 is already in use."
    world.until(fault.server_uuid, "error")
    world.until(next(uuid for uuid in uuids if uuid != fault.server_uuid), "active")
    assert [row.ip for row in world.rows(schema.ports)] == ["10.0.0.50"]


def test_a_pool_that_is_used_up_ends_the_build(world: World) -> None:
    network = wish(world, None)
    world.create(networks=(network,), min_count=3, max_count=3)
    world.compute.wait_for(3)
    (last,) = world.create(networks=(network,))
    world.until(last, "error")
    [fault] = world.rows(schema.faults)
    assert fault.message == f"No fixed IP addresses available for network: {network.network_id}"
