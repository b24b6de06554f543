"""Flavors as cards, by size, with why one can't be chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.cloud import COMPUTE, Call

EVERY = Call(COMPUTE, "/flavors/detail", {"limit": 1000})

Flavor = Mapping[str, Any]


@dataclass(frozen=True)
class Card:
    """A flavor to choose."""

    flavor: Flavor
    why_not: str = ""
    """Why a server of it can't be made; empty: nothing is known against it."""
    note: str = ""
    is_final: bool = False
    """Whether nothing else that the form asks for changes that."""


def by_size(flavors: Iterable[Flavor]) -> list[Flavor]:
    """Return flavors, the smallest first."""
    return sorted(flavors, key=lambda one: (one["vcpus"], one["ram"], one["disk"], one["name"]))


def too_small(flavor: Flavor, image: Mapping[str, Any] | None, *, has_disk: bool = True) -> str:
    """Return why an image doesn't fit in a flavor; empty: it does.

    `has_disk`: whether the root disk is the flavor's, not a volume.

    >>> too_small({"ram": 64, "disk": 1}, {"min_ram": 128, "min_disk": 0, "virtual_size": None})
    'the image needs 128 MiB'
    """
    if not image:
        return ""
    if flavor["ram"] < (image.get("min_ram") or 0):
        return f"the image needs {image['min_ram']} MiB"
    needed = disk_of(image)
    # a flavor without a disk has that of the image
    if has_disk and 0 < flavor["disk"] < needed:
        return f"the image needs {needed} GiB"
    return ""


def disk_of(image: Mapping[str, Any]) -> int:
    """Return the GiB that an image needs."""
    size = -(-int(image.get("virtual_size") or image.get("size") or 0) // (1 << 30))
    return max(int(image.get("min_disk") or 0), size, 1)
