"""Disks of VMs against the record of their servers."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import pytest

from common.messages.inventory import ClusterInventory, SeenDrive, SeenVm
from conductor.audit.differences import differences
from conductor.audit.facts import Facts, ServerFacts

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
ROOT = SeenDrive("scsi0", "local:100001/vm-100001-disk-0.qcow2")
SWAP = SeenDrive("scsi30", "local:100001/vm-100001-disk-1.qcow2")
SERVER = ServerFacts(
    *("web", "p", "u", "active", None, 1, "pve1", "pve1", "c1", 100_001, 1, 512, 1, False),
    addresses=(),
    deleted_at=None,
    flavor={"local_disks": [{"slot": 30, "size_mib": 512}]},
    image_id="image",
)
VM = SeenVm(
    100_001, "pve1", read=True, server_uuid="web", proven=True, drives=(ROOT, SWAP), nics=()
)


def found(server: ServerFacts = SERVER, **changes: Any) -> list[str]:
    """Subjects of the disks that are missing."""
    seen = dataclasses.replace(VM, **changes)
    facts = Facts(
        NOW, servers={"web": server}, inventories={"c1": ClusterInventory("c1", (seen,))}
    )
    return [one.subject for one in differences(facts) if one.kind == "disk_missing"]


def test_what_the_record_has_is_no_difference() -> None:
    assert found() == []
    # A disk that a person added is theirs.
    assert found(drives=(ROOT, SWAP, SeenDrive("scsi7", "local:7/vm-7-disk-0.raw"))) == []


@pytest.mark.parametrize(
    ("drives", "missing"),
    [
        ((SWAP,), ["web/scsi0"]),
        ((ROOT,), ["web/scsi30"]),
        ((), ["web/scsi0", "web/scsi30"]),
        ((dataclasses.replace(ROOT, lost=True), SWAP), ["web/scsi0"]),
    ],
)
def test_what_is_missing(drives: tuple[SeenDrive, ...], missing: list[str]) -> None:
    assert found(drives=drives) == missing


@pytest.mark.parametrize(
    "changes",
    [
        {"drives": None},
        {"read": False},
        {"proven": False},
        {"lock": "clone", "lock_live": True},
        {"adopted": True},
    ],
)
def test_what_says_nothing(changes: dict[str, Any]) -> None:
    assert found(**({"drives": ()} | changes)) == []


def test_a_root_disk_that_is_a_volume_has_checks_of_its_own() -> None:
    assert found(dataclasses.replace(SERVER, image_id=None), drives=(SWAP,)) == []
    # Also where an image was named beside it.
    backed = {**SERVER.flavor, "volume_backed": True}
    assert found(dataclasses.replace(SERVER, flavor=backed), drives=(SWAP,)) == []
