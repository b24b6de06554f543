"""Networks that a restored record lacks are written as the clusters show them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common import ids
from common.messages.facts import MarkedAddress
from common.resources.states import ResourceType
from conductor.audit.restoring import written
from conductor.audit.restoring.items import Item, Verdict
from conductor.audit.restoring.lost_networks import LostNetwork
from db import schema
from tests.functional.conductor.harness import World

V4 = MarkedAddress("10.9.0.7", "10.9.0.0/24", "10.9.0.1", ("10.9.0.53",))
V6 = MarkedAddress("fd00::7", "fd00::/64")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def lost(network_id: str, *found: MarkedAddress, **more: Any) -> LostNetwork:
    """A network of a project on VLAN 300, where another one has a server."""
    about: dict[str, Any] = {"owner": "mine", "bridge": "vmbr0", "vlan": 300}
    subnets = {str(one.cidr): one for one in found}
    return LostNetwork(network_id, subnets=subnets, projects={"theirs"}, **about | more)


def adopt(world: World, network: LostNetwork) -> Item:
    about = (ResourceType.NETWORK, network.id, "interface of VM 100001")
    item = Item(Verdict.ADOPT, *about, "It was made since.", found=network)
    return world.conductor.store.run(lambda c: written.network(c, item))


def row(world: World, network_id: str) -> Any:
    return next((one for one in world.rows(schema.networks) if one.id == network_id), None)


def subnets(world: World) -> dict[str, tuple[str, str | None, list[str]]]:
    """CIDR → project, gateway and name servers."""
    return {
        one.cidr: (one.project_id, one.gateway_ip, list(one.dns_nameservers or ()))
        for one in world.rows(schema.subnets)
        if one.cidr in (V4.cidr, V6.cidr)
    }


def test_a_network_on_a_vlan_with_its_subnets(world: World) -> None:
    network_id = ids.new_uuid()
    assert adopt(world, lost(network_id, V4, V6)).verdict is Verdict.ADOPT
    made = row(world, network_id)
    assert (made.project_id, made.bridge, made.vlan, made.segment) == ("mine", "vmbr0", 300, 300)
    assert not made.discovered
    assert subnets(world) == {
        "10.9.0.0/24": ("mine", "10.9.0.1", ["10.9.0.53"]),
        "fd00::/64": ("mine", None, []),
    }
    [shared] = world.rows(schema.network_shares)
    assert (shared.network_id, shared.target) == (network_id, "theirs")


def test_subnets_that_a_network_of_the_record_lacks(world: World) -> None:
    network_id = ids.new_uuid()
    adopt(world, lost(network_id, V4))
    again = lost(network_id, V4, V6, recorded=True)
    for _ in range(2):
        assert adopt(world, again).verdict is Verdict.ADOPT
        assert set(subnets(world)) == {"10.9.0.0/24", "fd00::/64"}
    assert len(world.rows(schema.network_shares)) == 1


def test_what_another_network_has_is_left(world: World) -> None:
    adopt(world, lost(ids.new_uuid(), V4))
    other = ids.new_uuid()
    left = adopt(world, lost(other, V6))
    assert left.verdict is Verdict.LEAVE
    assert "on the same wire" in left.text
    assert row(world, other) is None
    assert set(subnets(world)) == {"10.9.0.0/24"}


@pytest.mark.parametrize(
    "broken",
    [
        MarkedAddress("10.9.0.7", "10.9.0.0/24", "fd00::1"),
        MarkedAddress("10.9.0.7", "0.0.0.0/0"),
    ],
    ids=["a gateway of another family", "everything"],
)
def test_what_somebody_edited_leaves_no_half_a_network(
    world: World, broken: MarkedAddress
) -> None:
    network_id = ids.new_uuid()
    left = adopt(world, lost(network_id, broken))
    assert left.verdict is Verdict.LEAVE, subnets(world)
    assert "It was not adopted" in left.text
    assert row(world, network_id) is None
