"""Networks and subnets that many ask for at once, where the database lets them all in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common.context import RequestContext
from common.errors import Conflict, Invalid, MicronovaError, NetworkNotFound
from common.messages.facts import NicFacts, OtherVm, VmFacts
from conductor.endpoints.networks.networks import NetworkEndpoint
from conductor.endpoints.networks.ports import PortEndpoint
from conductor.rpc.networks.networks import NewNetwork, NewShare, NewSubnet
from conductor.rpc.networks.ports import NewPort
from conductor.store.networks import unknown_vms
from db import schema
from tests.functional.conductor.harness import World
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401
from tests.functional.waiting import while_it_waits

pytestmark = pytest.mark.database

OURS = RequestContext(user_id="u", project_id="demo", roles=["member"])
WORKERS = 8


@pytest.fixture
def world(tmp_path: Path, postgres_url: str) -> Iterator[World]:  # noqa: F811
    made = World(tmp_path, url=postgres_url)
    conf = made.conductor.cloud.conf
    conf.set_override("tenant_vlans", ["vmbr1:1000-1039"], group="networks")
    yield made
    made.close()
    for conductor in made.conductors:
        conductor.store._writer.dispose()
        conductor.store._reader.dispose()


@pytest.fixture
def networks(world: World) -> NetworkEndpoint:
    return NetworkEndpoint(world.conductor.cloud)


@pytest.fixture
def ports(world: World) -> PortEndpoint:
    return PortEndpoint(world.conductor.cloud, world.conductor.runner)


def at_once(works: Sequence[Callable[[], Any]]) -> list[Any]:
    """Return what each returns, or the refusal that it raises; all begin together."""
    start = threading.Barrier(len(works))
    found: list[Any] = [None] * len(works)

    def run(number: int) -> None:
        start.wait(30)
        try:
            found[number] = works[number]()
        except MicronovaError as error:
            found[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(works))]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    return found


def a_subnet(network_id: str, cidr: str) -> NewSubnet:
    version = 6 if ":" in cidr else 4
    return NewSubnet("demo", network_id, attributes={"cidr": cidr, "ip_version": version})


def test_no_tag_is_given_twice_and_no_quota_is_overstepped(
    world: World, networks: NetworkEndpoint
) -> None:
    conf = world.conductor.cloud.conf
    conf.set_override("networks", 11, group="quota")

    found = at_once([lambda: networks.create_networks(OURS, [NewNetwork("demo")])] * 2 * WORKERS)
    refused = [one.details["type"] for one in found if isinstance(one, Conflict)]
    assert refused == ["OverQuota"] * (2 * WORKERS - 11)
    rows = [row for row in world.rows(schema.networks) if not row.discovered]
    assert sorted(row.vlan for row in rows) == list(range(1000, 1011))


def test_a_tag_that_is_named_is_had_once(world: World, networks: NetworkEndpoint) -> None:
    wanted = NewNetwork("demo", network_type="vlan", bridge="vmbr1", vlan=7)
    found = at_once([lambda: networks.create_networks(OURS, [wanted])] * WORKERS)
    refused = [one for one in found if isinstance(one, Conflict)]
    assert len(refused) == WORKERS - 1
    assert {one.details["type"] for one in refused} == {"VlanIdInUse"}


def test_subnets_never_overlap(world: World, networks: NetworkEndpoint) -> None:
    [network] = networks.create_networks(OURS, [NewNetwork("demo")])
    conf = world.conductor.cloud.conf
    conf.set_override("subnets", 2, group="quota")
    cidrs = ["10.1.0.0/16", "10.1.1.0/24", "10.1.2.0/24", "10.0.0.0/8"] * 2
    found = at_once(
        [
            lambda cidr=cidr: networks.create_subnets(OURS, [a_subnet(network, cidr)])
            for cidr in cidrs
        ]
    )
    made = [cidr for cidr, one in zip(cidrs, found, strict=True) if isinstance(one, list)]
    assert set(made) in ({"10.1.0.0/16"}, {"10.0.0.0/8"}, {"10.1.1.0/24", "10.1.2.0/24"})
    assert len(made) == len(set(made)) == len(world.rows(schema.subnets))
    assert all(isinstance(one, list | Invalid | Conflict) for one in found)


@pytest.mark.parametrize("cidrs", [[], ["10.1.0.0/24"], ["10.1.0.0/24", "fd00::/64"]])
def test_no_port_is_left_on_a_network_that_is_gone(
    world: World, networks: NetworkEndpoint, ports: PortEndpoint, cidrs: list[str]
) -> None:
    """And none is made on one whose subnets go."""
    made = [networks.create_networks(OURS, [NewNetwork("demo")])[0] for _ in range(6)]
    for network in made:
        networks.create_subnets(OURS, [a_subnet(network, cidr) for cidr in cidrs])
    for network in made:
        new = NewPort("demo", network)
        found = at_once(
            [
                *[lambda: ports.create_ports(OURS, [new, new])] * 3,  # noqa: B023 - joined here
                lambda: networks.delete_network(OURS, network),  # noqa: B023
            ]
        )
        gone = found[-1] is None
        assert gone or found[-1].details["type"] == "NetworkInUse"
        assert all(isinstance(one, NetworkNotFound if gone else list) for one in found[:-1])
        there = {row.id for row in world.rows(schema.networks)}
        assert (network in there) is not gone
        assert {row.network_id for row in world.rows(schema.ports)} <= there
        assert {row.network_id for row in world.rows(schema.subnets)} <= there


def test_no_address_is_of_a_subnet_that_is_gone(
    world: World, networks: NetworkEndpoint, ports: PortEndpoint
) -> None:
    [network] = networks.create_networks(OURS, [NewNetwork("demo")])
    for number in range(4):
        subnet = a_subnet(network, f"10.{number}.0.0/24")
        [subnet_id] = networks.create_subnets(OURS, [subnet])
        found = at_once(
            [
                *[lambda: ports.create_ports(OURS, [NewPort("demo", network)])] * 3,
                lambda: networks.delete_subnet(OURS, subnet_id),  # noqa: B023 - joined here
            ]
        )
        assert found[-1] is None or found[-1].details["type"] == "SubnetInUse"
        there = {row.id for row in world.rows(schema.subnets)}
        assert {row.subnet_id for row in world.rows(schema.ports)} - {None} <= there
        for row in world.rows(schema.ports):
            ports.delete_port(OURS, row.id)
        if subnet_id in there:
            networks.delete_subnet(OURS, subnet_id)


def test_one_network_is_made_for_those_who_name_none(
    world: World, networks: NetworkEndpoint
) -> None:
    with world.conductor.store._writer.begin() as connection:
        connection.execute(schema.networks.delete())
    found = at_once([lambda: networks.auto_network(OURS, "demo", dry_run=False)] * WORKERS)
    assert len(set(found)) == 1
    assert [row.id for row in world.rows(schema.networks)] == [found[0]]
    assert len(world.rows(schema.subnets)) == 1


def test_no_port_is_left_to_a_project_that_loses_the_network(
    world: World, networks: NetworkEndpoint, ports: PortEndpoint
) -> None:
    theirs = RequestContext(user_id="t", project_id="theirs", roles=["member"])
    for cidrs in ([], ["10.1.0.0/24"]) * 2:
        [network] = networks.create_networks(OURS, [NewNetwork("demo")])
        networks.create_subnets(OURS, [a_subnet(network, cidr) for cidr in cidrs])
        [shared] = networks.create_network_shares(OURS, [NewShare("demo", network, "theirs")])
        new = NewPort("theirs", network)
        found = at_once(
            [
                *[lambda: ports.create_ports(theirs, [new])] * 3,  # noqa: B023 - joined here
                lambda: networks.delete_network_share(OURS, shared),  # noqa: B023
            ]
        )
        gone = found[-1] is None
        assert gone or found[-1].details["type"] == "RbacPolicyInUse"
        assert all(isinstance(one, NetworkNotFound if gone else list) for one in found[:-1])


def test_an_adopted_vm_s_address_is_free_for_it_though_its_vm_is_being_read(world: World) -> None:
    """Else its port would be without it: what is read after an adoption has begun is forgotten."""
    vm = OtherVm(
        100_001, "pve1", nics=(NicFacts("fa:16:3e:00:00:01", "vmbr0", ips=("10.0.0.9",)),)
    )
    engine = world.conductor.store._writer
    with engine.begin() as connection:
        seen = VmFacts(vm.vmid, vm.node, 0)
        unknown_vms.take(connection, "sim1", unknown_vms.Compared((seen,)))

    def adopt(connection: sa.Connection) -> list[Any]:
        unknown_vms.forget(connection, "sim1", [vm.vmid])
        return list(connection.execute(sa.select(schema.other_nics)))

    read = while_it_waits(engine, lambda c: unknown_vms.keep(c, "sim1", [vm]), adopt)
    assert read == []
