"""VLANs and the bridges that take them."""

from __future__ import annotations

import pytest

from scheduler.filters.network import vlan_reach
from scheduler.filters.placement import network_reach
from tests.unit.scheduler.test_choose import a_host, a_request


@pytest.mark.parametrize(
    ("takes", "reason"),
    [
        ({}, None),
        ({"vmbr1": ""}, None),
        ({"vmbr0": "2-9,200"}, None),
        ({"vmbr0": "7"}, None),
        ({"vmbr0": ""}, "bridge vmbr0 takes no VLAN, 7 asked"),
        ({"vmbr0": "2,8-200"}, "bridge vmbr0 takes VLANs 2,8-200, 7 asked"),
    ],
)
def test_vlans(takes: dict[str, str], reason: str | None) -> None:
    request = a_request(networks=("vmbr0",), vlans=(("vmbr0", 7),))
    assert vlan_reach(a_host(bridge_vlans=takes), request) == reason
    assert vlan_reach(a_host(bridge_vlans=takes), a_request(networks=("vmbr0",))) is None


def test_bridges_and_vnets_that_are_not_there() -> None:
    host = a_host(bridges=("vmbr0",), unready_bridges={"blue": "zone z1: pending"})
    assert network_reach(host, a_request(networks=("vmbr0",))) is None
    assert network_reach(host, a_request(networks=("vmbr0", "blue", "vmbr7"))) == (
        "vnet blue isn't on the node (zone z1: pending); no bridge vmbr7 on the node"
    )
