"""Bridges as a node lists them."""

from __future__ import annotations

from typing import Any

from compute.hypervisor.proxmox.observe import bridges


def a_bridge(name: str, **more: Any) -> dict[str, Any]:
    return {"iface": name, "type": "bridge", "active": 1, "bridge_ports": "eno1", **more}


def test_only_those_that_are_up() -> None:
    pending = a_bridge("vmbr9")
    del pending["active"]
    vnet = {"iface": "blue", "type": "vnet", "active": "1", "vlanaware": 0}
    assert bridges.usable([a_bridge("vmbr0"), pending, vnet, {}]) == ("blue", "vmbr0")


def test_the_tags_that_they_take() -> None:
    listed = [
        a_bridge("plain"),
        a_bridge("alone", bridge_ports=""),
        a_bridge("aware", bridge_vlan_aware=1),
        a_bridge("all", bridge_vlan_aware=1, bridge_vids="2-4094"),
        a_bridge("few", bridge_vlan_aware=1, bridge_vids="2 4 100-200"),
        a_bridge("ovs", type="OVSBridge", bridge_ports=""),
        {"iface": "blue", "type": "vnet", "active": "1", "vlanaware": 0},
        {"iface": "green", "type": "vnet", "active": "1", "vlanaware": 1},
    ]
    assert bridges.restricted(listed) == {"alone": "", "blue": "", "few": "2,4,100-200"}
