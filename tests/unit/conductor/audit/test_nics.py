"""Interfaces against ports, and firewalls against security groups."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import pytest

from common.messages.facts import NicFacts
from common.messages.filters import FilterCheck
from common.messages.inventory import ClusterInventory, SeenTag, SeenVm
from conductor.audit.differences import differences
from conductor.audit.facts import Facts, NetworkFacts, PortFacts, ServerFacts
from conductor.store.networks.segments import TagRange

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
MINE, NEW = "fa:16:3e:00:00:01", "fa:16:3e:00:00:02"
SERVER = ServerFacts(
    *("web", "p", "u", "active", None, 1, "pve1", "pve1", "c1", 100_001, 1, 512, 1, False),
    addresses=(),
    deleted_at=None,
)
VM = SeenVm(100_001, "pve1", read=True, server_uuid="web", proven=True)
KINDS = {"port_without_nic", "nic_without_port", "nic_elsewhere"}
KINDS |= {"firewall_differs", "firewall_foreign"}


def found(*nics: NicFacts, vm: SeenVm = VM, **changes: Any) -> dict[str, str]:
    """Kind → subject of what is found, of a server with one port on VLAN 7 of vmbr0."""
    seen = dataclasses.replace(vm, nics=nics)
    values: dict[str, Any] = {
        "servers": {"web": SERVER},
        "ports": (PortFacts("port", "web", None, mac=MINE, network_id="net"),),
        "networks": {"net": NetworkFacts("net", "blue", "vmbr0", 7)},
        "mac_prefix": "fa:16:3e",
        "inventories": {"c1": ClusterInventory("c1", (seen,))},
    }
    listed = differences(Facts(NOW, **(values | changes)))
    assert len({one.key for one in listed}) == len(listed)
    return {one.kind: one.subject for one in listed if one.kind in KINDS}


RIGHT = NicFacts(MINE, "vmbr0", 7)


def test_ports_and_interfaces_that_agree_are_no_difference() -> None:
    assert found(RIGHT) == {}
    # Another's address is nobody's but the person's who added it.
    assert found(RIGHT, NicFacts("bc:24:11:00:00:01", "vmbr9")) == {}


def test_each_side_may_lack_one() -> None:
    assert found() == {"port_without_nic": "port"}
    stray = found(RIGHT, NicFacts(NEW, "vmbr0", 7))
    assert stray == {"nic_without_port": f"c1/100001/{NEW}"}
    # The port of another server is none of this one.
    others = PortFacts("x", "other", None, mac=MINE, network_id="net")
    assert found(RIGHT, ports=(others,)) == {"nic_without_port": f"c1/100001/{MINE}"}


@pytest.mark.parametrize(("bridge", "vlan"), [("vmbr0", None), ("vmbr0", 8), ("vmbr1", 7)])
def test_an_interface_on_another_wire(bridge: str, vlan: int | None) -> None:
    assert found(NicFacts(MINE, bridge, vlan)) == {"nic_elsewhere": "port"}
    assert found(NicFacts(MINE, bridge, vlan), networks={}) == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"vm": dataclasses.replace(VM, read=False)},
        {"vm": dataclasses.replace(VM, proven=False)},
        {"vm": dataclasses.replace(VM, server_uuid="other")},
        {"vm": dataclasses.replace(VM, lock="clone", lock_live=True)},
        {"busy": frozenset({"web"})},
        {"servers": {"web": dataclasses.replace(SERVER, vm_state="building")}},
        {"servers": {"web": dataclasses.replace(SERVER, vmid=None)}},
    ],
)
def test_what_was_not_read_or_is_in_flux_is_left_alone(changes: Any) -> None:
    differs = {"web": FilterCheck(("net0 is not filtered",), ("rule in ACCEPT",))}
    assert found(firewalls=differs, **changes) == {}


def test_firewalls() -> None:
    differs, foreign = ("net0 is not filtered",), ("rule in ACCEPT",)
    assert found(RIGHT, firewalls={"web": FilterCheck()}) == {}
    at = "c1/100001"
    assert found(RIGHT, firewalls={"web": FilterCheck(differs)}) == {"firewall_differs": at}
    both = {"web": FilterCheck(differs * 9, foreign)}
    assert found(RIGHT, firewalls=both) == {"firewall_differs": at, "firewall_foreign": at}
    # It is to be written yet.
    assert found(RIGHT, firewalls=both, firewalls_due=frozenset({"web"})) == {}


def test_tags_of_projects_networks_that_other_vms_have() -> None:
    """A tag of a network, a tag of none yet, and tags that are not for projects' networks."""
    tags = tuple(
        SeenTag(900 + number, "pve1", *wire)
        for number, wire in enumerate([("vmbr0", 7), ("vmbr0", 9), ("vmbr0", 50), ("vmbr1", 7)])
    )
    facts = Facts(
        NOW,
        networks={"net": NetworkFacts("net", "blue", "vmbr0", 7)},
        tenant_vlans=(TagRange("vmbr0", 5, 10),),
        inventories={"c1": ClusterInventory("c1", other_tags=tags)},
    )
    seen = {one.subject: one.cause for one in differences(facts) if one.kind == "vlan_of_others"}
    assert seen.keys() == {"c1/900/vmbr0/7", "c1/901/vmbr0/9"}
    assert "network blue (net)" in seen["c1/900/vmbr0/7"]
    assert "no network yet" in seen["c1/901/vmbr0/9"]
