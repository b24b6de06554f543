"""What would have to be otherwise, in words."""

from __future__ import annotations

from typing import Any

import pytest

from common.messages.scheduling import Change
from common.story.decision import least_change
from common.story.suggestions import otherwise


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            [("disk_gib", 1_000_000, 59_601)],
            "if the disk were 59,601 GiB instead of 1,000,000 GiB",
        ),
        (
            [("vcpus", 16, 8), ("memory_mib", 8192, 512), ("disk_gib", 20, 10)],
            "if the VCPUs were 8 instead of 16, the memory were 512 MiB instead of 8 GiB and the "
            "disk were 10 GiB instead of 20 GiB",
        ),
        (
            [("vcpus", 2, 1), ("networks", ["a", "b"], ["b"]), ("vlans", [["a", 5]], [])],
            "if the VCPUs were 1 instead of 2, and without network a",
        ),
        ([("availability_zone", "az1", "az2")], "in zone az2"),
        ([("of a later release", 1, 2)], ""),
        ([], ""),
    ],
)
def test_sizes_and_the_rest(changes: list[tuple[str, Any, Any]], said: str) -> None:
    assert otherwise([Change(*one) for one in changes]) == said
    fields = [dict(zip(("field", "asked", "works"), one, strict=True)) for one in changes]
    whole = least_change({"host": "pve1", "changes": fields})
    assert whole == (f"pve1, {said}" if said else "")
