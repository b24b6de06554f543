"""Which VMs may be adopted, and as what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from common.errors import Conflict, MicronovaError, NotFound, Unavailable
from common.messages.facts import Inspection, NicFacts
from common.messages.reports import Category, Failure
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.manage import Adoption
from conductor.servers.manage import candidate
from conductor.servers.manage.abandon import judged
from conductor.store.networks.networks import Network

OWN = "6b0f9c5e-55a5-4bb1-8f0c-9e2c3fbb0a01"
VM = Inspection(500, True, "pve1", name="db", vcpus=2, memory_mib=2048, disk_gib=10)
AWAY = Failure(Category.NODE_UNHEALTHY, "silence")
ASKED = Adoption("c1", 500, "p", "u")


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"exists": False}, NotFound, "has no VM 500"),
        ({"kind": "template"}, Conflict, "is a template"),
        ({"kind": "container"}, Conflict, "is a container"),
        ({"marked_by": OWN}, Conflict, OWN),
        ({"lock": "backup"}, Conflict, "is locked (backup)"),
        ({"vcpus": 0}, Conflict, "nothing of its size"),
        ({"failure": AWAY}, Unavailable, "silence"),
    ],
)
def test_refusals(changes: dict[str, Any], error: type[MicronovaError], words: str) -> None:
    refused = candidate.refusal(replace(VM, **changes), "c1", "us")
    assert isinstance(refused, error)
    assert words in refused.message


def test_a_plain_vm_may() -> None:
    assert candidate.refusal(VM, "c1", "us") is None


def test_a_flavor_of_its_own_says_what_the_vm_has() -> None:
    made = candidate.flavor(VM, OWN)
    assert (made.vcpus, made.memory_mib, made.disk_gib) == (2, 2048, 10)
    assert candidate.too_small(made, VM) is None
    short = candidate.too_small(FlavorSnapshot("1", "tiny", 1, 4096, 5), VM)
    assert short is not None
    assert short.message == (
        "Flavor tiny is too small: 2 VCPU in the VM, 1 in the flavor; "
        "10 GiB disk in the VM, 5 in the flavor."
    )


@pytest.mark.parametrize(
    ("smbios", "uuid"),
    [
        (OWN.upper(), OWN),
        (None, None),
        ("00000000-0000-0000-0000-000000000000", None),
        ("ffffffff-ffff-ffff-ffff-ffffffffffff", None),
        ("no uuid", None),
    ],
)
def test_the_uuid_is_the_vms_own_where_it_is_one(smbios: str | None, uuid: str | None) -> None:
    assert candidate.own_uuid(replace(VM, smbios_uuid=smbios)) == uuid


def test_names() -> None:
    assert candidate.name(ASKED, VM) == "db"
    assert candidate.name(replace(ASKED, name="mail"), VM) == "mail"
    assert candidate.name(ASKED, replace(VM, name="")) == "vm-500"


def test_interfaces_are_known_by_bridge_and_vlan() -> None:
    nics = [NicFacts("aa", "vmbr0"), NicFacts("bb", "vmbr0", 7), NicFacts("cc", "vmbr9")]
    networks = [Network("n0", "vmbr0", "vmbr0", None, 1500), Network("n1", "x", "vmbr1", 7, 1500)]
    assert [nic.mac for nic, _ in candidate.known_nics(nics, networks)] == ["aa"]


class _Server:
    cluster = "c1"


@pytest.mark.parametrize(
    ("found", "force", "words"),
    [
        (None, False, "names no VM"),
        (Inspection(500), False, "is not there"),
        (VM, False, "is not this server's"),
        (Inspection(500, failure=AWAY), True, "forced"),
    ],
)
def test_what_may_be_forgotten(found: Inspection | None, force: bool, words: str) -> None:
    assert words in judged(_Server(), found, force=force)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "force"),
    [
        (replace(VM, ours=True), False),
        (replace(VM, ours=True), True),
        (Inspection(500, failure=AWAY), False),
    ],
)
def test_what_may_not_be_forgotten(found: Inspection, force: bool) -> None:
    with pytest.raises(Conflict):
        judged(_Server(), found, force=force)  # type: ignore[arg-type]
