"""Local disks of a server beside its root disk: ephemeral ones, and one for swap. Pure.

Rules are Nova's: disks in a request must fit into the flavor's sizes, disks not in the request
are as the flavor says, and a flavor with such disks claims their sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

#: the SCSI slots of ephemeral disks; a volume never gets one
EPHEMERAL_SLOTS = (27, 28, 29)
#: the SCSI slot of the swap disk
SWAP_SLOT = 30

_MIB_PER_GIB = 1024


@dataclass(frozen=True)
class LocalDisk:
    """One local disk of a server; it is made empty, and deleted with its server's VM."""

    slot: int
    size_mib: int
    tag: str | None = None
    """The user's name for it, for the guest."""

    @property
    def is_swap(self) -> bool:
        """Return whether it is the swap disk."""
        return self.slot == SWAP_SLOT

    @property
    def serial(self) -> str:
        """Return the serial number by which the guest finds it."""
        return "swap" if self.is_swap else f"ephemeral{self.slot - EPHEMERAL_SLOTS[0]}"


@dataclass(frozen=True)
class Wanted:
    """A local disk that a request names; MiB, 0: as the flavor says."""

    swap: bool = False
    size_mib: int = 0
    tag: str | None = None


def of_server(
    ephemeral_gib: int, swap_mib: int, asked: Sequence[Wanted] = ()
) -> tuple[LocalDisk, ...]:
    """Return a new server's local disks, by its flavor's sizes and what its request names."""
    whole = ephemeral_gib * _MIB_PER_GIB
    ephemerals = [one for one in asked if not one.swap] or [Wanted()]
    made = [
        LocalDisk(slot, one.size_mib or whole, one.tag)
        for slot, one in zip(EPHEMERAL_SLOTS, ephemerals, strict=False)
    ]
    swap = next((one for one in asked if one.swap), Wanted(swap=True))
    made.append(LocalDisk(SWAP_SLOT, swap.size_mib or swap_mib, swap.tag))
    return tuple(one for one in made if one.size_mib)


def resized(
    had: Sequence[LocalDisk], old_ephemeral_gib: int, ephemeral_gib: int, swap_mib: int
) -> tuple[LocalDisk, ...]:
    """Return a server's local disks with another flavor.

    One ephemeral disk of the old flavor's size grows, those of a size that was asked for stay; the
    swap disk is as large as the new flavor says.
    """
    ephemerals = [one for one in had if not one.is_swap]
    if not ephemerals:
        kept = [one for one in of_server(ephemeral_gib, 0) if not one.is_swap]
    elif len(ephemerals) == 1 and ephemerals[0].size_mib == old_ephemeral_gib * _MIB_PER_GIB:
        kept = [replace(ephemerals[0], size_mib=ephemeral_gib * _MIB_PER_GIB)]
    else:
        kept = ephemerals
    tag = next((one.tag for one in had if one.is_swap), None)
    swap = [LocalDisk(SWAP_SLOT, swap_mib, tag)] if swap_mib else []
    return (*kept, *swap)


def shrinks(had: Iterable[LocalDisk], ephemeral_gib: int) -> bool:
    """Return whether ephemeral disks would have to shrink for a flavor."""
    has = sum(one.size_mib for one in had if not one.is_swap)
    return has > ephemeral_gib * _MIB_PER_GIB


def claim_gib(ephemeral_gib: int, swap_mib: int) -> int:
    """Return what such disks of a flavor claim of a host's disk."""
    return ephemeral_gib - (-swap_mib // _MIB_PER_GIB)


def total_mib(disks: Iterable[LocalDisk]) -> int:
    """Return the size of all."""
    return sum(one.size_mib for one in disks)
