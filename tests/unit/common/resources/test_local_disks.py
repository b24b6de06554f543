"""Local disks beside the root disk, by flavor and request."""

from __future__ import annotations

from common.resources.local_disks import (
    EPHEMERAL_SLOTS,
    SWAP_SLOT,
    LocalDisk,
    Wanted,
    claim_gib,
    of_server,
    resized,
    shrinks,
    total_mib,
)
from common.resources.volumes import ROOT_SLOT, SLOTS

GIB = 1024
DEFAULT = of_server(10, 512)


def test_slots_are_nobody_else_s() -> None:
    mine = {*EPHEMERAL_SLOTS, SWAP_SLOT}
    assert not mine & {*SLOTS, ROOT_SLOT, 14, 15}
    assert max(mine) <= 30


def test_what_a_flavor_gives() -> None:
    assert (LocalDisk(27, 10 * GIB), LocalDisk(30, 512)) == DEFAULT
    assert [one.serial for one in DEFAULT] == ["ephemeral0", "swap"]
    assert of_server(0, 0) == ()
    assert total_mib(DEFAULT) == 10 * GIB + 512


def test_what_a_request_names() -> None:
    asked = [Wanted(size_mib=2 * GIB, tag="a"), Wanted(size_mib=GIB), Wanted(True, 100)]
    assert of_server(10, 512, asked) == (
        LocalDisk(27, 2 * GIB, "a"),
        LocalDisk(28, GIB),
        LocalDisk(30, 100),
    )
    assert of_server(10, 0, [Wanted(swap=True)]) == (LocalDisk(27, 10 * GIB),)


def test_another_flavor() -> None:
    assert resized(DEFAULT, 10, 20, 1024) == (LocalDisk(27, 20 * GIB), LocalDisk(30, 1024))
    assert resized(DEFAULT, 10, 10, 0) == (LocalDisk(27, 10 * GIB),)
    assert resized((), 0, 5, 0) == (LocalDisk(27, 5 * GIB),)
    named = (LocalDisk(27, 2 * GIB, "a"), LocalDisk(28, GIB), LocalDisk(30, 100, "b"))
    assert resized(named, 10, 20, 512) == (*named[:2], LocalDisk(30, 512, "b"))
    assert shrinks(DEFAULT, 9)
    assert not shrinks(named, 3)


def test_what_is_claimed() -> None:
    assert [claim_gib(10, swap) for swap in (0, 1, 1024, 1025)] == [10, 11, 11, 12]
