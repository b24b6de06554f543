"""What an image says of how servers are rescued from it."""

from __future__ import annotations

import pytest

from common.guest import rescue


@pytest.mark.parametrize(
    ("disk_format", "properties", "problem"),
    [
        ("iso", {}, None),
        ("iso", {"hw_rescue_device": "cdrom", "hw_rescue_bus": "scsi"}, None),
        ("iso", {"hw_rescue_device": "floppy"}, "device 'floppy'"),
        ("iso", {"hw_rescue_bus": "virtio"}, "bus 'virtio'"),
        ("raw", {"hw_rescue_bus": "virtio"}, None),
        ("raw", {"hw_rescue_device": "cdrom"}, "device 'cdrom'"),
    ],
)
def test_problems(disk_format: str, properties: dict[str, str], problem: str | None) -> None:
    found = rescue.problem(disk_format, properties)
    wanted = problem and f"Requested rescue {problem} is not supported"
    assert found == wanted


def test_the_bus() -> None:
    assert rescue.rescue_bus({}) == "sata"
    assert rescue.rescue_bus({"hw_rescue_bus": "ide"}) == "ide"
