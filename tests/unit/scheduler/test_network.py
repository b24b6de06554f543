"""VLANs and the bridges that take them."""

from __future__ import annotations

import pytest

from scheduler.decide.choose import choose
from scheduler.filters.network import vlan_reach
from scheduler.filters.placement import network_reach
from tests.unit.scheduler.decide.test_choose import a_host, a_request


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


def test_what_is_no_range_of_vlans_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    request = a_request(networks=("vmbr0",), vlans=(("vmbr0", 7),))
    for tags in ("x-y,7", "x-y, 5-9", "7 -", "1-2-3 7"):
        assert vlan_reach(a_host(bridge_vlans={"vmbr0": tags}), request) is None, tags
    host = a_host(bridge_vlans={"vmbr0": "x-y,8-"})
    assert vlan_reach(host, request) == "bridge vmbr0 takes VLANs x-y,8-, 7 asked"
    assert "Ignored, not a range of VLAN tags: x-y (of x-y,8-)" in caplog.text
    choice = choose([host], request, {"vlan_reach": vlan_reach}, {})
    assert list(choice.refused["vlan_reach"]) == [host.name]
