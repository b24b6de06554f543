"""What is lost with a host."""

from __future__ import annotations

import datetime

import pytest

from common.messages.facts import HostFacts, StorageFacts
from conductor.flows.move.begin_evacuation import kept

DRIVE = "its config drive is on the node's own storage local"


@pytest.mark.parametrize(
    ("vm_storage", "vmid", "reason"),
    [
        ("nfs", 100_001, ""),
        ("nfs", 100_002, DRIVE),
        ("nfs", None, ""),
        ("local", None, "its disk is on the node's own storage local"),
        ("local", 100_001, "its disk is on the node's own storage local"),
    ],
)
def test_what_cannot_be_had_elsewhere_while_its_node_is_gone(
    vm_storage: str, vmid: int | None, reason: str
) -> None:
    now = datetime.datetime.now(datetime.UTC)
    facts = HostFacts(
        "pve1",
        "c1",
        "pve1",
        "uuid",
        "worker",
        "zone",
        now,
        vm_storage=vm_storage,
        storages=(
            StorageFacts("local", "dir", False, True, 100, 50, ("images", "iso")),
            StorageFacts("nfs", "nfs", True, True, 100, 50, ("images",)),
        ),
        pinned={"100002": DRIVE},
    )
    assert kept(facts, vmid) == reason
