"""What is lost with a host."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from common.messages.facts import HostFacts, StorageFacts
from common.messages.scheduling import RequestSpec, VolumeNeed
from conductor.servers.move.begin_evacuation import why_not

OWN, SHARED = VolumeNeed("local", "c1", "pve1"), VolumeNeed("ceph", "c1")
DRIVE = "its config drive is on the node's own storage local"


@pytest.mark.parametrize(
    ("vm_storage", "vmid", "volumes", "backed", "reason"),
    [
        ("nfs", 100_001, (), False, ""),
        ("nfs", 100_002, (), False, DRIVE),
        ("nfs", None, (), False, ""),
        ("local", None, (), False, "its disk is on the node's own storage local"),
        ("local", 100_001, (), False, "its disk is on the node's own storage local"),
        ("local", 100_001, (SHARED,), True, ""),
        ("local", 100_001, (OWN,), True, "it has a volume on the node's own storage local"),
        ("nfs", 100_001, (SHARED, OWN), False, "it has a volume on the node's own storage local"),
    ],
)
def test_what_cannot_be_had_elsewhere_while_its_node_is_gone(
    vm_storage: str, vmid: int | None, volumes: Any, backed: bool, reason: str
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
    vm = None if vmid is None else ("c1", vmid)
    asked = RequestSpec("s", "p", "u", 1, 512, 1, vm=vm, volumes=volumes, volume_backed=backed)
    assert why_not(facts, asked) == reason
