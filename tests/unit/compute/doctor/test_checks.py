"""Findings that a simulated cluster doesn't show."""

from __future__ import annotations

import datetime
from typing import Any

from common import clock
from compute.doctor.checks import datacenter, nodes, reach
from compute.doctor.checks import networks as checked_networks
from compute.doctor.facts import Endpoint, Facts
from compute.hypervisor.proxmox.observe.snapshot import Node, NodeDetail, Snapshot
from compute.hypervisor.proxmox.settings import ClusterSettings, Token


def facts(*seen: Node, endpoints: tuple[Endpoint, ...] = (), **more: Any) -> Facts:
    options = dict.fromkeys(ClusterSettings.__dataclass_fields__, "")
    values = options | {"name": "c1", "token": Token("m@pve", "a", "s"), "hosts": frozenset()}
    made = ClusterSettings(**values)  # type: ignore[arg-type]
    snapshot = Snapshot(True, {one.name: one for one in seen}, {}, version="9.2.11")
    return Facts(made, endpoints, snapshot, **more)


def test_a_certificate_that_ends() -> None:
    soon, late = (clock.utcnow() + datetime.timedelta(days=days) for days in (20, 40))
    ending = Endpoint("pve1:8006", certificate_ends=soon)
    lasting = Endpoint("pve2:8006", certificate_ends=late)
    [one] = reach.certificates(facts(endpoints=(ending, lasting)))
    assert (one.code, one.lines) == ("certificate_ends", ("pvecm updatecerts --force",))
    assert "pve1:8006" in one.what


def test_resources_without_a_manager() -> None:
    listed = [{"sid": "vm:100"}]
    [one] = datacenter.high_availability(facts(ha_resources=listed))
    assert one.code == "ha_no_master"
    assert list(datacenter.high_availability(facts())) == []


def test_a_vnet_that_is_missing() -> None:
    node = Node("pve1", True, unready={"mn1": "it isn't there"})
    [one] = checked_networks.zones(facts(node))
    assert (one.code, one.lines) == ("vnet_unready", ("pvesh set /cluster/sdn",))


def test_the_type_that_all_processors_have() -> None:
    old = "cx16 popcnt sse4_1 sse4_2 ssse3 aes"
    seen = (
        Node("pve1", True, detail=NodeDetail(cpu_model="old", cpu_flags=tuple(old.split()))),
        Node("pve2", True, detail=NodeDetail(cpu_model="new", cpu_flags=(*old.split(), "avx"))),
    )
    found = facts(*seen)
    object.__setattr__(found.settings, "cpu_type", "host")
    [one] = nodes.processors(found)
    assert one.lines == ("# [proxmox:c1] cpu_type = x86-64-v2-AES",)
