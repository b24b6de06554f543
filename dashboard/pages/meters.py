"""How much of something is used."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_NEARLY_ALL = 90


class Warns(enum.Enum):
    """When a meter is shown as a warning."""

    NEARLY_FULL = enum.auto()  #: little is left
    NOT_FULL = enum.auto()  #: something is missing
    NEVER = enum.auto()  #: more may be used than there is


@dataclass(frozen=True)
class Meter:
    """A part of a whole."""

    title: str
    used: int
    limit: int
    """Negative: none."""
    unit: str = ""
    when: Warns = Warns.NEARLY_FULL

    @property
    def warns(self) -> bool:
        """Whether to show it as a warning."""
        if self.when is Warns.NOT_FULL:
            return self.used < self.limit
        return self.when is Warns.NEARLY_FULL and self.percent >= _NEARLY_ALL

    @property
    def percent(self) -> float:
        """The used part, at most all of it."""
        return min(100.0, 100 * self.used / self.limit) if self.limit > 0 else 0.0


def of_hosts(numbers: Mapping[str, Any]) -> tuple[Meter, ...]:
    """Return VCPUs, memory and disk of a hypervisor, or of the sum of several.

    VCPUs are overcommitted as each agent's `cpu_allocation_ratio` says, which the API doesn't.
    """
    return (
        Meter("VCPUs", numbers["vcpus_used"], numbers["vcpus"], when=Warns.NEVER),
        Meter("Memory", _gib(numbers["memory_mb_used"]), _gib(numbers["memory_mb"]), "GiB"),
        Meter("Disk", numbers["local_gb_used"], numbers["local_gb"], "GiB"),
    )


def of_pool(pool: Mapping[str, Any]) -> Meter:
    """Return a storage that takes volumes; its name is HOST@STORAGE#STORAGE."""
    facts = pool["capabilities"]
    total, free = int(facts["total_capacity_gb"]), int(facts["free_capacity_gb"])
    kind = facts.get("storage_protocol") or ""
    return Meter(f"{pool['name'].partition('#')[0]} ({kind})", total - free, total, "GiB")


def _gib(mib: int) -> int:
    return round(mib / 1024)
