"""Findings that a simulated cluster doesn't show."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from common import clock
from compute.doctor.checks import datacenter, nodes, reach
from compute.doctor.checks import networks as checked_networks
from compute.doctor.facts import Endpoint, Facts
from compute.hypervisor.proxmox.api import handshake
from compute.hypervisor.proxmox.observe.snapshot import Node, NodeDetail, Snapshot
from compute.hypervisor.proxmox.settings import ClusterSettings, Token
from compute.hypervisor.proxmox.vmconfig.hardware import TAG


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
    assert (one.code, one.lines) == ("certificate_ends", (handshake.RENEW,))
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


@pytest.mark.parametrize(
    ("version", "codes"),
    [
        ("pve-manager/7.4-19/f98bf8d4b5d9d0b2", ["version_old", "version_unsupported"]),
        ("pve-manager/9.0.0~10/0fef50945ccd3b7e", []),
        ("pve-manager/9.1/x", ["versions_differ"]),
        ("pve-manager/unknown/x", []),
        ("pve-manager", []),
    ],
)
def test_versions_of_every_form(version: str, codes: list[str]) -> None:
    other = "pve-manager/7.4.1/x" if version.startswith("pve-manager/7") else "pve-manager/9.0.1/x"
    seen = [
        Node(name, True, detail=NodeDetail(version=text))
        for name, text in (("pve1", version), ("pve2", other))
    ]
    found = [one.code for one in nodes.versions(facts(*seen))]
    assert sorted(set(found)) == codes


SET = "pvesh set /cluster/options "


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({}, None),
        ({"user-tag-access": {"user-allow": "free"}}, None),
        ({"user-tag-access": {"user-allow": "list", "user-allow-list": ["a", TAG]}}, None),
        ({"user-tag-access": {"user-allow": "existing"}, "allowed-tags": [TAG]}, None),
        ({"user-tag-access": {"user-allow-list": ["a"]}}, None),
        (
            {"user-tag-access": {"user-allow": "none", "user-allow-list": ["a", TAG]}},
            f"{SET}--user-tag-access user-allow=list,user-allow-list={TAG}",
        ),
        (
            {"user-tag-access": {"user-allow": "list", "user-allow-list": ["a"]}},
            f"{SET}--user-tag-access 'user-allow=list,user-allow-list=a;{TAG}'",
        ),
        (
            {"user-tag-access": {"user-allow": "existing"}, "allowed-tags": ["a"]},
            f"{SET}--user-tag-access user-allow=existing,user-allow-list={TAG}",
        ),
        ({"registered-tags": [TAG]}, f"{SET}--delete registered-tags"),
        ({"registered-tags": ["a", TAG, "b"]}, f"{SET}--registered-tags 'a;b'"),
        (
            {"registered-tags": ["a", TAG], "user-tag-access": {"user-allow": "list"}},
            f"{SET}--registered-tags a --user-tag-access user-allow=list,user-allow-list={TAG}",
        ),
    ],
)
def test_tags(options: dict[str, Any], line: str | None) -> None:
    found = list(datacenter.tags(facts(options=options)))
    assert [one.lines for one in found] == ([] if line is None else [(line,)])
    # a privilege that isn't propagated is there all the same
    mighty = facts(options=options, granted={"/": {"Sys.Modify": 0}})
    assert list(datacenter.tags(mighty)) == []


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
