"""Whether there is room for several."""

from __future__ import annotations

import pytest

from conductor.servers.waiting.free_room import has_room

ROOM = {"a": {"VCPU": 9, "MEMORY_MB": 2048}, "b": {"VCPU": 3, "MEMORY_MB": 9000}}


@pytest.mark.parametrize(
    ("needs", "count", "has"),
    [
        ({"VCPU": 2}, 5, True),
        ({"VCPU": 2}, 6, False),
        ({"VCPU": 1, "MEMORY_MB": 1024}, 5, True),
        ({"VCPU": 1, "MEMORY_MB": 1024}, 6, False),
        ({"DISK_GB": 1}, 1, False),
    ],
)
def test_room_for_several(needs: dict[str, int], count: int, has: bool) -> None:
    assert has_room(ROOM, needs, count) is has
