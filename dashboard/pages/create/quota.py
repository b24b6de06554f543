"""What is left of the quotas after a create."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Left:
    """One quota: what is left of it now, and afterwards."""

    title: str
    now: int
    after: int
    unit: str = ""

    @property
    def fits(self) -> bool:
        """Whether it allows the create."""
        return self.after >= 0


#: (title, unit, limit, used), in the names of the APIs
_QUOTAS = (
    ("Servers", "", "maxTotalInstances", "totalInstancesUsed"),
    ("VCPUs", "", "maxTotalCores", "totalCoresUsed"),
    ("Memory", "MiB", "maxTotalRAMSize", "totalRAMUsed"),
    ("Volumes", "", "maxTotalVolumes", "totalVolumesUsed"),
    ("Volumes' size", "GiB", "maxTotalVolumeGigabytes", "totalGigabytesUsed"),
)


def left(
    limits: Mapping[str, int], flavor: Mapping[str, Any], count: int, volumes: list[int]
) -> Iterator[Left]:
    """Yield each quota that has a limit; `volumes` are the GiB of the new ones of one server.

    >>> limits = {"maxTotalCores": 4, "totalCoresUsed": 1}
    >>> [one.after for one in left(limits, {"vcpus": 2, "ram": 512}, 2, [])]
    [-1]
    """
    each = (1, flavor["vcpus"], flavor["ram"], len(volumes), sum(volumes))
    for (title, unit, most, used), taken in zip(_QUOTAS, each, strict=True):
        limit = limits.get(most, -1)
        if limit >= 0:
            now = limit - limits.get(used, 0)
            yield Left(title, now, now - taken * count, unit)


def refusal(
    limits: Mapping[str, int], flavor: Mapping[str, Any], count: int, volumes: list[int]
) -> str:
    """Return which quota a create would exceed; empty: none."""
    for one in left(limits, flavor, count, volumes):
        if not one.fits:
            return f"quota: {max(one.now, 0)} {one.unit or one.title} left".replace("  ", " ")
    return ""
